/* See child.h. */
#include "plugin-sdk/conformance/runner/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* glibc counts what its threads keep for themselves as allocated, and they keep more of it for a
 * long time. Turned off by a variable; other libraries do not know it. */
static const char tunables[] = "GLIBC_TUNABLES=", uncached[] = "glibc.malloc.tcache_count=0";
/* OpenMP's threads look for work for milliseconds after they had some, on the processors that the
 * other workers want. What the user has set stands. */
static const char passive[] = "OMP_WAIT_POLICY=passive";

/* Our variables with those, in one block to be freed; NULL without memory. */
static char **make_variables(tc_child_kind kind) {
    const char *before = getenv("GLIBC_TUNABLES");
    size_t n = 0, n_text = sizeof tunables + sizeof uncached + (before ? strlen(before) : 0);
    while (environ && environ[n])
        n++;
    char **made = malloc((n + 3) * sizeof *made + n_text);
    if (!made)
        return NULL;
    char *text = (char *)(made + n + 3);
    size_t to = 0;
    for (size_t i = 0; i < n; i++)
        if (!kind.counts_heap || strncmp(environ[i], tunables, sizeof tunables - 1) != 0)
            made[to++] = environ[i];
    if (kind.counts_heap) {
        snprintf(text, n_text, "%s%s%s%s", tunables, before ? before : "", before ? ":" : "",
                 uncached);
        made[to++] = text;
    }
    if (kind.has_company && !getenv("OMP_WAIT_POLICY"))
        made[to++] = (char *)passive;
    made[to] = NULL;
    return made;
}

static int spawn(pid_t *pid, char *const argv[], char *const variables[], int in, int verdicts,
                 int output) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    static const int reset[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    for (size_t i = 0; i < sizeof reset / sizeof *reset; i++)
        sigaddset(&defaults, reset[i]);

    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&files);
        return error;
    }
    /* None of the ends is below 4 (tc_child_start), so no dup2 meets another's source. */
    error = posix_spawn_file_actions_adddup2(&files, in, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&files, output, 1);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&files, output, 2);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&files, verdicts, 3);
    if (!error) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                  POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        error = posix_spawn(pid, argv[0], &files, &attributes, argv, variables);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* A pipe of which neither end is one of the descriptors a child gets. */
static bool make_pipe(int ends[2]) {
    int low[2];
    if (pipe2(low, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = low[i] > 3 ? low[i] : fcntl(low[i], F_DUPFD_CLOEXEC, 4);
        if (low[i] <= 3)
            close(low[i]);
    }
    return ends[0] >= 0 && ends[1] >= 0;
}

bool tc_child_start(tc_child *child, char *const argv[], tc_child_kind kind, char why[TC_MESSAGE]) {
    memset(child, 0, sizeof *child);
    child->in = child->verdicts = child->output = -1;
    int in[2] = {-1, -1}, verdicts[2] = {-1, -1}, output[2] = {-1, -1};
    int error = 0;
    char **made = make_variables(kind);
    if (!made)
        error = ENOMEM;
    else if (!make_pipe(in) || !make_pipe(verdicts) || !make_pipe(output))
        error = errno;
    else
        error = spawn(&child->pid, argv, made, in[0], verdicts[1], output[1]);
    free(made);
    close_fd(&in[0]);
    close_fd(&verdicts[1]);
    close_fd(&output[1]);
    child->in = in[1];
    child->verdicts = verdicts[0];
    child->output = output[0];
    if (error) {
        snprintf(why, TC_MESSAGE, "%s: cannot be started: %s", argv[0], strerror(error));
        child->pid = 0;
        tc_child_stop(child);
        return false;
    }
    fcntl(child->in, F_SETFL, O_NONBLOCK);
    fcntl(child->verdicts, F_SETFL, O_NONBLOCK);
    fcntl(child->output, F_SETFL, O_NONBLOCK);
    return true;
}

bool tc_child_send(tc_child *child, const char *line) {
    char text[TC_MAX_LINE + 1];
    int n = snprintf(text, sizeof text, "%s\n", line);
    /* A worker has read the line before it when it gets the next: there is room in the pipe. */
    return child->in >= 0 && write(child->in, text, (size_t)n) == n;
}

void tc_child_close_in(tc_child *child) {
    close_fd(&child->in);
}

tc_read tc_child_read(tc_child *child) {
    size_t room = sizeof child->line - 1 - child->n_line;
    ssize_t n = read(child->verdicts, child->line + child->n_line, room);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? TC_READ_NOTHING : TC_READ_END;
    if (n == 0)
        return TC_READ_END;
    child->n_line += (size_t)n;
    child->line[child->n_line] = '\0';
    char *newline = memchr(child->line, '\n', child->n_line);
    if (!newline)
        return (size_t)n == room ? TC_READ_GARBAGE : TC_READ_NOTHING;
    if (newline + 1 != child->line + child->n_line ||
        memchr(child->line, '\0', child->n_line) != NULL)
        return TC_READ_GARBAGE;
    *newline = '\0';
    child->n_line = 0;
    return TC_READ_LINE;
}

void tc_child_drain(tc_child *child) {
    char block[65536];
    /* Bounded, so that a flood does not keep the others waiting. */
    for (int i = 0; i < 16 && child->output >= 0; i++) {
        ssize_t n = read(child->output, block, sizeof block);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            close_fd(&child->output);
            return;
        }
        tc_output_add(&child->printed, block, (size_t)n);
        if ((size_t)n < sizeof block)
            return;
    }
}

bool tc_child_ended(tc_child *child, int *out_status) {
    if (child->pid == 0 || waitpid(child->pid, out_status, WNOHANG) != child->pid)
        return false;
    kill(-child->pid, SIGKILL); /* what it leaves behind */
    child->pid = 0;
    return true;
}

void tc_child_stop(tc_child *child) {
    if (child->pid > 0) {
        kill(-child->pid, SIGKILL);
        kill(child->pid, SIGKILL); /* the group may not be its own yet */
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    child->pid = 0;
    close_fd(&child->in);
    close_fd(&child->verdicts);
    close_fd(&child->output);
}

char *tc_child_words(int status, char out[TC_MESSAGE]) {
    if (WIFSIGNALED(status)) {
        int sig = WTERMSIG(status);
        snprintf(out, TC_MESSAGE, "killed by signal %d (%s)", sig, strsignal(sig));
    } else {
        snprintf(out, TC_MESSAGE, "ended with exit status %d", WEXITSTATUS(status));
    }
    return out;
}

void tc_prepare_for_children(void) {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= 2);
    if (fd >= 0)
        close(fd);
    struct rlimit none;
    if (getrlimit(RLIMIT_CORE, &none) == 0) {
        none.rlim_cur = 0;
        setrlimit(RLIMIT_CORE, &none);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, children could not be waited for */
}
