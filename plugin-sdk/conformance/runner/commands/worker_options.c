/* See worker_options.h. */
#include "plugin-sdk/conformance/runner/commands/worker_options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICE = 256, TIMEOUT, WORKER, CORE_WORKER };

double tc_option_number(const struct argp_state *state, const char *name, const char *value,
                        double least, double most) {
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || !(number >= least && number <= most))
        argp_error(state, "%s: a number from %g to %g, not '%s'", name, least, most, value);
    return number;
}

unsigned tc_option_whole(const struct argp_state *state, const char *name, const char *value,
                         unsigned least, unsigned most) {
    double number = tc_option_number(state, name, value, least, most);
    if (number != (double)(unsigned)number)
        argp_error(state, "%s: a whole number, not '%s'", name, value);
    return (unsigned)number;
}

/* "1", "0,2,3" or "all". */
static void read_devices(struct argp_state *state, tc_worker_pool_options *o, const char *value) {
    char text[512], *rest = NULL;
    o->n_devices = 0;
    if (strcmp(value, "all") == 0)
        return;
    if (strlen(value) >= sizeof text)
        argp_error(state, "--device: too many");
    strcpy(text, value);
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (o->n_devices == TC_MOST_DEVICES)
            argp_error(state, "--device: at most %d", TC_MOST_DEVICES);
        o->devices[o->n_devices++] = tc_option_whole(state, "--device", word, 0, 1000000000);
    }
    if (o->n_devices == 0)
        argp_error(state, "--device: an index, several with commas between, or all");
}

static error_t take(int key, char *value, struct argp_state *state) {
    tc_worker_pool_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        o->n_devices = 1;
        return 0;
    case DEVICE:
        read_devices(state, o, value);
        return 0;
    case TIMEOUT:
        o->timeout = tc_option_number(state, "--timeout", value, 0.01, 1e6);
        return 0;
    case WORKER:
        o->worker = value;
        return 0;
    case CORE_WORKER:
        o->core_worker = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"device", DEVICE, "N[,N...]", 0,
     "index among the plugin's devices (0); several, or all: workers are spread over them", 0},
    {"timeout", TIMEOUT, "SECONDS", 0, "what a case may take", 0},
    {"worker", WORKER, "PROGRAM", 0, "a worker to use in place of the built-in one", 0},
    {"core-worker", CORE_WORKER, "PROGRAM", 0, "where tenon-conform-core is", 0},
    {0},
};

const struct argp tc_worker_argp = {.options = options, .parser = take};

const char *tc_devices_text(const tc_worker_pool_options *o, char out[512]) {
    size_t n = 0;
    for (unsigned i = 0; i < o->n_devices && n < 512; i++)
        n += (size_t)snprintf(out + n, 512 - n, "%s%u", i ? "," : "", o->devices[i]);
    return out;
}

/* This program, which is the first worker. */
static const char *find_own(void) {
    static char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return n > 0 ? path : NULL;
}

const char *tc_find_core_worker(void) {
    static char path[2 * PATH_MAX];
    const char *given = getenv("TENON_CONFORM_CORE"), *own = find_own();
    if (given && *given)
        return access(given, X_OK) == 0 ? given : NULL;
    if (!own)
        return NULL;
    int n = (int)(strrchr(own, '/') - own);
    /* Beside it in the build tree; installed, from the program's folder to libexec
     * (TENON_CONFORM_LIBEXEC is relative, or absolute). */
    snprintf(path, sizeof path, "%.*s/../worker/core/tenon-conform-core", n, own);
    if (access(path, X_OK) == 0)
        return path;
    snprintf(path, sizeof path, "%.*s%s" TENON_CONFORM_LIBEXEC "/tenon-conform-core",
             TENON_CONFORM_LIBEXEC[0] == '/' ? 0 : n, own,
             TENON_CONFORM_LIBEXEC[0] == '/' ? "" : "/");
    return access(path, X_OK) == 0 ? path : NULL;
}

const char *tc_find_torch_worker(void) {
    static char path[PATH_MAX];
    const char *given = getenv("TENON_CONFORM_TORCH"), *folders = getenv("PATH");
    if (given && *given)
        return access(given, X_OK) == 0 ? given : NULL;
    for (const char *at = folders; at && *at; at += *at == ':') {
        int n = (int)strcspn(at, ":");
        if (n > 0 && snprintf(path, sizeof path, "%.*s/tenon-conform-torch", n, at) < PATH_MAX &&
            access(path, X_OK) == 0)
            return path;
        at += n;
    }
    return NULL;
}

bool tc_find_workers(tc_worker_pool_options *o, const char *command) {
    static char real[PATH_MAX];
    if (!realpath(o->plugin, real)) {
        fprintf(stderr, "tenon-conform %s: %s: %s\n", command, o->plugin, strerror(errno));
        return false;
    }
    o->plugin = real;
    if (!o->worker)
        o->worker = find_own();
    if (!o->core_worker)
        o->core_worker = tc_find_core_worker();
    o->torch_worker = tc_find_torch_worker();
    if (!o->worker)
        fprintf(stderr,
                "tenon-conform %s: /proc is needed to start workers; --worker PROGRAM names one\n",
                command);
    return o->worker != NULL;
}
