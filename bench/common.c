/* Timing and reporting; see common.h. */
#include "bench/common.h"

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MAX_BATCHES = 512, MIN_BATCHES = 3, BATCHES_WANTED = 20 };

bool bench_tiny;

typedef struct result {
    double median, min; /* in the row's unit */
    uint64_t n;         /* how often the work was done in a batch */
    int batches;
} result;

typedef struct options {
    bool json, serve, list;
    const char *child; /* run this row's child and stop */
    double seconds;    /* for each row */
    uint64_t times;    /* not 0: do each row so often, untimed */
    uint32_t n_threads;
} options;

/* ---- measuring --------------------------------------------------------------------------- */

static double scale_of(const char *unit) {
    return !strcmp(unit, "ns") ? 1e9 : !strcmp(unit, "us") ? 1e6 : !strcmp(unit, "ms") ? 1e3 : 1;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *samples, int n) {
    qsort(samples, (size_t)n, sizeof *samples, by_value);
    return n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

static bool summarise(double *samples, int n, result *out) {
    out->batches = n;
    out->median = bench_median(samples, n);
    out->min = samples[0];
    return true;
}

/* Batches long enough for the clock, and as many as fit into the time; at least three. */
static bool time_row(const bench_row *row, double seconds, result *out) {
    double batch = seconds / BATCHES_WANTED, took = row->run(1); /* warms up */
    uint64_t n = 1;
    for (took = row->run(n); took >= 0 && took < batch / 2; took = row->run(n))
        n = took < batch / 16 ? n * 8 : n * 2;
    double samples[MAX_BATCHES], spent = 0;
    int k = 0;
    for (; took >= 0 && k < MAX_BATCHES && (spent < seconds || k < MIN_BATCHES); k++) {
        took = row->run(n);
        samples[k] = took / (double)n * scale_of(row->unit);
        spent += took;
    }
    out->n = n;
    return took >= 0 && summarise(samples, k, out);
}

bool bench_spawn(char *const *given, double *out_value, double *out_took) {
    enum { MAX_OPTIONS = 7 };
    int ends[2], n = 1;
    char self[4096], *arguments[MAX_OPTIONS + 2] = {self};
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0 || pipe(ends))
        return false;
    self[length] = '\0';
    while (n <= MAX_OPTIONS && given[n - 1]) {
        arguments[n] = given[n - 1];
        n++;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    pid_t pid;
    double before = bench_now();
    bool spawned = posix_spawn(&pid, self, &actions, NULL, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    char line[64] = "";
    ssize_t got = spawned ? read(ends[0], line, sizeof line - 1) : -1;
    *out_took = bench_now() - before;
    close(ends[0]);
    if (spawned)
        waitpid(pid, NULL, 0);
    return got > 0 && sscanf(line, "%lf", out_value) == 1 && *out_value >= 0;
}

/* What the row's child says, and the seconds until it said it. */
static bool run_child(const bench_row *row, const options *o, double *out_value, double *out_took) {
    char threads[16];
    snprintf(threads, sizeof threads, "%u", o->n_threads);
    char *const arguments[] = {(char *)"--child",
                               (char *)row->name,
                               (char *)"--threads",
                               threads,
                               bench_tiny ? (char *)"--tiny" : NULL,
                               NULL};
    return bench_spawn(arguments, out_value, out_took);
}

static bool measure_row(const bench_row *row, const options *o, result *out) {
    if (o->times) {
        *out = (result){.n = o->times};
        return !row->run || row->run(o->times) >= 0;
    }
    if (row->run)
        return time_row(row, o->seconds, out);
    double samples[MIN_BATCHES];
    out->n = 1;
    for (int k = 0; k < MIN_BATCHES; k++) {
        double value = 0, took = 0;
        bool ok = row->child ? run_child(row, o, &value, &took) : (value = row->measure()) >= 0;
        if (!ok)
            return false;
        samples[k] = row->child && row->times_child ? took * scale_of(row->unit) : value;
    }
    return summarise(samples, MIN_BATCHES, out);
}

double bench_resident(const char *field) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    double mib = -1;
    size_t length = strlen(field);
    while (f && mib < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, field, length) && line[length] == ':')
            mib = strtod(line + length + 1, NULL) / 1024;
    if (f)
        fclose(f);
    return mib;
}

/* ---- telling ----------------------------------------------------------------------------- */

static void print_json_string(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    }
    putchar('"');
}

static void print_json_result(const bench_row *row, const result *r, const char *error) {
    printf("{\"row\": \"%s\", \"what\": ", row->name);
    print_json_string(row->what);
    printf(", \"unit\": \"%s\", ", row->unit);
    if (error) {
        printf("\"error\": ");
        print_json_string(error);
    } else {
        printf("\"median\": %.6g, \"min\": %.6g, \"batches\": %d, \"n\": %llu", r->median, r->min,
               r->batches, (unsigned long long)r->n);
    }
    putchar('}');
}

/* The variables that decide how many threads a library makes. */
static const char *const thread_variables[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                               "MKL_NUM_THREADS", "BLIS_NUM_THREADS"};
enum { N_THREAD_VARIABLES = sizeof thread_variables / sizeof thread_variables[0] };

