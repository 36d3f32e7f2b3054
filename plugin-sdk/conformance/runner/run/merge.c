/* See merge.h. The merged head has members of its own: "shards", what each log was, and "skipped",
 * "seconds", "unused" and "interrupted" of their ends. */
#include "plugin-sdk/conformance/runner/run/merge.h"

#include <stdlib.h>
#include <string.h>

static bool same(const tc_log *a, const tc_log *b, char why[TC_VERDICT_MESSAGE]) {
    static const char *const members[] = {"set", "suite"};
    if (strcmp(tc_log_plugin(a, "sha256"), tc_log_plugin(b, "sha256")) != 0)
        return tc_why(why, TC_VERDICT_MESSAGE,
                      "it is of another plugin: SHA-256 %.16s..., not %.16s...",
                      tc_log_plugin(b, "sha256"), tc_log_plugin(a, "sha256"));
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strcmp(tc_json_string(a->head, members[i]), tc_json_string(b->head, members[i])) != 0)
            return tc_why(why, TC_VERDICT_MESSAGE, "its %s is %.100s, not %.100s", members[i],
                          tc_json_string(b->head, members[i]), tc_json_string(a->head, members[i]));
    return true;
}

static void add_number(json_t *object, const char *name, double number) {
    double before = 0;
    tc_json_number(object, name, &before);
    json_object_set_new(object, name, json_real(before + number));
}

/* What counts of a log's end, and of its head. */
static void add_facts(json_t *head, const tc_log *from) {
    double skipped = 0, seconds = 0;
    json_t *unused = json_object_get(from->end, "unused");
    tc_json_number(json_object_get(from->end, "counts"), "skipped", &skipped);
    tc_json_number(from->end, "seconds", &seconds);
    add_number(head, "skipped", skipped);
    add_number(head, "seconds", seconds);
    if (!json_object_get(head, "unused"))
        json_object_set_new(head, "unused", json_array());
    if (json_is_array(unused))
        json_array_extend(json_object_get(head, "unused"), unused);
    if (!from->end || json_is_true(json_object_get(from->end, "interrupted")))
        json_object_set_new(head, "interrupted", json_true());
    if (json_is_true(json_object_get(from->head, "part")))
        json_object_set_new(head, "part", json_true());
}

static bool add_shard(json_t *head, const char *shard, char why[TC_VERDICT_MESSAGE]) {
    size_t i;
    const json_t *other;
    json_t *shards = json_object_get(head, "shards");
    if (!shards)
        json_object_set_new(head, "shards", shards = json_array());
    json_array_foreach(
        shards, i, other) if (*shard && strcmp(json_string_value(other), shard) ==
                                            0) return tc_why(why, TC_VERDICT_MESSAGE,
                                                             "shard %.30s is there twice", shard);
    return json_array_append_new(shards, tc_json_text(shard)) == 0;
}

bool tc_merge_add(tc_log *into, tc_log *from, char why[TC_VERDICT_MESSAGE]) {
    char shard[32];
    size_t i;
    json_t *entry;
    snprintf(shard, sizeof shard, "%.30s", tc_json_string(from->head, "shard"));
    if (!into->head) {
        into->head = json_copy(from->head);
        json_object_del(into->head, "shard");
    }
    bool good = into->head && same(into, from, why) && add_shard(into->head, shard, why);
    if (good)
        add_facts(into->head, from);
    size_t n = into->n_results + from->n_results;
    tc_result *results = good && n ? realloc(into->results, n * sizeof *results) : NULL;
    if (results) {
        into->results = results;
        into->room_results = n;
        memcpy(results + into->n_results, from->results, from->n_results * sizeof *results);
        into->n_results = n;
        from->n_results = 0; /* they moved */
    } else if (good && n) {
        good = tc_why(why, TC_VERDICT_MESSAGE, "no memory for its results");
    }
    for (i = 0; good && i < from->n_notes; i++)
        good =
            tc_log_add_note(into, from->notes[i]) || tc_why(why, TC_VERDICT_MESSAGE, "no memory");
    json_array_foreach(json_object_get(from->end, "given_up"), i, entry) {
        double cases = 0;
        tc_json_number(entry, "cases", &cases);
        tc_log_add_given_up(into, tc_json_string(entry, "class"), cases > 0 ? (size_t)cases : 0,
                            tc_json_string(entry, "why"));
    }
    tc_log_finish(from);
    return good;
}

/* Every line that ran, marked, those that no set has as well. */
static bool mark(const tc_log *log, tc_selection *selection, char why[TC_VERDICT_MESSAGE]) {
    for (size_t i = 0; i < log->n_results; i++)
        if (!tc_selection_add(selection, log->results[i].line, false, why))
            return false;
    tc_selection_settle(selection);
    for (size_t i = 0; i < log->n_results; i++) {
        tc_candidate *p = tc_selection_find(selection, log->results[i].line);
        if (p && p->ran)
            return tc_why(why, TC_VERDICT_MESSAGE,
                          "`%.700s` ran in two of the logs; they are no shards of one run",
                          p->line);
        if (p)
            p->ran = true;
    }
    return true;
}

bool tc_merge_end(tc_log *merged, tc_selection *selection, const tc_levels *levels, tc_sets sets,
                  bool *out_good, char why[TC_VERDICT_MESSAGE]) {
    static const tc_expectations none;
    double skipped = 0, seconds = 0;
    bool asked = false;
    if (!mark(merged, selection, why))
        return false;
    tc_json_number(merged->head, "skipped", &skipped);
    tc_json_number(merged->head, "seconds", &seconds);
    for (unsigned i = 0; i < levels->n; i++)
        asked |= levels->at[i].asked;
    tc_summary summary = {
        .log = merged,
        .selection = selection,
        .expectations = &none,
        .levels = levels,
        .sets = sets,
        .whole = !asked && !json_is_true(json_object_get(merged->head, "part")),
        .interrupted = json_is_true(json_object_get(merged->head, "interrupted")),
        .n_skipped = (size_t)skipped,
        .seconds = seconds,
    };
    merged->end = tc_summary_make(&summary, out_good);
    json_t *unused = json_object_get(merged->head, "unused");
    if (merged->end && unused)
        json_object_set(merged->end, "unused", unused);
    *out_good = *out_good && json_array_size(unused) == 0;
    return merged->end || tc_why(why, TC_VERDICT_MESSAGE, "no memory for the end");
}
