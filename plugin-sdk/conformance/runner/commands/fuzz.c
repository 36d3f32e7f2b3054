/* tenon-conform fuzz: random cases, in one or several workers, and what they find. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/worker/kernel/mutate.h"
#include "plugin-sdk/conformance/runner/report/escape.h"
#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/run/kind.h"
#include "plugin-sdk/conformance/runner/run/pattern.h"
#include "plugin-sdk/conformance/runner/run/selection.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"
#include "plugin-sdk/conformance/runner/shrink/reduce.h"
#include "plugin-sdk/conformance/runner/commands/worker_options.h"

enum { MOST_FINDINGS = 500, MOST_JOBS = 64, SHRINK_SECONDS = 20 };

typedef struct finding {
    char kind[TC_MESSAGE + TC_DRAFT_NAME];
} finding;

typedef struct fuzz {
    tc_worker_pool_options pool;
    double seconds;    /* 0: no limit */
    size_t most_cases; /* 0: no limit */
    int64_t seed;
    const char *corpus; /* a folder, or NULL */
    tc_filters filters;
    tc_selection selection;
    const tc_candidate **beginnings; /* of the selection, what random lines are made from */
    size_t n_beginnings;
    double until;
    pthread_mutex_t lock; /* of what follows, and of stdout and the corpus */
    finding *findings;
    size_t n_findings, n_new, n_cases;
    bool trouble;
} fuzz;

/* One worker, and the thread that gives it lines. */
typedef struct searcher {
    fuzz *f;
    pthread_t thread;
    tc_trial trial;
    tc_reducer reducer;
    tc_random random;
} searcher;

enum { SECONDS = 512, CASES, SEED, FILTER, CORPUS };

static const struct argp_option options[] = {
    {"seconds", SECONDS, "N", 0, "how long; this or --cases must be given", 0},
    {"cases", CASES, "N", 0, "how many, however slow it is; each worker ends the one it is at", 0},
    {"seed", SEED, "N", 0, "the same cases in the same order, for each of as many workers", 0},
    {"filter", FILTER, "PATTERN", 0,
     "made from the lines it finds in the standard set: '*/convolution'; repeatable", 0},
    {"jobs", 'j', "N", 0, "workers at once (1; one for each device)", 0},
    {"corpus", CORPUS, "DIR", 0, "where findings are kept, and run again first", 0},
    {0},
};

static error_t take(int key, char *value, struct argp_state *state) {
    fuzz *f = state->input;
    char why[TC_MESSAGE];
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &f->pool;
        break;
    case SECONDS:
        f->seconds = tc_option_whole(state, "--seconds", value, 1, 1000000000);
        break;
    case CASES:
        f->most_cases = (size_t)tc_option_whole(state, "--cases", value, 1, 1000000000);
        break;
    case SEED:
        f->seed = tc_option_whole(state, "--seed", value, 0, 1000000000);
        break;
    case FILTER:
        if (!tc_filters_add(&f->filters, value, why))
            argp_error(state, "--filter: %s", why);
        break;
    case CORPUS:
        f->corpus = value;
        break;
    case 'j':
        f->pool.jobs = tc_option_whole(state, "--jobs", value, 1, MOST_JOBS);
        break;
    case ARGP_KEY_ARG:
        if (f->pool.plugin)
            argp_error(state, "one word too many: %s", value);
        f->pool.plugin = value;
        break;
    case ARGP_KEY_END:
        if (!f->pool.plugin || (f->seconds < 1 && f->most_cases < 1))
            argp_error(state, "%s is missing",
                       f->pool.plugin ? "--seconds N or --cases N" : "the plugin");
        if (f->pool.n_devices == 0)
            argp_error(state,
                       "--device: indices; `tenon-conform run` finds out how many there are");
        if (f->pool.jobs == 0)
            f->pool.jobs = f->pool.n_devices;
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
    .doc = "Runs random cases and shrinks what fails. --timeout is 10.\v"
           "Exit status: 0; 1 where something was found, 2 where the command is wrong, 3 where the "
           "search could not do its work, 4 where a filter finds none.",
    .children = children,
};

/* ---- findings ---------------------------------------------------------------------------- */

static char *kind_of(const char *line, const tc_verdict *v, char out[TC_MESSAGE]) {
    return tc_kind(line, v->status, v->requirement, v->message, out);
}

