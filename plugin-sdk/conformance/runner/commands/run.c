/* tenon-conform run: cases on a plugin's device, in workers, with lists, a log and levels. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <errno.h>
#include <sha2.h>
#include <signal.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/runner/report/escape.h"
#include "plugin-sdk/conformance/runner/run/child.h"
#include "plugin-sdk/conformance/runner/run/groups.h"
#include "plugin-sdk/conformance/runner/run/log_header.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"
#include "plugin-sdk/conformance/runner/run/summary.h"
#include "plugin-sdk/conformance/runner/run/worker_pool.h"
#include "plugin-sdk/conformance/runner/run/progress.h"
#include "plugin-sdk/conformance/runner/commands/run_selection.h"

enum { SHOWN = 3 }; /* of equal failures, as they come */

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
    tc_groups groups; /* of what is bad */
    tc_log_file file;
    tc_progress progress;
    size_t n_bad;
    bool trouble; /* the log could not be written, or no memory */
} run;

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
        return tc_run_say("%s", strerror(errno));
    r->options.pool.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return r->options.pool.signals >= 0 || tc_run_say("%s", strerror(errno));
}

/* The devices of a log, as tc_devices_text has them. */
static void logged_devices(const json_t *head, char out[512]) {
    size_t i, n = 0;
    const json_t *device, *devices = json_object_get(head, "devices");
    double index = -1;
    tc_json_number(head, "device", &index);
    snprintf(out, 512, "%g", index);
    json_array_foreach(devices, i, device) {
        tc_json_number(device, "index", &index);
        n += n < 512 ? (size_t)snprintf(out + n, 512 - n, "%s%g", i ? "," : "", index) : 0;
    }
}

/* What an interrupted log has is not run again. */
static bool read_resumed(run *r, const char *sha256) {
    const char *path = r->options.resume;
    char why[TC_VERDICT_MESSAGE], sets[TC_SETS_NAME];
    if (!tc_log_read(path, &r->log, why))
        return tc_run_say("%s", why);
    const char *logged = tc_log_plugin(&r->log, "sha256");
    if (strcmp(logged, sha256) != 0)
        return tc_run_say("%s is of another file: its plugin has SHA-256 %.16s..., this %.16s"
                          "...; begin a new log",
                          path, logged, sha256);
    const char *set = tc_json_string(r->log.head, "set");
    char shard[32] = "", before[512], now[512];
    if (r->options.n_shards)
        snprintf(shard, sizeof shard, "%u/%u", r->options.shard, r->options.n_shards);
    logged_devices(r->log.head, before);
    if (strcmp(set, tc_sets_name(r->options.sets, sets)) != 0 ||
        strcmp(tc_json_string(r->log.head, "shard"), shard) != 0 ||
        strcmp(before, tc_devices_text(&r->options.pool, now)) != 0)
        return tc_run_say(
            "%.500s is of --set %.200s --device %s%s%.30s; go on with these, or begin anew", path,
            set, before, *tc_json_string(r->log.head, "shard") ? " --shard " : "",
            tc_json_string(r->log.head, "shard"));
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
        return tc_run_say("no memory for the cases");
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

/* What the plugin says of a device; NULL with `why`. To be given back. */
static json_t *describe(run *r, unsigned device, char why[TC_VERDICT_MESSAGE]) {
    char text[TC_VERDICT_LINE + 2];
    *why = '\0';
    json_t *said = tc_worker_describe(&r->options.pool, device, text, why)
                       ? tc_json_parse(text, strlen(text))
                       : NULL;
    if (said)
        snprintf(why, TC_VERDICT_MESSAGE, "%.1000s", tc_json_string(said, "error"));
    if (*why)
        fprintf(stderr, "%s, device %u: %s\n", r->options.pool.plugin, device, why);
    return said;
}

/* Finds out how many devices there are, where all are meant. */
static void count_devices(run *r) {
    tc_worker_pool_options *pool = &r->options.pool;
    char why[TC_VERDICT_MESSAGE];
    double n = 1;
    if (pool->n_devices == 0) {
        json_t *said = describe(r, 0, why);
        tc_json_number(said, "n_devices", &n);
        json_decref(said);
        pool->n_devices = n < 1 ? 1 : n > TC_MOST_DEVICES ? TC_MOST_DEVICES : (unsigned)n;
        for (unsigned i = 0; i < pool->n_devices; i++)
            pool->devices[i] = i;
    }
    pool->jobs = pool->jobs ? pool->jobs : pool->n_devices;
    r->file.names_devices = pool->n_devices > 1;
}

/* Several devices, each with what is known of it. */
static json_t *describe_all(run *r, json_t *first) {
    static const char *const members[] = {"device", "driver", "firmware", "error"};
    json_t *devices = json_array();
    for (unsigned i = 0; i < r->options.pool.n_devices; i++) {
        char why[TC_VERDICT_MESSAGE];
        json_t *said = i ? describe(r, r->options.pool.devices[i], why) : json_incref(first);
        json_t *made = json_pack("{s:I}", "index", (json_int_t)r->options.pool.devices[i]);
        for (size_t k = 0; k < sizeof members / sizeof *members; k++)
            if (json_object_get(said, members[k]))
                json_object_set(made, members[k], json_object_get(said, members[k]));
        json_array_append_new(devices, made);
        json_decref(said);
    }
    return devices;
}

/* Settles which entries of the lists are about this plugin, on its first device, and today. */
static void settle_entries(run *r) {
    char today[16];
    time_t now = time(NULL);
    struct tm utc;
    strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&now, &utc));
    r->described = describe(r, r->options.pool.devices[0], r->silence);
    tc_expectations_settle(&r->expectations, today, r->described);
}

