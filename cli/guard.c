/* See guard.h. */
#define _GNU_SOURCE /* pipe2 */
#include "cli/guard.h"
#include "cli/devices.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tenon/tenon.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT = 60, AT_EXIT = 10 /* seconds */, MAX_PRINTED = 400, MAX_REASON = 800 };

/* What the child tells, one byte each; behind FINISHED comes the exit code. */
enum { LOADED = 'l', FINISHED = 'f' };

typedef struct child {
    pid_t pid;
    int told, printed; /* what it tells; what it prints, or -1 */
    char stage;
    int code; /* that it finished with, or -1 */
    char last[MAX_PRINTED + 1];
    size_t n_last;
    bool timed_out;
    int status; /* of waitpid */
} child;

/* ---- a child ----------------------------------------------------------------------------- */

/* In the child: its end of the pipe, else 0. False when there is none to be had. */
static bool start_child(child *c, bool keep_quiet, int *out_tell) {
    int tell[2], print[2] = {-1, -1};
    *c = (child){.code = -1, .printed = -1};
    if (pipe2(tell, O_CLOEXEC) != 0)
        return false;
    if (keep_quiet && pipe2(print, O_CLOEXEC) != 0) {
        close(tell[0]);
        close(tell[1]);
        return false;
    }
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        struct rlimit no_core = {0};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(tell[0]);
        if (keep_quiet) {
            setrlimit(RLIMIT_CORE, &no_core);
            dup2(print[1], STDOUT_FILENO);
            dup2(print[1], STDERR_FILENO);
        }
        *out_tell = tell[1];
        return true;
    }
    close(tell[1]);
    if (keep_quiet) {
        close(print[1]);
        fcntl(print[0], F_SETFL, O_NONBLOCK);
    }
    if (c->pid < 0) {
        close(tell[0]);
        if (keep_quiet)
            close(print[0]);
        return false;
    }
    fcntl(tell[0], F_SETFL, O_NONBLOCK);
    c->told = tell[0];
    c->printed = print[0];
    return true;
}

static void tell(int to, char stage, int code) {
    char bytes[2] = {stage, (char)code};
    if (write(to, bytes, stage == FINISHED ? 2 : 1) < 0)
        _exit(EXIT_FAILED);
}