static void print_json_head(const bench_program *p, const options *o) {
    printf("{\"program\": \"%s\", \"subject\": \"%s\", \"version\": ", p->name, p->subject);
    print_json_string(p->version());
    printf(", \"threads\": %u, \"environment\": {", o->n_threads);
    for (int i = 0; i < N_THREAD_VARIABLES; i++) {
        const char *value = getenv(thread_variables[i]);
        printf("%s\"%s\": ", i ? ", " : "", thread_variables[i]);
        print_json_string(value ? value : "");
    }
    printf("}");
}

static const bench_row *find_row(const bench_program *p, const char *name) {
    for (int i = 0; i < p->n_rows; i++)
        if (!strcmp(p->rows[i].name, name))
            return &p->rows[i];
    return NULL;
}

static const char *reason(const bench_program *p) {
    const char *text = p->error();
    return text && *text ? text : "failed without a message";
}

/* Each line of standard input, "NAME SECONDS", is answered by a line of JSON. */
static int serve(const bench_program *p, options *o) {
    print_json_head(p, o);
    printf(", \"rows\": [");
    for (int i = 0; i < p->n_rows; i++)
        printf("%s\"%s\"", i ? ", " : "", p->rows[i].name);
    printf("]}\n");
    fflush(stdout);
    char line[256], name[128];
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%127s %lf", name, &o->seconds) != 2)
            continue;
        const bench_row *row = find_row(p, name);
        result r;
        if (!row)
            printf("{\"row\": \"%s\", \"error\": \"no such row\"}", name);
        else
            print_json_result(row, &r, measure_row(row, o, &r) ? NULL : reason(p));
        putchar('\n');
        fflush(stdout);
    }
    return 0;
}

static int report(const bench_program *p, const options *o, char **names, int n_names) {
    int failed = 0, told = 0;
    if (o->json) {
        print_json_head(p, o);
        printf(", \"rows\": [\n");
    } else {
        printf("%s: %s, %u thread%s%s\n%-20s %12s %12s\n", p->name, p->version(), o->n_threads,
               o->n_threads == 1 ? "" : "s", bench_tiny ? "; tiny: its figures mean nothing" : "",
               "", "median", "min");
    }
    for (int i = 0; i < p->n_rows; i++) {
        const bench_row *row = &p->rows[i];
        bool wanted = n_names == 0;
        for (int k = 0; k < n_names; k++)
            wanted |= !strcmp(names[k], row->name);
        if (!wanted)
            continue;
        result r;
        const char *error = measure_row(row, o, &r) ? NULL : reason(p);
        failed += error != NULL;
        if (o->json) {
            printf("%s  ", told++ ? ",\n" : "");
            print_json_result(row, &r, error);
        } else if (error) {
            printf("%-20s %s\n", row->name, error);
        } else {
            printf("%-20s %9.4g %-2s %9.4g %-2s  %s\n", row->name, r.median, row->unit, r.min,
                   row->unit, row->what);
        }
        fflush(stdout);
    }
    if (o->json)
        printf("\n]}\n");
    return failed != 0;
}

/* ---- the program ------------------------------------------------------------------------- */

/* A second thread, so that no library takes the process for single-threaded and leaves locks and
 * atomic instructions out. */
static void *idle(void *unused) {
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

static int usage(const bench_program *p, int status) {
    fprintf(status ? stderr : stdout,
            "usage: %s [--json] [--seconds S] [--threads N] [--tiny] [ROW...]\n"
            "       %s --times N ROW           does it N times, for profilers\n"
            "       %s --list\n"
            "       %s --serve [--threads N]   answers lines of \"ROW SECONDS\" with JSON\n",
            p->name, p->name, p->name, p->name);
    return status;
}

int bench_main(const bench_program *p, int argc, char **argv) {
    options o = {.seconds = 0.5, .n_threads = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN)};
    const char *variable = getenv("OMP_NUM_THREADS");
    if (variable && atoi(variable) > 0)
        o.n_threads = (uint32_t)atoi(variable);
    int n_names = 0;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        bool has_value = i + 1 < argc;
        if (!strcmp(a, "--json"))
            o.json = true;
        else if (!strcmp(a, "--serve"))
            o.serve = true;
        else if (!strcmp(a, "--list"))
            o.list = true;
        else if (!strcmp(a, "--tiny"))
            bench_tiny = true;
        else if (!strcmp(a, "--child") && has_value)
            o.child = argv[++i];
        else if (!strcmp(a, "--seconds") && has_value)
            o.seconds = atof(argv[++i]);
        else if (!strcmp(a, "--times") && has_value)
            o.times = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(a, "--threads") && has_value)
            o.n_threads = (uint32_t)atoi(argv[++i]);
        else if (a[0] != '-' && find_row(p, a))
            argv[n_names++] = argv[i];
        else
            return usage(p, strcmp(a, "--help") ? 2 : 0);
    }
    if (o.list) {
        for (int i = 0; i < p->n_rows; i++)
            printf("%-20s %s\n", p->rows[i].name, p->rows[i].what);
        return 0;
    }
    const bench_row *row = o.child ? find_row(p, o.child) : NULL;
    if (row && row->child) {
        double value = row->child(o.n_threads);
        printf("%.6g\n", value);
        fflush(stdout);
        if (value < 0)
            fprintf(stderr, "%s: %s\n", p->name, reason(p));
        return value < 0;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, idle, NULL) || !p->start(o.n_threads)) {
        fprintf(stderr, "%s: %s\n", p->name, reason(p));
        return 1;
    }
    return o.serve ? serve(p, &o) : report(p, &o, argv, n_names);
}
