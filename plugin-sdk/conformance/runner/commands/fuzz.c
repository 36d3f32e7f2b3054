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

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/worker/kernel/mutate.h"
#include "plugin-sdk/conformance/runner/report/escape.h"
#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/run/selection.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"
#include "plugin-sdk/conformance/runner/shrink/reduce.h"
#include "plugin-sdk/conformance/runner/commands/worker_options.h"

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

enum { SECONDS = 512, SEED, CORPUS };

static const struct argp_option options[] = {
    {"seconds", SECONDS, "N", 0, "how long; must be given", 0},
    {"seed", SEED, "N", 0, "the same cases in the same order", 0},
    {"corpus", CORPUS, "DIR", 0, "where findings are kept, and run again first", 0},
    {0},
};

static error_t take(int key, char *value, struct argp_state *state) {
    fuzz *f = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &f->pool;
        break;
    case SECONDS:
        f->seconds = tc_option_whole(state, "--seconds", value, 1, 1000000000);
        break;
    case SEED:
        f->seed = tc_option_whole(state, "--seed", value, 0, 1000000000);
        break;
    case CORPUS:
        f->corpus = value;
        break;
    case ARGP_KEY_ARG:
        if (f->pool.plugin)
            argp_error(state, "one word too many: %s", value);
        f->pool.plugin = value;
        break;
    case ARGP_KEY_END:
        if (!f->pool.plugin || f->seconds < 1)
            argp_error(state, "%s is missing", f->pool.plugin ? "--seconds N" : "the plugin");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp_child children[] = {{&tc_worker_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .options = options,
    .parser = take,
    .args_doc = "PLUGIN.so",
    .doc = "Runs random cases, one after another, and shrinks what fails. --timeout is 10.\v"
           "Exit status: 0; 1 where something was found, 2 where the command is wrong, 3 where the "
           "search could not do its work.",
    .children = children,
};

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
    char why[TC_VERDICT_MESSAGE];
    fuzz f = {.pool = {.timeout = 10, .jobs = 1}, .seed = time(NULL)};
    int result = TC_EXIT_TROUBLE;
    argp_parse(&argp, argc, argv, 0, NULL, &f);
    if (!tc_find_workers(&f.pool, "fuzz"))
        return TC_EXIT_USAGE;
    f.findings = calloc(MOST_FINDINGS + 1, sizeof *f.findings);
    if (!f.findings ||
        !tc_selection_add_sets(&f.selection, TC_SET_BIT(TC_STANDARD), NULL, NULL, why)) {
        fputs("tenon-conform fuzz: no cases to begin with\n", stderr);
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
