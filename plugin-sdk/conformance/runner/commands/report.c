/* tenon-conform report: reports made from a log, or from those of all shards of a run. */
#include "plugin-sdk/conformance/runner/commands/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/commands/worker_options.h"
#include "plugin-sdk/conformance/runner/report/report.h"
#include "plugin-sdk/conformance/runner/run/merge.h"

enum { LEVEL = 512, WORKER, CORE_WORKER, MOST_LEVELS = 16 };

typedef struct report_options {
    const char **logs; /* room for every word */
    size_t n_logs;
    const char *levels[MOST_LEVELS];
    size_t n_levels;
    const char *worker, *core_worker;
    tc_report_options reports;
} report_options;

static const struct argp_option options[] = {
    {"level", LEVEL, "LEVEL", 0, "succeed only if it holds of all logs together; repeatable", 0},
    {"worker", WORKER, "PROGRAM", 0, "the worker whose cases ran, if it was another than ours", 0},
    {"core-worker", CORE_WORKER, "PROGRAM", 0, "where tenon-conform-core is", 0},
    {0},
};

static error_t take(int key, char *value, struct argp_state *state) {
    report_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->reports;
        break;
    case LEVEL:
        if (o->n_levels == MOST_LEVELS)
            argp_error(state, "too many levels");
        o->levels[o->n_levels++] = value;
        break;
    case WORKER:
        o->worker = value;
        break;
    case CORE_WORKER:
        o->core_worker = value;
        break;
    case ARGP_KEY_ARG:
        o->logs[o->n_logs++] = value;
        break;
    case ARGP_KEY_END:
        if (!o->n_logs)
            argp_error(state, "the log is missing");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static bool say(const char *what, const char *why) {
    fprintf(stderr, "tenon-conform report: %s%s%s\n", what, *what ? ": " : "", why);
    return false;
}

static bool read(const char *path, tc_log *log) {
    char why[TC_VERDICT_MESSAGE];
    if (!tc_log_read(path, log, why))
        return say("", why);
    if (log->truncated)
        fprintf(stderr, "%s: its end was cut; good up to byte %jd, that is %zu cases\n", path,
                (intmax_t)log->whole, log->n_results);
    return true;
}

static bool read_levels(const report_options *o, tc_levels *levels) {
    char why[TC_VERDICT_MESSAGE];
    if (!tc_levels_builtin(levels, why))
        return say("", why);
    for (size_t i = 0; i < o->n_levels; i++) {
        tc_level *level = tc_levels_find(levels, o->levels[i]);
        if (!level)
            return say(o->levels[i], "no level has that name");
        level->asked = true;
    }
    return true;
}

/* Levels of all logs together, on stderr where they do not hold. */
static bool judge(const report_options *o, tc_log *merged, bool *out_good) {
    char why[TC_VERDICT_MESSAGE];
    tc_levels levels = {0};
    tc_selection selection = {0};
    tc_sets sets = 0;
    size_t i;
    const json_t *level;
    bool good = read_levels(o, &levels);
    if (good && !tc_sets_find(tc_json_string(merged->head, "set"), &sets))
        good = say(o->logs[0], "it names no set of this suite");
    if (good && (!tc_selection_add_sets(&selection, sets, o->worker, o->core_worker, why) ||
                 !tc_merge_end(merged, &selection, &levels, sets, out_good, why)))
        good = say("", why);
    json_array_foreach(tc_log_levels(merged), i,
                       level) if (strcmp(tc_json_string(level, "state"), "passed") != 0)
        fprintf(stderr, "level %s: %s: %s\n", tc_json_string(level, "name"),
                tc_json_string(level, "state"), tc_json_string(level, "why"));
    tc_selection_finish(&selection);
    tc_levels_finish(&levels);
    return good;
}

/* The one log as it is; several, or one of which levels are asked, as one run. */
static bool collect(const report_options *o, tc_log *out, bool *out_good) {
    char why[TC_VERDICT_MESSAGE];
    if (o->n_logs == 1 && o->n_levels == 0)
        return read(o->logs[0], out);
    for (size_t i = 0; i < o->n_logs; i++) {
        tc_log log = {0};
        if (!read(o->logs[i], &log))
            return false;
        if (!tc_merge_add(out, &log, why))
            return say(o->logs[i], why);
    }
    return judge(o, out, out_good);
}

int tc_command_report(int argc, char **argv) {
    static const struct argp_child children[] = {{&tc_report_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = take,
        .args_doc = "LOG...",
        .doc = "Makes reports of a log (FILE -: stdout), or of the logs of all shards of a run, "
               "of which levels are judged together; without one, prints the last line.\v"
               "Exit status: 0; 1 where a level that is asked for does not hold or something is "
               "wrong beside, 2 where the command is wrong, 3 where a file cannot be read or "
               "written.",
        .children = children,
    };
    report_options o = {.core_worker = tc_find_core_worker(),
                        .logs = calloc((size_t)argc + 1, sizeof *o.logs)};
    char why[TC_VERDICT_MESSAGE];
    tc_log log = {0};
    bool any = false, good = true;
    if (!o.logs)
        return TC_EXIT_TROUBLE;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    int result = collect(&o, &log, &good) ? TC_EXIT_GOOD : TC_EXIT_TROUBLE;
    for (size_t i = 0; i < TC_N_REPORTS && result != TC_EXIT_TROUBLE; i++) {
        const char *path = o.reports.paths[i];
        any |= path != NULL;
        if (path && !tc_report_write(path, tc_reports[i], &log, &o.reports, why)) {
            say("", why);
            result = TC_EXIT_TROUBLE;
        }
    }
    if (result == TC_EXIT_GOOD && !any) {
        if (*tc_json_string(log.end, "summary"))
            puts(tc_json_string(log.end, "summary"));
        else
            printf("%zu cases; the run did not come to its end\n", log.n_results);
    }
    if (result == TC_EXIT_GOOD && o.n_levels && !good)
        result = TC_EXIT_BAD;
    tc_log_finish(&log);
    free(o.logs);
    return result;
}
