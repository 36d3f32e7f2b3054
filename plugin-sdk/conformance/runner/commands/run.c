/* tenon-conform run: cases on a plugin's device, in workers, with lists, a log and levels. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <errno.h>
#include <sha2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/runner/report/escape.h"
#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/run/log_header.h"
#include "plugin-sdk/conformance/runner/run/summary.h"
#include "plugin-sdk/conformance/runner/run/worker_pool.h"
#include "plugin-sdk/conformance/runner/run/progress.h"
#include "plugin-sdk/conformance/runner/commands/run_options.h"

typedef struct run {
    tc_run_options options;
    const char *lister; /* the worker that was named, whose cases are listed; or NULL */
    tc_levels levels;
    tc_expectations expectations;
    json_t *described;                /* what the worker says of the plugin, or NULL */
    char silence[TC_VERDICT_MESSAGE]; /* why it says nothing, or what is wrong; "" */
    tc_selection selection;
    size_t n_skipped;
    tc_item *items;
    tc_candidate **candidates; /* of the items */
    size_t n_items;
    tc_log log;
    tc_log_file file;
    tc_progress progress;
    size_t n_bad;
    bool trouble; /* the log could not be written, or no memory */
} run;

__attribute__((format(printf, 1, 2))) static bool say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("tenon-conform run: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

/* ---- before ------------------------------------------------------------------------------ */

/* What comes as a signal is read in the pool's loop. */
static bool prepare_process(run *r) {
    tc_prepare_for_children();
    sigset_t set;
    sigemptyset(&set);
    static const int taken[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        struct sigaction was; /* under nohup SIGHUP stays ignored */
        if (taken[i] == SIGCHLD ||
            (sigaction(taken[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN))
            sigaddset(&set, taken[i]);
    }
    signal(SIGXFSZ, SIG_IGN); /* a write that meets the limit says so instead */
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return say("%s", strerror(errno));
    r->options.pool.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return r->options.pool.signals >= 0 || say("%s", strerror(errno));
}

/* The levels that are asked for, and the sets that show them where none was named. */
static bool read_levels(run *r) {
    tc_run_options *o = &r->options;
    char why[TC_VERDICT_MESSAGE];
    tc_sets sets = o->levels.n ? 0 : TC_SET_BIT(TC_STANDARD);
    if (!tc_levels_builtin(&r->levels, why))
        return say("%s", why);
    for (size_t i = 0; i < o->levels.n; i++) {
        tc_level *level = tc_levels_find(&r->levels, o->levels.at[i]);
        if (!level)
            return say("no level is named %.200s", o->levels.at[i]);
        level->asked = true;
        sets = tc_sets_join(sets, tc_level_sets(&r->levels, level));
    }
    o->sets = o->sets ? o->sets : sets;
    return true;
}

/* All of the sets, and what was asked for beside them. */
static bool read_selection(run *r) {
    const tc_run_options *o = &r->options;
    char why[TC_VERDICT_MESSAGE];
    if (!tc_selection_add_sets(&r->selection, o->sets, r->lister, r->options.pool.core_worker, why))
        return say("%s", why);
    size_t n_set = r->selection.n;
    for (size_t i = 0; i < o->cases.n; i++)
        if (!tc_selection_add(&r->selection, o->cases.at[i], false, why))
            return say("%s", why);
    for (size_t i = 0; i < o->case_files.n; i++)
        if (!tc_selection_add_file(&r->selection, o->case_files.at[i], why))
            return say("%s", why);
    bool all = o->cases.n + o->case_files.n == 0;
    for (size_t i = 0; i < r->selection.n; i++)
        r->selection.at[i].selected = all || i >= n_set;
    tc_selection_settle(&r->selection);
    for (unsigned i = 0; i < r->levels.n; i++)
        if (r->levels.at[i].asked)
            tc_level_ask(&r->levels, &r->levels.at[i], &r->selection);
    for (size_t i = 0; all && o->levels.n && i < r->selection.n; i++)
        r->selection.at[i].selected = r->selection.at[i].asked;
    return true;
}

static bool filter(run *r) {
    const tc_run_options *o = &r->options;
    tc_pattern *patterns[TC_MOST_WORDS];
    size_t n = 0;
    char why[TC_MESSAGE];
    bool good = true;
    for (; good && n < o->filters.n; n += good)
        good = (patterns[n] = tc_pattern_create(o->filters.at[n], why)) ||
               say("--filter %.500s: %s", o->filters.at[n], why);
    for (size_t i = 0; good && n > 0 && i < r->selection.n; i++) {
        bool found = false;
        for (size_t k = 0; k < n && !found; k++)
            found = tc_pattern_finds(patterns[k], r->selection.at[i].line);
        r->selection.at[i].selected &= found;
    }
    while (n)
        tc_pattern_destroy(patterns[--n]);
    return good;
}

/* What an interrupted log has is not run again. */
static bool read_resumed(run *r, const char *sha256) {
    const char *path = r->options.resume;
    char why[TC_VERDICT_MESSAGE], sets[TC_SETS_NAME];
    if (!tc_log_read(path, &r->log, why))
        return say("%s", why);
    const char *logged = tc_log_plugin(&r->log, "sha256");
    if (strcmp(logged, sha256) != 0)
        return say("%s is of another file: its plugin has SHA-256 %.16s..., this %.16s"
                   "...; begin a new log",
                   path, logged, sha256);
    double device = -1;
    const char *set = tc_json_string(r->log.head, "set");
    tc_json_number(r->log.head, "device", &device);
    if (strcmp(set, tc_sets_name(r->options.sets, sets)) != 0 || device != r->options.pool.device)
        return say("%.500s is of --set %.200s --device %g; go on with these, or begin anew", path,
                   set, device);
    if (r->log.truncated)
        fprintf(stderr, "%s: its end was cut; good up to byte %jd, that is %zu cases\n", path,
                (intmax_t)r->log.whole, r->log.n_results);
    for (size_t i = 0; i < r->log.n_results; i++) {
        tc_result *result = &r->log.results[i];
        const tc_expectation *entry;
        tc_candidate *p = tc_selection_find(&r->selection, result->line);
        if (p)
            p->ran = true;
        tc_expectations_judge(&r->expectations, result->line, result->found,
                              &entry); /* marks entries as used */
        r->n_bad += tc_status_is_bad(result->status);
    }
    return true;
}

static bool make_items(run *r) {
    tc_selection_order(&r->selection);
    r->items = calloc(r->selection.n + 1, sizeof *r->items);
    r->candidates = calloc(r->selection.n + 1, sizeof *r->candidates);
    if (!r->items || !r->candidates)
        return say("no memory for the cases");
    for (size_t i = 0; i < r->selection.n; i++) {
        tc_candidate *p = &r->selection.at[i];
        if (!p->selected || p->ran)
            continue;
        if (tc_expectations_skip(&r->expectations, p->line)) {
            r->n_skipped++;
            continue;
        }
        r->items[r->n_items] = (tc_item){p->line, p->schedule};
        r->candidates[r->n_items++] = p;
    }
    return true;
}

/* Asks the worker what the plugin is, and settles which entries of the lists are about that. */
static void describe(run *r) {
    char described[TC_VERDICT_LINE + 2], today[16];
    time_t now = time(NULL);
    struct tm utc;
    if (tc_worker_pool_describe(&r->options.pool, described, r->silence) &&
        (r->described = tc_json_parse(described, strlen(described))))
        snprintf(r->silence, sizeof r->silence, "%.1000s", tc_json_string(r->described, "error"));
    strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&now, &utc));
    tc_expectations_settle(&r->expectations, today, r->described);
}

static bool write_head(run *r, const char *sha256, int argc, char **argv) {
    const tc_run_options *o = &r->options;
    tc_log_header head = {.plugin = o->pool.plugin,
                          .device = o->pool.device,
                          .sets = o->sets,
                          .options = argv + 1,
                          .n_options = argc - 1,
                          .lists = o->lists.at,
                          .n_lists = o->lists.n,
                          .n_planned = r->n_items};
    memcpy(head.sha256, sha256, TC_SHA256_HEX);
    char why[TC_VERDICT_MESSAGE];
    head.described = r->described;
    head.silence = *r->silence ? r->silence : NULL;
    if (*r->silence)
        fprintf(stderr, "%s: %s\n", o->pool.plugin, r->silence);
    r->log.head = tc_log_header_make(&head);
    if (!r->log.head)
        return say("no memory for the log");
    if (o->log && !tc_log_open(&r->file, o->log, 0, why))
        return say("%s", why);
    return tc_log_put(&r->file, r->log.head, why) || say("%s", why);
}

static bool prepare(run *r, int argc, char **argv) {
    const tc_run_options *o = &r->options;
    char why[TC_VERDICT_MESSAGE], sha256[TC_SHA256_HEX];
    if (!prepare_process(r) || !read_levels(r))
        return false;
    for (size_t i = 0; i < o->lists.n; i++)
        if (!tc_expectations_read(&r->expectations, o->lists.at[i], why))
            return say("%s", why);
    if (!SHA256File(o->pool.plugin, sha256))
        return say("%.900s: %s", o->pool.plugin, strerror(errno));
    if (!read_selection(r) || !filter(r))
        return false;
    describe(r);
    if (o->resume && !read_resumed(r, sha256))
        return false;
    if (!make_items(r))
        return false;
    if (!o->resume)
        return write_head(r, sha256, argc, argv);
    json_decref(r->log.end);
    r->log.end = NULL;
    if (!tc_log_open(&r->file, o->resume, r->log.whole, why))
        return say("%s", why);
    json_t *resume = json_pack("{s:s}", "record", "resume");
    bool good = tc_log_put(&r->file, resume, why) || say("%s", why);
    json_decref(resume);
    return good;
}

/* ---- during ------------------------------------------------------------------------------ */

static bool stop(run *r, const char *why) {
    tc_progress_clear(&r->progress);
    say("%s", why);
    r->trouble = true;
    return false;
}

static void show(run *r, const tc_result *result) {
    tc_progress_clear(&r->progress);
    char requirement[32] = "";
    if (result->requirement)
        snprintf(requirement, sizeof requirement, " TNP-%u:", result->requirement);
    char command[TC_COMMAND];
    fprintf(stderr, "%s:%s %s\n    %s\n", tc_status_name(result->status), requirement,
            result->message, tc_command_text(r->options.pool.plugin, result->line, command));
    if (result->reason)
        fprintf(stderr, "    listed: %s\n", result->reason);
}

static bool done(void *context, size_t item, const tc_verdict *found) {
    run *r = context;
    char why[TC_VERDICT_MESSAGE];
    const tc_expectation *entry;
    tc_verdict v = *found;
    tc_candidate *p = r->candidates[item];
    v.status = tc_expectations_judge(&r->expectations, p->line, v.status, &entry);
    if (v.status == TC_XPASS)
        snprintf(v.message, sizeof v.message,
                 "it passes; take the entry out of the list, or make it narrower: %.800s",
                 entry->where);
    char expired[2 * TC_MAX_LINE];
    const char *reason = entry ? entry->reason : NULL;
    if (!entry && tc_status_is_bad(v.status) &&
        (entry = tc_expectations_expired(&r->expectations, p->line))) {
        snprintf(expired, sizeof expired, "%.500s expired on %s and counts no more: %.1000s",
                 entry->where, entry->until, entry->reason);
        reason = expired;
    }
    const tc_result *result = tc_log_add(&r->log, p->line, &v, found->status, reason);
    if (!result)
        return stop(r, "no memory for results; --filter runs fewer cases");
    if (!tc_log_put_result(&r->file, result, why))
        return stop(r, why);
    p->ran = true;
    r->progress.done++;
    if (tc_status_is_bad(v.status)) {
        r->progress.bad = ++r->n_bad;
        show(r, result);
    }
    return r->options.stop_after == 0 || r->n_bad < r->options.stop_after;
}

static bool note(void *context, const char *text) {
    run *r = context;
    char why[TC_VERDICT_MESSAGE];
    tc_progress_clear(&r->progress);
    fprintf(stderr, "note: %s\n", text);
    if (!tc_log_add_note(&r->log, text))
        return stop(r, "no memory");
    return tc_log_put_note(&r->file, text, why) || stop(r, why);
}

static void tick(void *context) {
    tc_progress_tick(&((run *)context)->progress);
}

/* ---- after ------------------------------------------------------------------------------- */

/* Entries whose lines this set does not have are looked up in the whole of it, so that a list may
 * speak of more than one set. */
static bool count_entries(run *r) {
    char why[TC_VERDICT_MESSAGE];
    bool strange = false;
    for (size_t i = 0; i < r->selection.n; i++)
        tc_expectations_count(&r->expectations, r->selection.at[i].line, r->selection.at[i].ran);
    for (size_t i = 0; i < r->expectations.n; i++)
        strange |= r->expectations.entries[i].n_lines == 0;
    tc_sets all = TC_SET_BIT(TC_EXHAUSTIVE) | TC_SET_BIT(TC_PERF);
    if (!strange || r->options.sets == all)
        return true;
    tc_selection whole = {0};
    bool good = tc_selection_add_sets(&whole, all, r->lister, r->options.pool.core_worker, why);
    for (size_t i = 0; good && i < r->expectations.n; i++) {
        tc_expectation *e = &r->expectations.entries[i];
        for (size_t k = 0; e->n_lines == 0 && k < whole.n; k++)
            e->n_lines += tc_pattern_finds(e->pattern, whole.at[k].line);
    }
    tc_selection_finish(&whole);
    return good || say("%s", why);
}

/* Levels that did not pass, and entries that did nothing, in words. */
static void explain(const run *r) {
    tc_needs needs = {0};
    size_t i;
    const json_t *level, *entry;
    if (!r->options.quiet)
        json_array_foreach(tc_log_levels(&r->log), i,
                           level) if (strcmp(tc_json_string(level, "state"), "passed") != 0)
            fprintf(stderr, "level %s: %s: %s\n", tc_json_string(level, "name"),
                    tc_json_string(level, "state"), tc_json_string(level, "why"));
    for (i = 0; i < r->levels.n; i++)
        if (r->levels.at[i].asked)
            tc_level_needs(&r->levels, &r->levels.at[i], &r->log, &needs);
    tc_needs_settle(&needs);
    tc_needs_print(&needs, stderr);
    tc_needs_finish(&needs);
    json_array_foreach(json_object_get(r->log.end, "unused"), i, entry)
        fprintf(stderr, "unused entry: %s\n", json_string_value(entry));
}

static int conclude(run *r, bool interrupted, double seconds) {
    char why[TC_VERDICT_MESSAGE];
    bool good = false;
    if (!interrupted && r->n_items + r->log.n_results == 0) {
        say("no case was selected; tenon-conform list shows them");
        return TC_EXIT_USAGE;
    }
    if (!interrupted && !count_entries(r))
        return TC_EXIT_TROUBLE;
    r->log.end = tc_summary_make(&r->log, &r->selection, &r->expectations, &r->levels,
                                 r->options.sets, r->n_skipped, interrupted, seconds, &good);
    if (!r->log.end) {
        say("no memory for the end");
        return TC_EXIT_TROUBLE;
    }
    bool written = tc_log_put(&r->file, r->log.end, why) || say("%s", why);
    explain(r);
    /* A report on stdout is alone there. */
    bool taken = false;
    for (size_t i = 0; i < TC_N_REPORTS; i++) {
        const char *path = r->options.reports[i];
        taken |= path && strcmp(path, "-") == 0;
        if (path && !tc_report_write(path, tc_reports[i], &r->log, why))
            written = say("%s", why);
    }
    if (fprintf(taken ? stderr : stdout, "%s\n", tc_json_string(r->log.end, "summary")) < 0 ||
        fflush(stdout) != 0)
        written = say("the last line could not be printed");
    if (interrupted) {
        fprintf(stderr, "interrupted%s%s\n", r->file.path ? "; go on with --resume " : "",
                r->file.path ? r->file.path : "");
        return TC_EXIT_INTERRUPTED;
    }
    return !written ? TC_EXIT_TROUBLE : good ? TC_EXIT_GOOD : TC_EXIT_BAD;
}

static void finish(run *r) {
    if (r->options.pool.signals >= 0)
        close(r->options.pool.signals);
    tc_log_close(&r->file);
    tc_log_finish(&r->log);
    tc_expectations_finish(&r->expectations);
    json_decref(r->described);
    tc_levels_finish(&r->levels);
    tc_selection_finish(&r->selection);
    free(r->items);
    free(r->candidates);
}

int tc_command_run(int argc, char **argv) {
    static run r = {.file.fd = -1};
    tc_run_options_read(argc, argv, &r.options);
    r.options.pool.signals = -1;
    r.lister = r.options.pool.worker;
    int result = TC_EXIT_USAGE;
    if (tc_find_workers(&r.options.pool, "run") && prepare(&r, argc, argv)) {
        tc_worker_pool_events events = {&r, done, note, tick};
        tc_progress_init(&r.progress, r.n_items, r.options.quiet);
        double start = tc_now();
        tc_worker_pool_end end = tc_worker_pool_run(r.items, r.n_items, &r.options.pool, &events);
        tc_progress_clear(&r.progress);
        result = r.trouble ? TC_EXIT_TROUBLE
                           : conclude(&r, end == TC_WORKER_POOL_INTERRUPTED, tc_now() - start);
    }
    finish(&r);
    return result;
}
