/* See worker.h. */
#include "plugin-sdk/conformance/worker/worker.h"

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void tc_suite_list(const tc_suite *suite, tc_set set, tc_sink *sink) {
    tc_set first = set == TC_PERF ? TC_PERF : TC_SMOKE;
    for (uint32_t i = 0; i < suite->n_classes; i++)
        for (tc_set part = first; part <= set; part++)
            if (suite->classes[i]->list && suite->classes[i]->timed == (set == TC_PERF))
                suite->classes[i]->list(part, sink);
}

void tc_run_line(const tc_suite *suite, const char *line, const tc_options *options,
                 tc_verdict *out) {
    memset(out, 0, sizeof *out);
    tc_case c;
    char why[TC_MESSAGE];
    if (!tc_case_parse(line, &c, why)) {
        TC_CASE_ERROR(out, "no case: %s", why);
        return;
    }
    for (uint32_t i = 0; i < suite->n_classes; i++)
        if (strcmp(suite->classes[i]->name, c.class) == 0) {
            double start = 1e3 * tc_now();
            if (suite->run)
                suite->run(suite->classes[i], &c, options, out);
            else
                suite->classes[i]->run(&c, options, out);
            out->milliseconds = 1e3 * tc_now() - start;
            return;
        }
    TC_CASE_ERROR(out, "this worker has no class of cases named %s", c.class);
}

/* ---- verbs ------------------------------------------------------------------------------- */

static void print_line(tc_sink *sink, const char *line) {
    (void)sink;
    puts(line);
}

static int list(const tc_suite *suite, tc_set set) {
    tc_sink sink = {print_line};
    tc_suite_list(suite, set, &sink);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "list: stdout: %s\n", strerror(errno));
        return 1;
    }
    return 0;
}

/* Moves a descriptor where nothing that counts descriptors from below meets it. */
static int out_of_reach(int fd, const char *what) {
    static const int places[] = {900, 200, 40, 10};
    int moved = -1;
    for (size_t i = 0; i < sizeof places / sizeof *places && moved < 0; i++)
        moved = fcntl(fd, F_DUPFD_CLOEXEC, places[i]);
    if (moved < 0)
        fprintf(stderr, "%s (descriptor %d): %s; a worker is started by tenon-conform run\n", what,
                fd, strerror(errno));
    else
        close(fd);
    return moved;
}

static bool write_all(int fd, const char *text, size_t n) {
    while (n > 0) {
        ssize_t wrote = write(fd, text, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        text += wrote;
        n -= (size_t)wrote;
    }
    return true;
}

static int describe(const tc_suite *suite, const tc_options *options) {
    int fd = out_of_reach(3, "where the description goes");
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out)
        return 1;
    if (suite->describe)
        suite->describe(options, out);
    else
        fputs("{}", out);
    fputc('\n', out);
    return fclose(out) == 0 ? 0 : 1;
}

static int work(const tc_suite *suite, const tc_options *options) {
    int in = out_of_reach(0, "where cases come from");
    int verdicts = in < 0 ? -1 : out_of_reach(3, "where verdicts go");
    FILE *lines = verdicts < 0 ? NULL : fdopen(in, "r");
    if (!lines || open("/dev/null", O_RDONLY) != 0)
        return 1;
    char *line = NULL;
    size_t room = 0;
    int result = 0;
    ssize_t n;
    while (result == 0 && (n = getline(&line, &room, lines)) > 0) {
        if (line[n - 1] == '\n')
            line[n - 1] = '\0';
        tc_verdict v;
        tc_run_line(suite, line, options, &v);
        char json[TC_VERDICT_LINE + 1];
        size_t length = tc_verdict_write(&v, line, json);
        json[length++] = '\n';
        if (!write_all(verdicts, json, length))
            result = 1;
    }
    free(line);
    if (suite->finish)
        suite->finish();
    fclose(lines);
    close(verdicts);
    return result;
}

static int usage(const char *problem, const char *word) {
    fprintf(stderr,
            "%s%s\n"
            "usage: list --set smoke|standard|exhaustive|perf\n"
            "       describe --plugin PATH [--device N]\n"
            "       work --plugin PATH [--device N]\n",
            problem, word);
    return 2;
}

int tc_worker_main(int argc, char **argv, const tc_suite *suite) {
    if (argc < 1)
        return usage("a verb is missing", "");
    tc_options options = {0};
    tc_set set = TC_STANDARD;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            return usage("a value is missing after ", argv[i]);
        if (strcmp(argv[i], "--set") == 0) {
            if (!tc_set_find(argv[i + 1], &set))
                return usage("no set is named ", argv[i + 1]);
        } else if (strcmp(argv[i], "--plugin") == 0) {
            options.plugin = argv[i + 1];
        } else if (strcmp(argv[i], "--device") == 0) {
            char *end;
            errno = 0;
            unsigned long device = strtoul(argv[i + 1], &end, 10);
            if (*end || errno || device > UINT32_MAX || argv[i + 1][0] < '0' ||
                argv[i + 1][0] > '9')
                return usage("no index of a device: ", argv[i + 1]);
            options.device = (uint32_t)device;
        } else {
            return usage("no option of a worker: ", argv[i]);
        }
    }
    if (strcmp(argv[0], "list") == 0)
        return list(suite, set);
    bool describes = strcmp(argv[0], "describe") == 0;
    if (!describes && strcmp(argv[0], "work") != 0)
        return usage("no verb of a worker: ", argv[0]);
    if (!options.plugin)
        return usage("--plugin is missing for ", argv[0]);
    char real[PATH_MAX];
    if (!realpath(options.plugin, real)) {
        fprintf(stderr, "%s: %s\n", options.plugin, strerror(errno));
        return 2;
    }
    options.plugin = real;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    tc_stack_prepare();
    return describes ? describe(suite, &options) : work(suite, &options);
}