static bool is_part(const tc_run_options *o) {
    return o->filters.n + o->cases.n + o->case_files.n > 0;
}

static bool write_head(run *r, const char *sha256, int argc, char **argv) {
    const tc_run_options *o = &r->options;
    tc_log_header head = {.plugin = o->pool.plugin,
                          .device = o->pool.devices[0],
                          .sets = o->sets,
                          .part = is_part(o),
                          .shard = o->shard,
                          .n_shards = o->n_shards,
                          .options = argv + 1,
                          .n_options = argc - 1,
                          .lists = o->lists.at,
                          .n_lists = o->lists.n,
                          .n_planned = r->n_items};
    memcpy(head.sha256, sha256, TC_SHA256_HEX);
    char why[TC_VERDICT_MESSAGE];
    head.described = r->described;
    head.silence = *r->silence ? r->silence : NULL;
    head.devices = o->pool.n_devices > 1 ? describe_all(r, r->described) : NULL;
    r->log.head = tc_log_header_make(&head);
    json_decref(head.devices);
    if (!r->log.head)
        return tc_run_say("no memory for the log");
    if (o->log && !tc_log_open(&r->file, o->log, 0, why))
        return tc_run_say("%s", why);
    return tc_log_put(&r->file, r->log.head, why) || tc_run_say("%s", why);
}

/* What workers print goes beside the log, unless another file was named; a new log has a new one. */
static void name_output(run *r) {
    static char path[PATH_MAX];
    const char *log = r->options.log ? r->options.log : r->options.resume;
    if (r->options.pool.output || !log || strncmp(log, "/dev/", 5) == 0)
        return;
    snprintf(path, sizeof path, "%s.output", log);
    if (!r->options.resume)
        remove(path);
    r->options.pool.output = path;
}

static bool prepare(run *r, int argc, char **argv) {
    const tc_run_options *o = &r->options;
    char why[TC_VERDICT_MESSAGE], sha256[TC_SHA256_HEX];
    if (!prepare_process(r))
        return false;
    count_devices(r);
    for (size_t i = 0; i < o->lists.n; i++)
        if (!tc_expectations_read(&r->expectations, o->lists.at[i], why))
            return tc_run_say("%s", why);
    if (!SHA256File(o->pool.plugin, sha256))
        return tc_run_say("%.900s: %s", o->pool.plugin, strerror(errno));
    if (!tc_run_select(&r->options, r->lister, &r->levels, &r->selection))
        return false;
    settle_entries(r);
    if (o->resume && !read_resumed(r, sha256))
        return false;
    if (!make_items(r))
        return false;
    if (!o->resume) {
        bool good = write_head(r, sha256, argc, argv);
        name_output(r);
        return good;
    }
    name_output(r);
    json_decref(r->log.end);
    r->log.end = NULL;
    if (!tc_log_open(&r->file, o->resume, r->log.whole, why))
        return tc_run_say("%s", why);
    json_t *resume = json_pack("{s:s}", "record", "resume");
    bool good = tc_log_put(&r->file, resume, why) || tc_run_say("%s", why);
    json_decref(resume);
    return good;
}

/* ---- during ------------------------------------------------------------------------------ */

static bool stop(run *r, const char *why) {
    tc_progress_clear(&r->progress);
    tc_run_say("%s", why);
    r->trouble = true;
    return false;
}

