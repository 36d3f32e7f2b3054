/* tenon-conform fuzz: random cases, one after another, and what they find. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "plugin-sdk/conformance/worker/kernel/mutate.h"
#include "plugin-sdk/conformance/runner/report/escape.h"
#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/run/selection.h"
#include "plugin-sdk/conformance/runner/run/progress.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"
#include "plugin-sdk/conformance/runner/shrink/reduce.h"
#include "plugin-sdk/conformance/runner/commands/worker_paths.h"

enum { MOST_FINDINGS = 500, SHRINK_SECONDS = 20 };

typedef struct finding {
    char kind[TC_MESSAGE + TC_DRAFT_NAME];
} finding;

typedef struct fuzz {
    tc_worker_pool_options pool;
    double seconds;
    int64_t seed;
    const char *corpus; /* a folder, or NULL */
    tc_trial trial;
    tc_selection selection;
    finding *findings;
    size_t n_findings, n_new, n_cases;
    bool trouble;
} fuzz;

static int usage(const char *problem, const char *word) {
    fprintf(stderr,
            "tenon-conform fuzz: %s%s\n"
            "usage: tenon-conform fuzz PLUGIN.so --seconds N [--seed N] [--corpus DIR]\n"
            "                          [--device N] [--timeout SECONDS] [--worker PROGRAM]\n",
            problem, word);
    return TC_EXIT_USAGE;
}

static int read_options(int argc, char **argv, fuzz *f) {
    char why[TC_MESSAGE];
    int64_t n = 0;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = argv[i + 1];
        if (name[0] != '-') {
            if (f->pool.plugin)
                return usage("one word too many: ", name);
            f->pool.plugin = name;
            continue;
        }
        if (!value)
            return usage("a value is missing after ", name);
        i++;
        if (strcmp(name, "--corpus") == 0) {
            f->corpus = value;
            continue;
        }
        if (strcmp(name, "--worker") == 0) {
            f->pool.worker = value;
            continue;
        }
        if (!tc_read_int(value, &n, why) || n < 0 || n > 1000000000)
            return usage("no whole number: ", value);
        if (strcmp(name, "--seconds") == 0)
            f->seconds = (double)n;
        else if (strcmp(name, "--seed") == 0)
            f->seed = n;
        else if (strcmp(name, "--device") == 0)
            f->pool.device = (unsigned)n;
        else if (strcmp(name, "--timeout") == 0 && n > 0)
            f->pool.timeout = (double)n;
        else
            return usage("no option: ", name);
    }
    return !f->pool.plugin  ? usage("the plugin is missing", "")
           : f->seconds < 1 ? usage("--seconds N is missing", "")
                            : TC_EXIT_GOOD;
}

/* ---- findings ---------------------------------------------------------------------------- */

static void keep(fuzz *f, const char *line, const tc_verdict *v) {
    char path[PATH_MAX], kind[TC_MESSAGE];
    f->n_new++;
    char command[TC_COMMAND];
    printf("%s: %s\n    %s\n", tc_status_name(v->status), v->message,
           tc_command_text(f->pool.plugin, line, command));
    fflush(stdout);
    if (!f->corpus)
        return;
    snprintf(path, sizeof path, "%s/findings.txt", f->corpus);
    FILE *out = fopen(path, "a");
    bool good = out && fprintf(out, "%s # %s\n", line, tc_trial_kind(v, kind)) > 0;
    if (out && fclose(out) != 0)
        good = false;
    if (!good) {
        fprintf(stderr, "tenon-conform fuzz: %s: %s\n", path, strerror(errno));
        f->trouble = true;
    }
}

/* Counts a failure; false where one of its kind was found before. */
static bool is_first(fuzz *f, const char *line, const tc_verdict *v) {
    char kind[TC_MESSAGE];
    finding found;
    snprintf(found.kind, sizeof found.kind, "%.*s %s", (int)strcspn(line, " "), line,
             tc_trial_kind(v, kind));
    for (size_t i = 0; i < f->n_findings; i++)
        if (strcmp(f->findings[i].kind, found.kind) == 0)
            return false;
    f->findings[f->n_findings++] = found;
    return true;
}

