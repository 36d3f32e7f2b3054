/* See summary.h. */
#include "plugin-sdk/conformance/runner/run/summary.h"

#include <stdarg.h>
#include <string.h>

bool tc_status_is_bad(tc_status status) {
    switch (status) {
    case TC_PASS:
    case TC_UNSUPPORTED:
    case TC_XFAIL:
    case TC_WAIVED:
        return false;
    default:
        return true;
    }
}

void tc_summary_count(const tc_log *log, size_t *counts) {
    memset(counts, 0, TC_N_STATUSES * sizeof *counts);
    for (size_t i = 0; i < log->n_results; i++)
        counts[log->results[i].status]++;
}

static void append(char *out, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *out, size_t room, const char *format, ...) {
    size_t n = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + n, room - n, format, args);
    va_end(args);
}

char *tc_summary_counts(const size_t *counts, size_t n_skipped, char *out, size_t room) {
    static const char *const words[TC_N_STATUSES] = {[TC_PASS] = "passed",
                                                     [TC_FAIL] = "failed",
                                                     [TC_INCONCLUSIVE] = "inconclusive",
                                                     [TC_UNSUPPORTED] = "unsupported",
                                                     [TC_ERROR] = "error",
                                                     [TC_CRASH] = "crashed",
                                                     [TC_TIMEOUT] = "timed out",
                                                     [TC_FLAKY] = "flaky",
                                                     [TC_XFAIL] = "xfail",
                                                     [TC_XPASS] = "xpass",
                                                     [TC_WAIVED] = "waived"};
    snprintf(out, room, "%zu passed, %zu failed", counts[TC_PASS], counts[TC_FAIL]);
    for (unsigned i = 0; i < TC_N_STATUSES; i++)
        if (i != TC_PASS && i != TC_FAIL && counts[i])
            append(out, room, ", %zu %s", counts[i], words[i]);
    if (n_skipped)
        append(out, room, ", %zu skipped", n_skipped);
    return out;
}

static void append_dtypes(char *out, size_t room, const char *before, uint64_t dtypes) {
#define NAME(NAME, value, name, size, category) name,
    static const char *const names[] = {TN_DTYPE_MAP(NAME)};
#undef NAME
    for (tn_dtype d = 0; d < TN_DTYPE_COUNT; d++)
        if (dtypes & TN_DTYPE_BIT(d)) {
            append(out, room, "%s%s", before, names[d]);
            before = " ";
        }
}

/* "f32 i64 bool; also f16; 1 waived", of a level that passed; "" where there is nothing to say. */
static void find_terms(const tc_levels *levels, const tc_level *level,
                       const tc_selection *selection, const tc_log *log, char out[256]) {
    size_t n_waived = tc_level_waived(levels, level, log);
    out[0] = '\0';
    append_dtypes(out, 256, "", tc_level_dtypes(level));
    append_dtypes(out, 256, "; also ", tc_level_also(level, selection, log));
    if (n_waived)
        append(out, 256, "%s%zu waived", *out ? "; " : "", n_waived);
}

/* What each level comes to, as the end has it; titles of those that passed in `passed`. */
static json_t *make_levels(const tc_log *log, const tc_selection *selection,
                           const tc_levels *levels, tc_sets sets, bool interrupted,
                           char passed[512], bool *good) {
    json_t *made = json_array();
    for (unsigned i = 0; i < levels->n; i++) {
        char why[TC_VERDICT_MESSAGE], terms[256] = "";
        const tc_level *level = &levels->at[i];
        tc_level_state state = tc_level_judge(levels, level, sets, selection, log, why);
        if (state == TC_LEVEL_PASSED && interrupted) {
            state = TC_LEVEL_NOT_RUN;
            snprintf(why, sizeof why, "the run was interrupted");
        }
        if (state == TC_LEVEL_PASSED) {
            find_terms(levels, level, selection, log, terms);
            append(passed, 512, "%s%s%s%s%s", *passed ? ", " : "", level->title, *terms ? " (" : "",
                   terms, *terms ? ")" : "");
        } else if (level->asked)
            *good = false;
        json_array_append_new(
            made, json_pack("{s:o, s:i, s:s, s:s, s:o}", "name", tc_json_text(level->title),
                            "version", (int)level->version, "state", tc_level_state_name(state),
                            "terms", terms, "why", tc_json_text(why)));
    }
    return made;
}

/* What is missing for the levels, all of them or those that were asked for. */
static json_t *make_needs(const tc_log *log, const tc_levels *levels) {
    tc_needs needs = {0};
    bool asked = false;
    for (unsigned i = 0; i < levels->n; i++)
        asked |= levels->at[i].asked;
    for (unsigned i = 0; i < levels->n; i++)
        if (!asked || levels->at[i].asked)
            tc_level_needs(levels, &levels->at[i], log, &needs); /* as far as memory goes */
    tc_needs_settle(&needs);
    json_t *made = tc_needs_json(&needs);
    tc_needs_finish(&needs);
    return made;
}

static json_t *make_unused(const tc_expectations *expectations) {
    json_t *made = json_array();
    for (size_t i = 0; i < expectations->n; i++) {
        const tc_expectation *e = &expectations->entries[i];
        char entry[2 * TC_MAX_LINE];
        if (!tc_expectation_unused(e))
            continue;
        snprintf(entry, sizeof entry, "%s: %s %s", e->where, tc_expectation_kind_name(e->kind),
                 e->pattern->text);
        json_array_append_new(made, tc_json_text(entry));
    }
    return made;
}

json_t *tc_summary_make(const tc_log *log, const tc_selection *selection,
                        const tc_expectations *expectations, const tc_levels *levels, tc_sets sets,
                        size_t n_skipped, bool interrupted, double seconds, bool *out_good) {
    size_t counts[TC_N_STATUSES];
    bool good = !interrupted && log->n_notes == 0;
    char passed[512] = "", words[512], summary[1536];
    json_t *numbers = json_object();
    tc_summary_count(log, counts);
    for (unsigned i = 0; i < TC_N_STATUSES; i++) {
        json_object_set_new(numbers, tc_status_name((tc_status)i),
                            json_integer((json_int_t)counts[i]));
        good = good && !(counts[i] && tc_status_is_bad((tc_status)i));
    }
    json_object_set_new(numbers, "skipped", json_integer((json_int_t)n_skipped));
    json_t *made_levels = make_levels(log, selection, levels, sets, interrupted, passed, &good);
    json_t *unused = interrupted ? json_array() : make_unused(expectations);
    *out_good = good && json_array_size(unused) == 0;
    snprintf(summary, sizeof summary, "%.400s: levels passed: %s; %s", tc_log_device(log),
             *passed ? passed : "none", tc_summary_counts(counts, n_skipped, words, sizeof words));
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:f, s:b, s:o}", "record", "end", "counts",
                     numbers, "levels", made_levels, "needs", make_needs(log, levels), "unused",
                     unused, "interrupted", interrupted, "seconds", seconds, "good", *out_good,
                     "summary", tc_json_text(summary));
}