/* The first few of those that are equal; show_groups has the rest. */
static bool show(run *r, const tc_result *result) {
    const tc_group *group = tc_groups_add(&r->groups, &r->log, (size_t)(result - r->log.results));
    if (!group)
        return stop(r, "no memory for failures");
    if (group->n > SHOWN)
        return true;
    tc_progress_clear(&r->progress);
    char requirement[32] = "";
    if (result->requirement)
        snprintf(requirement, sizeof requirement, " TNP-%u:", result->requirement);
    char command[TC_COMMAND];
    fprintf(stderr, "%s:%s %s\n    %s\n", tc_status_name(result->status), requirement,
            result->message,
            tc_command_text(r->options.pool.plugin, result->device, result->line, command));
    if (result->reason)
        fprintf(stderr, "    listed: %s\n", result->reason);
    if (group->n == SHOWN)
        fputs("    equal ones that follow are counted, and told at the end\n", stderr);
    return true;
}

/* How many there were of what was shown a few times. */
static void show_groups(run *r) {
    tc_groups_order(&r->groups);
    for (size_t i = 0; i < r->groups.n && r->groups.at[i]->n > SHOWN; i++) {
        const tc_result *first = &r->log.results[r->groups.at[i]->first];
        char subjects[1024], text[TC_GROUP_TEXT];
        fprintf(stderr, "%zu x %s\n    %s\n", r->groups.at[i]->n, tc_group_text(first, text),
                tc_group_subjects(r->groups.at[i], subjects, sizeof subjects));
    }
}

static bool given_up(void *context, size_t first, size_t n, const char *why) {
    run *r = context;
    const char *class = tc_schedule_get(r->items[first].schedule)->class;
    tc_progress_clear(&r->progress);
    fprintf(stderr, "%s/ is given up, %zu cases will not run: %s\n", class, n, why);
    tc_progress_drop(&r->progress, r->items + first, n);
    return tc_log_add_given_up(&r->log, class, n, why) || stop(r, "no memory");
}

static bool done(void *context, size_t item, unsigned device, const tc_verdict *found) {
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
    tc_result *result = tc_log_add(&r->log, p->line, &v, found->status, reason);
    if (!result)
        return stop(r, "no memory for results; --filter runs fewer cases");
    result->device = device;
    if (!tc_log_put_result(&r->file, result, why))
        return stop(r, why);
    p->ran = true;
    tc_progress_done(&r->progress, &r->items[item]);
    if (tc_status_is_bad(v.status)) {
        r->progress.bad = ++r->n_bad;
        if (!show(r, result))
            return false;
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
    return good || tc_run_say("%s", why);
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
    if (!interrupted && r->n_items + r->log.n_results + r->n_skipped == 0 && !r->options.n_shards) {
        tc_run_say("no case is what was asked for; tenon-conform list shows them");
        return TC_EXIT_NOTHING;
    }
    if (!interrupted && !count_entries(r))
        return TC_EXIT_TROUBLE;
    const tc_run_options *o = &r->options;
    tc_summary summary = {.log = &r->log,
                          .selection = &r->selection,
                          .expectations = &r->expectations,
                          .levels = &r->levels,
                          .sets = o->sets,
                          .whole = !is_part(o) && o->levels.n == 0,
                          .shard = o->n_shards > 1,
                          .interrupted = interrupted,
                          .n_skipped = r->n_skipped,
                          .seconds = seconds};
    r->log.end = tc_summary_make(&summary, &good);
    if (!r->log.end) {
        tc_run_say("no memory for the end");
        return TC_EXIT_TROUBLE;
    }
    bool written = tc_log_put(&r->file, r->log.end, why) || tc_run_say("%s", why);
    show_groups(r);
    explain(r);
    /* A report on stdout is alone there. */
    bool taken = false;
    for (size_t i = 0; i < TC_N_REPORTS; i++) {
        const char *path = o->reports.paths[i];
        taken |= path && strcmp(path, "-") == 0;
        if (path && !tc_report_write(path, tc_reports[i], &r->log, &o->reports, why))
            written = tc_run_say("%s", why);
    }
    if (fprintf(taken ? stderr : stdout, "%s\n", tc_json_string(r->log.end, "summary")) < 0 ||
        fflush(stdout) != 0)
        written = tc_run_say("the last line could not be printed");
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
    tc_groups_finish(&r->groups);
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
        tc_worker_pool_events events = {&r, done, given_up, note, tick};
        tc_progress_init(&r.progress, r.items, r.n_items, r.options.quiet);
        double start = tc_now();
        tc_worker_pool_end end = tc_worker_pool_run(r.items, r.n_items, &r.options.pool, &events);
        tc_progress_clear(&r.progress);
        result = r.trouble ? TC_EXIT_TROUBLE
                           : conclude(&r, end == TC_WORKER_POOL_INTERRUPTED, tc_now() - start);
    }
    finish(&r);
    return result;
}