/* With the lock. */
static void keep(searcher *s, const char *line, const tc_verdict *v) {
    fuzz *f = s->f;
    char path[PATH_MAX], kind[TC_MESSAGE];
    f->n_new++;
    char command[TC_COMMAND];
    printf("%s: %s\n    %s\n", tc_status_name(v->status), v->message,
           tc_command_text(f->pool.plugin, s->trial.device, line, command));
    fflush(stdout);
    if (!f->corpus)
        return;
    snprintf(path, sizeof path, "%s/findings.txt", f->corpus);
    FILE *out = fopen(path, "a");
    bool good = out && fprintf(out, "%s # %s\n", line, kind_of(line, v, kind)) > 0;
    if (out && fclose(out) != 0)
        good = false;
    if (!good) {
        fprintf(stderr, "tenon-conform fuzz: %s: %s\n", path, strerror(errno));
        f->trouble = true;
    }
}

/* Counts a failure; false where one of its kind was found before. With the lock. */
static bool is_first(fuzz *f, const char *line, const tc_verdict *v) {
    char kind[TC_MESSAGE];
    finding found;
    snprintf(found.kind, sizeof found.kind, "%.*s %s", (int)strcspn(line, " "), line,
             kind_of(line, v, kind));
    for (size_t i = 0; i < f->n_findings; i++)
        if (strcmp(f->findings[i].kind, found.kind) == 0)
            return false;
    f->findings[f->n_findings++] = found;
    return true;
}

/* One line; `known`: it comes from the corpus. */
static void run_line(searcher *s, const char *line, bool known) {
    fuzz *f = s->f;
    char why[TC_MESSAGE];
    tc_verdict first, v;
    tc_reducer *r = &s->reducer;
    tc_trial_run(&s->trial, line, &first);
    pthread_mutex_lock(&f->lock);
    f->n_cases++;
    pthread_mutex_unlock(&f->lock);
    if (!tc_trial_failed(&first))
        return;
    tc_trial_run_alone(&s->trial, line, &v);
    bool same = tc_trial_same(line, &first, &v);
    if (!same) { /* it takes what ran before, or comes and goes */
        if (tc_trial_failed(&v))
            first = v;
        else
            first.requirement = 0;
        size_t n = strlen(first.message);
        snprintf(first.message + n, sizeof first.message - n, "; in a fresh process: %s",
                 tc_status_name(v.status));
    }
    pthread_mutex_lock(&f->lock);
    bool wanted = is_first(f, line, same ? &v : &first) && !known;
    if (wanted && !same)
        keep(s, line, &first);
    pthread_mutex_unlock(&f->lock);
    if (!wanted || !same || !tc_reduce_init(r, &s->trial, line, &v, why))
        return;
    r->until = tc_now() + SHRINK_SECONDS < f->until ? tc_now() + SHRINK_SECONDS : f->until;
    tc_reduce(r);
    pthread_mutex_lock(&f->lock);
    keep(s, r->line, &r->verdict);
    pthread_mutex_unlock(&f->lock);
}

static void replay(searcher *s) {
    fuzz *f = s->f;
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
            run_line(s, line, true);
    }
    if (in)
        fclose(in);
}

/* ---- random lines ------------------------------------------------------------------------ */

static bool goes_on(fuzz *f) {
    pthread_mutex_lock(&f->lock);
    bool on = tc_now() < f->until && f->n_findings < MOST_FINDINGS && !f->trouble &&
              (!f->most_cases || f->n_cases < f->most_cases);
    pthread_mutex_unlock(&f->lock);
    return on;
}

static bool is_draft(const char *line) {
    char why[TC_MESSAGE];
    tc_draft d;
    return tc_draft_read(line, &d, why);
}

/* Which lines random ones are made from; reading all of them as drafts would take seconds, so that
 * one is read for each filter. False where a filter finds none, having said so. */
