/* See run_selection.h. */
#include "plugin-sdk/conformance/runner/commands/run_selection.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/overview.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"

bool tc_run_say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("tenon-conform run: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

/* The levels that are asked for, and the sets that show them where none was named. */
static bool read_levels(tc_run_options *o, tc_levels *levels) {
    char why[TC_VERDICT_MESSAGE];
    tc_sets sets = o->levels.n ? 0 : TC_SET_BIT(TC_STANDARD);
    if (!tc_levels_builtin(levels, why))
        return tc_run_say("%s", why);
    for (size_t i = 0; i < o->levels.n; i++) {
        tc_level *level = tc_levels_find(levels, o->levels.at[i]);
        if (!level)
            return tc_run_say(
                "no level is named %.200s; load, memory, core, full, train and perf are",
                o->levels.at[i]);
        level->asked = true;
        sets = tc_sets_join(sets, tc_level_sets(levels, level));
    }
    o->sets = o->sets ? o->sets : sets;
    return true;
}

/* PyTorch's tests, of the sets that are not timed. */
static bool add_torch(const tc_run_options *o, tc_selection *selection,
                      char why[TC_VERDICT_MESSAGE]) {
    bool good = true;
    if (!o->pool.torch_worker)
        return tc_why(why, TC_VERDICT_MESSAGE,
                      "--torch needs the program tenon-conform-torch, which was not found; install "
                      "the Python package tenon-torch (docs/torch.md), or name it: "
                      "TENON_CONFORM_TORCH=PATH");
    for (tc_set set = TC_SMOKE; good && set < TC_PERF; set++)
        if (o->sets & TC_SET_BIT(set))
            good = tc_selection_add_program(selection, set, o->pool.torch_worker, why);
    return good;
}

/* No level asks for these: who gives --torch does. */
static bool is_torch(const tc_candidate *candidate) {
    return tc_schedule_get(candidate->schedule)->program == TC_PROGRAM_TORCH;
}

/* All of the sets, where they matter, and what was asked for beside them. */
static bool read_lines(const tc_run_options *o, const char *lister, const tc_levels *levels,
                       tc_selection *selection) {
    char why[TC_VERDICT_MESSAGE];
    bool all = o->cases.n + o->case_files.n == 0;
    /* Where lines are named, the set is of use to levels and lists alone; to list it takes seconds. */
    if ((all || o->levels.n || o->lists.n) &&
        !tc_selection_add_sets(selection, o->sets, lister, o->pool.core_worker, why))
        return tc_run_say("%s", why);
    if (o->torch && all && !add_torch(o, selection, why))
        return tc_run_say("%s", why);
    size_t n_set = selection->n;
    for (size_t i = 0; i < o->cases.n; i++)
        if (!tc_selection_add(selection, o->cases.at[i], false, why))
            return tc_run_say("%s", why);
    for (size_t i = 0; i < o->case_files.n; i++)
        if (!tc_selection_add_file(selection, o->case_files.at[i], why))
            return tc_run_say("%s", why);
    for (size_t i = 0; i < selection->n; i++)
        selection->at[i].selected = all || i >= n_set;
    tc_selection_settle(selection);
    for (unsigned i = 0; i < levels->n; i++)
        if (levels->at[i].asked)
            tc_level_ask(levels, &levels->at[i], selection);
    for (size_t i = 0; all && o->levels.n && i < selection->n; i++)
        selection->at[i].selected = selection->at[i].asked || is_torch(&selection->at[i]);
    return true;
}

/* Lines that no filter finds are not selected; a filter that finds none says what there is. */
static bool filter(const tc_run_options *o, tc_selection *selection) {
    tc_pattern *patterns[TC_MOST_WORDS];
    size_t found[TC_MOST_WORDS] = {0}, n = 0;
    char why[TC_MESSAGE];
    bool good = true;
    for (; good && n < o->filters.n; n += good)
        good = (patterns[n] = tc_pattern_create(o->filters.at[n], why)) ||
               tc_run_say("--filter %.500s: %s", o->filters.at[n], why);
    for (size_t i = 0; good && n > 0 && i < selection->n; i++) {
        bool any = false;
        for (size_t k = 0; k < n; k++) {
            bool finds = tc_pattern_finds(patterns[k], selection->at[i].line);
            found[k] += finds;
            any |= finds;
        }
        selection->at[i].selected &= any;
    }
    for (size_t k = 0; good && k < n; k++)
        if (found[k] == 0)
            tc_overview_missing(selection, o->filters.at[k], stderr);
    while (n)
        tc_pattern_destroy(patterns[--n]);
    return good;
}

/* Every n-th line, so that each shard has some of everything. */
static void shard(const tc_run_options *o, tc_selection *selection) {
    size_t n = 0;
    for (size_t i = 0; o->n_shards > 1 && i < selection->n; i++)
        if (selection->at[i].selected && n++ % o->n_shards != o->shard - 1)
            selection->at[i].selected = false;
}

bool tc_run_select(tc_run_options *o, const char *lister, tc_levels *levels,
                   tc_selection *selection) {
    if (!read_levels(o, levels) || !read_lines(o, lister, levels, selection) ||
        !filter(o, selection))
        return false;
    shard(o, selection);
    return true;
}
