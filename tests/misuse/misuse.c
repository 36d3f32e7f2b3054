/* Calls every function of the public headers with every argument wrong in turn, in processes that may die, and
 * says which call was the end of one.
 *
 *   misuse [FUNCTION...]
 *
 * Each process has an alarm and little device memory. A line for each call that crashed, hung, or failed
 * without saying why. */
#define _GNU_SOURCE
#include "tests/misuse/misuse.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 60, MAX_FAILURES = 200, MEMORY = 64 << 20 };

/* ---- where we are ------------------------------------------------------------------------ */

/* In memory that parent and children share. */
static struct {
    unsigned function, call;           /* of the function; 0: all is good */
    unsigned n_calls, n_good, n_taken; /* good calls, and those that succeeded */
    unsigned n_failures;
} * progress;

static place place_of(const called *f, unsigned call) {
    place p = {f, -1, 0};
    if (call == 0)
        return p;
    call--;
    for (unsigned i = 0; i < f->n_parameters; i++) {
        if (call < f->parameters[i].n_values)
            return (place){f, (int)i, call};
        call -= f->parameters[i].n_values;
    }
    return (place){f, -2, 0}; /* past the last */
}

static void say(const place *at, const char *what) {
    if (at->argument < 0)
        fprintf(stderr, "%s: %s\n", at->function->name, what);
    else
        fprintf(stderr, "%s, %s = %s: %s\n", at->function->name,
                at->function->parameters[at->argument].name,
                at->function->parameters[at->argument].values[at->value], what);
}

static void fault(const place *at, const char *what) {
    say(at, what);
    progress->n_failures++;
}

unsigned n_calls(void) {
    return progress->n_calls;
}

/* ---- what came of a call ----------------------------------------------------------------- */

bool is_watched(void) {
    const char *value = getenv("TENON_SCOPE_DEBUG");
    return value && strcmp(value, "1") == 0;
}

static void judge(const place *at, bool failed) {
    if (at->argument >= 0 && is_watched() &&
        strcmp(at->function->parameters[at->argument].values[at->value], GONE) == 0 &&
        tn_error_status() == TN_OK)
        fault(at, "takes it");
    if (failed && tn_error_status() == TN_OK)
        fault(at, "failed without an error");
    else if (tn_error_status() != TN_OK && !*tn_error_message())
        fault(at, "failed without a message");
    if (at->argument == -1) {
        progress->n_good++;
        progress->n_taken += !failed;
        if (failed && getenv("MISUSE_SHOW"))
            say(at, tn_error_message());
    }
}

void gave_status(const place *at, tn_status status) {
    if (status < 0 || status >= TN_STATUS_COUNT)
        fault(at, "gave a number that is no status");
    if (status == TN_ERR_INTERNAL)
        fault(at, tn_error_message());
    judge(at, status != TN_OK && status != TN_NOT_READY);
}

void gave_pointer(const place *at, const volatile void *result, bool may_be_null) {
    if (!result && tn_error_status() == TN_ERR_INTERNAL)
        fault(at, tn_error_message());
    judge(at, !result && !(may_be_null && tn_error_status() == TN_OK));
}

void came_back(const place *at) {
    judge(at, tn_error_status() != TN_OK);
}

/* ---- processes --------------------------------------------------------------------------- */

static void prepare(void) {
    alarm(SECONDS);
    if (!freopen("/dev/null", "w", stdout)) /* for tn_print */
        _exit(1);
    const tn_device devices[] = {cpu(), sim()};
    for (int i = 0; i < 2; i++)
        tn_memory_set_limit(devices[i], MEMORY);
}

static tn_function_context *context;
static const place *inside;

static tn_status call_inside(tn_function_context *c, tn_tensor *const *inputs, uint64_t n_inputs,
                             tn_tensor **outputs, uint64_t n_outputs, void *user) {
    context = c;
    inside->function->call(inside);
    context = NULL;
    outputs[0] = inputs[0];
    return TN_OK;
}

static void call_in_forward(const place *at) {
    static const tn_function apply = {"MisuseBackward", call_inside, no_backward, NULL};
    tn_tensor *input = plain(), *output;
    inside = at;
    tn_function_apply(&apply, NULL, &input, 1, &output, 1);
}

/* Goes on from where `progress` is; a function that is no operator ends the process. */
static void child(void) {
    prepare();
    while (progress->function < n_functions) {
        const called *f = &functions[progress->function];
        place at = place_of(f, progress->call);
        if (at.argument == -2) {
            progress->function++;
            progress->call = 0;
            if (!f->is_operator || progress->function == n_functions ||
                !functions[progress->function].is_operator)
                _exit(0);
            continue;
        }
        tn_error_clear();
        if (f->in_forward)
            call_in_forward(&at);
        else
            f->call(&at);
        tn_error_clear();
        tn_scope_close(0);
        progress->n_calls++;
        progress->call++;
    }
    _exit(0);
}

static bool is_wanted(const char *name, char **names, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return n == 0;
}

int main(int argc, char **argv) {
    progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED)
        return 1;
    while (progress->function < n_functions && progress->n_failures < MAX_FAILURES) {
        const called *f = &functions[progress->function];
        if (!is_wanted(f->name, argv + 1, argc - 1)) {
            progress->function++;
            continue;
        }
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            child();
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            return 1;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        f = &functions[progress->function];
        place at = place_of(f, progress->call);
        char what[64];
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            snprintf(what, sizeof what, "hung");
        else if (WIFSIGNALED(status))
            snprintf(what, sizeof what, "crashed with signal %d", WTERMSIG(status));
        else
            snprintf(what, sizeof what, "ended the process with %d", WEXITSTATUS(status));
        fault(&at, what);
        progress->call++;
    }
    printf("%u functions, %u calls; %u of %u good calls succeed; %u failures\n", n_functions,
           progress->n_calls, progress->n_taken, progress->n_good, progress->n_failures);
    return progress->n_failures > 0;
}

tn_function_context *good_context(void) {
    return context;
}