/* One line; `known`: it comes from the corpus. */
static void run_line(fuzz *f, const char *line, double until, bool known) {
    char why[TC_MESSAGE];
    tc_verdict first, v;
    static tc_reducer r;
    f->n_cases++;
    tc_trial_run(&f->trial, line, &first);
    if (!tc_trial_failed(&first))
        return;
    tc_trial_run_alone(&f->trial, line, &v);
    if (!tc_trial_same(&first, &v)) { /* it takes what ran before, or comes and goes */
        if (tc_trial_failed(&v))
            first = v;
        else
            first.requirement = 0;
        size_t n = strlen(first.message);
        snprintf(first.message + n, sizeof first.message - n, "; in a fresh process: %s",
                 tc_status_name(v.status));
        if (is_first(f, line, &first) && !known)
            keep(f, line, &first);
        return;
    }
    if (!is_first(f, line, &v) || known)
        return;
    if (tc_reduce_init(&r, &f->trial, line, &v, why)) {
        r.until = tc_now() + SHRINK_SECONDS < until ? tc_now() + SHRINK_SECONDS : until;
        tc_reduce(&r);
        keep(f, r.line, &r.verdict);
    }
}

static void replay(fuzz *f, double until) {
    char path[PATH_MAX], line[TC_MAX_LINE + TC_MESSAGE];
    if (!f->corpus)
        return;
    if (mkdir(f->corpus, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "tenon-conform fuzz: %s: %s\n", f->corpus, strerror(errno));
        f->trouble = true;
        return;
    }
    snprintf(path, sizeof path, "%s/findings.txt", f->corpus);
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in) && f->n_findings < MOST_FINDINGS) {
        line[strcspn(line, "#\n")] = '\0';
        if (strlen(line) > 0 && strlen(line) < TC_MAX_LINE)
            run_line(f, line, until, true);
    }
    if (in)
        fclose(in);
}

/* ---- random lines ------------------------------------------------------------------------ */

static void search(fuzz *f, double until) {
    tc_random r = {(uint64_t)f->seed};
    char line[TC_MAX_LINE], why[TC_MESSAGE];
    tc_draft d;
    while (tc_now() < until && f->n_findings < MOST_FINDINGS && !f->trouble) {
        const tc_candidate *p = &f->selection.at[tc_below(&r, f->selection.n)];
        const tc_schedule *schedule = tc_schedule_get(p->schedule);
        if (schedule->fresh || schedule->core || schedule->alone ||
            !tc_draft_read(p->line, &d, why) || !tc_mutate(&d, &r) || !tc_draft_line(&d, line))
            continue;
        run_line(f, line, until, false);
    }
}

int tc_command_fuzz(int argc, char **argv) {
    char own[PATH_MAX], real[PATH_MAX], why[TC_VERDICT_MESSAGE];
    fuzz f = {.pool = {.timeout = 10, .jobs = 1}, .seed = time(NULL)};
    int result = read_options(argc, argv, &f);
    if (result != TC_EXIT_GOOD)
        return result;
    if (!realpath(f.pool.plugin, real)) {
        fprintf(stderr, "tenon-conform fuzz: %s: %s\n", f.pool.plugin, strerror(errno));
        return TC_EXIT_USAGE;
    }
    f.pool.plugin = real;
    if (!f.pool.worker)
        f.pool.worker = tc_own_path(own, sizeof own);
    f.findings = calloc(MOST_FINDINGS + 1, sizeof *f.findings);
    if (!f.pool.worker || !f.findings ||
        !tc_selection_add_sets(&f.selection, TC_SET_BIT(TC_STANDARD), NULL, NULL, why)) {
        fputs("tenon-conform fuzz: no cases to begin with\n", stderr);
        result = TC_EXIT_TROUBLE;
    } else {
        tc_prepare_for_children();
        tc_trial_init(&f.trial, &f.pool);
        tc_selection_settle(&f.selection);
        printf("seed %" PRId64 "\n", f.seed);
        double until = tc_now() + f.seconds;
        replay(&f, until);
        search(&f, until);
        tc_trial_finish(&f.trial);
        printf("fuzz: %zu cases, %zu findings (new: %zu)\n", f.n_cases, f.n_findings, f.n_new);
        result = f.trouble || fflush(stdout) != 0 ? TC_EXIT_TROUBLE
                 : f.n_findings                   ? TC_EXIT_BAD
                                                  : TC_EXIT_GOOD;
    }
    free(f.findings);
    tc_selection_finish(&f.selection);
    return result;
}