static bool choose(fuzz *f) {
    bool finds_some[TC_MOST_FILTERS] = {false}, good = true;
    for (size_t i = 0; i < f->selection.n; i++) {
        const tc_candidate *p = &f->selection.at[i];
        const tc_schedule *schedule = tc_schedule_get(p->schedule);
        bool found = f->filters.n == 0;
        if (schedule->fresh || schedule->program != TC_PROGRAM_PLUGIN || schedule->alone)
            continue;
        for (size_t k = 0; k < f->filters.n; k++) {
            bool finds = tc_pattern_finds(f->filters.at[k], p->line);
            finds_some[k] = finds_some[k] || (finds && is_draft(p->line));
            found |= finds;
        }
        if (found)
            f->beginnings[f->n_beginnings++] = p;
    }
    for (size_t k = 0; k < f->filters.n; k++)
        if (!finds_some[k]) {
            fprintf(stderr,
                    "tenon-conform fuzz: --filter '%s' finds no line that can be changed at "
                    "random; lines of kernel/, same/ and refuse/ can be, and `tenon-conform list "
                    "--filter` shows what a filter finds\n",
                    f->filters.at[k]->text);
            good = false;
        }
    return good;
}

/* A worker's thread. The worker ends with it: it dies with the thread that started it. */
static void *search(void *context) {
    searcher *s = context;
    const fuzz *f = s->f;
    char line[TC_MAX_LINE], why[TC_MESSAGE];
    tc_draft d;
    while (goes_on(s->f)) {
        const tc_candidate *p = f->beginnings[tc_below(&s->random, f->n_beginnings)];
        if (tc_draft_read(p->line, &d, why) && tc_mutate(&d, &s->random) && tc_draft_line(&d, line))
            run_line(s, line, false);
    }
    tc_trial_finish(&s->trial);
    return NULL;
}

/* The first searcher is this thread's. */
static void search_all(fuzz *f, searcher *searchers) {
    unsigned n = 1;
    for (unsigned i = 0; i < f->pool.jobs; i++) {
        searcher *s = &searchers[i];
        s->f = f;
        s->random = (tc_random){(uint64_t)f->seed + i * 0x9e3779b97f4a7c15u};
        tc_trial_init(&s->trial, &f->pool, f->pool.devices[i % f->pool.n_devices]);
    }
    replay(&searchers[0]);
    while (n < f->pool.jobs &&
           pthread_create(&searchers[n].thread, NULL, search, &searchers[n]) == 0)
        n++;
    if (n < f->pool.jobs)
        fprintf(stderr, "tenon-conform fuzz: %u threads; there are no more\n", n);
    search(&searchers[0]);
    while (--n > 0)
        pthread_join(searchers[n].thread, NULL);
}

int tc_command_fuzz(int argc, char **argv) {
    char why[TC_VERDICT_MESSAGE];
    fuzz f = {.pool = {.timeout = 10}, .seed = time(NULL), .lock = PTHREAD_MUTEX_INITIALIZER};
    int result = TC_EXIT_TROUBLE;
    argp_parse(&argp, argc, argv, 0, NULL, &f);
    if (!tc_find_workers(&f.pool, "fuzz"))
        return TC_EXIT_USAGE;
    f.findings = calloc(MOST_FINDINGS + MOST_JOBS, sizeof *f.findings);
    searcher *searchers = calloc(f.pool.jobs, sizeof *searchers);
    if (f.findings && searchers &&
        tc_selection_add_sets(&f.selection, TC_SET_BIT(TC_STANDARD), NULL, NULL, why)) {
        tc_selection_settle(&f.selection);
        f.beginnings = calloc(f.selection.n, sizeof *f.beginnings);
    }
    if (!f.beginnings) {
        fputs("tenon-conform fuzz: no cases to begin with\n", stderr);
    } else if (!choose(&f)) {
        result = TC_EXIT_NOTHING;
    } else {
        tc_prepare_for_children();
        printf("seed %" PRId64 "\n", f.seed);
        f.until = f.seconds > 0 ? tc_now() + f.seconds : INFINITY;
        search_all(&f, searchers);
        printf("fuzz: %zu cases, %zu findings (new: %zu)\n", f.n_cases, f.n_findings, f.n_new);
        result = f.trouble || fflush(stdout) != 0 ? TC_EXIT_TROUBLE
                 : f.n_findings                   ? TC_EXIT_BAD
                                                  : TC_EXIT_GOOD;
    }
    free(searchers);
    free(f.findings);
    free(f.beginnings);
    tc_filters_finish(&f.filters);
    tc_selection_finish(&f.selection);
    return result;
}