/* Keeps the end of what it prints. */
static void read_printed(child *c) {
    char bytes[512];
    for (ssize_t n; c->printed >= 0 && (n = read(c->printed, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < n; i++) {
            if (c->n_last == MAX_PRINTED)
                memmove(c->last, c->last + 1, --c->n_last);
            c->last[c->n_last++] = bytes[i];
        }
}

static void read_told(child *c) {
    unsigned char byte;
    while (read(c->told, &byte, 1) == 1) {
        if (c->stage == FINISHED)
            c->code = byte;
        else
            c->stage = (char)byte;
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Waits until it has ended, which it has to `seconds` from now. */
static void wait_for(child *c, int seconds) {
    double deadline = now() + seconds;
    for (bool ended = false; !ended;) {
        struct pollfd fds[2] = {{c->told, POLLIN, 0}, {c->printed, POLLIN, 0}};
        bool finished = c->code >= 0;
        poll(fds, 2,
             20); /* a pipe may be open in a process that the plugin started: ask for the end */
        ended = waitpid(c->pid, &c->status, WNOHANG) != 0;
        read_printed(c);
        read_told(c);
        if (!finished && c->code >= 0)
            deadline = now() + AT_EXIT;
        if (!ended && now() > deadline) {
            c->timed_out = true;
            kill(c->pid, SIGKILL);
            waitpid(c->pid, &c->status, 0);
            ended = true;
        }
    }
    close(c->told);
    if (c->printed >= 0)
        close(c->printed);
    while (c->n_last > 0 && c->last[c->n_last - 1] == '\n')
        c->n_last--;
    c->last[c->n_last] = '\0';
}

static void how_it_ended(const child *c, int seconds, char *out, size_t size) {
    if (c->timed_out)
        snprintf(out, size, "it did not come back within %d s, and was stopped%s", seconds,
                 c->code < 0 ? "; --timeout gives it longer" : "");
    else if (WIFSIGNALED(c->status))
        snprintf(out, size, "it was ended by signal %d (%s)", WTERMSIG(c->status),
                 strsignal(WTERMSIG(c->status)));
    else
        snprintf(out, size, "it ended the process, with exit code %d", WEXITSTATUS(c->status));
}

/* ---- one plugin by itself ---------------------------------------------------------------- */

typedef struct paths {
    char **items;
    size_t n;
} paths;

static void note_path(const tn_plugin_info *info, void *user) {
    paths *all = user;
    if (strcmp(info->state, "found") != 0)
        return;
    char **items = realloc(all->items, (all->n + 1) * sizeof *items);
    if (!items)
        return;
    all->items = items;
    items[all->n] = strdup(info->path);
    all->n += items[all->n] != NULL;
}

static void ignore_plugin(const tn_plugin_info *info, void *user) {}
static void ignore_device(const char *name, tn_device device, const char *plugin, void *user) {}

static void try_plugin(const paths *all, size_t which, bool devices, int to) {
    for (size_t i = 0; i < all->n; i++)
        if (i != which)
            tn_plugin_exclude(all->items[i], "");
    tn_plugin_list(true, ignore_plugin, NULL);
    tell(to, LOADED, 0);
    if (devices)
        for_each_device(ignore_device, NULL);
    tell(to, FINISHED, EXIT_OK);
    _exit(EXIT_OK);
}

static void probe(const paths *all, size_t which, bool devices, int seconds) {
    child c;
    int to = -1;
    if (!start_child(&c, true, &to))
        return; /* as it would be without us */
    if (to >= 0)
        try_plugin(all, which, devices, to);
    wait_for(&c, seconds);
    if (c.code >= 0)
        return;
    char how[120], reason[MAX_REASON];
    how_it_ended(&c, seconds, how, sizeof how);
    snprintf(reason, sizeof reason, "in a process of its own, as %s, %s%s%s",
             c.stage == LOADED ? "its devices were opened" : "it was loaded and started", how,
             c.n_last ? "; printed last: " : "", c.last);
    tn_plugin_exclude(all->items[which], reason);
}

/* ---- the command ------------------------------------------------------------------------- */

/* What plugins print as they start is not part of what the command prints. */
static void start_plugins(bool devices) {
    int out = dup(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    tn_plugin_list(true, ignore_plugin, NULL);
    if (devices)
        for_each_device(ignore_device, NULL);
    fflush(stdout);
    if (out >= 0) {
        dup2(out, STDOUT_FILENO);
        close(out);
    }
}

int run_with_plugins(const options *o, int (*command)(const options *o), bool devices) {
    int seconds = o->timeout ? o->timeout : TIMEOUT, to = -1;
    paths all = {0};
    tn_plugin_list(false, note_path, &all);
    for (size_t i = 0; i < all.n; i++)
        probe(&all, i, devices, seconds);
    for (size_t i = 0; i < all.n; i++)
        free(all.items[i]);
    free(all.items);

    child c;
    bool apart = start_child(&c, false, &to);
    if (!apart || to >= 0) {
        start_plugins(devices);
        int code = check_output(command(o));
        if (apart)
            tell(to, FINISHED, code);
        return code;
    }
    wait_for(&c, seconds);
    if (c.code >= 0 && WIFEXITED(c.status) && WEXITSTATUS(c.status) == c.code)
        return c.code;
    char how[120];
    how_it_ended(&c, c.code < 0 ? seconds : AT_EXIT, how, sizeof how);
    fprintf(stderr, "tenon: plugins, each of which starts alone, %s in one process: %s\n",
            c.code < 0 ? "do not start together" : "do not come to an end", how);
    return EXIT_FAILED;
}
