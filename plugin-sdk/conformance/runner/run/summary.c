/* See summary.h. */
#include "plugin-sdk/conformance/runner/run/summary.h"

#include <stdarg.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/schedule.h"

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

/* Whether a level that was asked for is this one, or includes it. */
static bool is_asked(const tc_levels *levels, unsigned index) {
    bool asked = levels->at[index].asked;
    for (unsigned i = index + 1; !asked && i < levels->n; i++)
        for (unsigned k = 0; !asked && k < levels->at[i].n_includes; k++)
            asked = levels->at[i].includes[k] == index && is_asked(levels, i);
    return asked;
}

/* What was given up of a level; NULL: nothing. */
static const json_t *find_given_up(const tc_summary *s, const tc_level *level) {
    size_t i;
    const json_t *entry;
    if (!s->log->given_up)
        return NULL;
    for (size_t k = 0; k < s->selection->n; k++)
        s->selection->at[k].asked = false;
    tc_level_ask(s->levels, level, s->selection);
    json_array_foreach(s->log->given_up, i, entry) {
        unsigned schedule = tc_schedule_of(tc_json_string(entry, "class"));
        for (size_t k = 0; k < s->selection->n; k++) {
            const tc_candidate *p = &s->selection->at[k];
            if (p->asked && !p->ran && p->schedule == schedule)
                return entry;
        }
    }
    return NULL;
}

/* What each level comes to, as the end has it; titles of those that passed in `passed`. */
static json_t *make_levels(const tc_summary *s, char passed[512], bool *good) {
    json_t *made = json_array();
    for (unsigned i = 0; i < s->levels->n && !s->shard; i++) {
        char why[TC_VERDICT_MESSAGE], terms[256] = "";
        const tc_level *level = &s->levels->at[i];
        if (!s->whole && !is_asked(s->levels, i))
            continue;
        tc_level_state state = tc_level_judge(s->levels, level, s->sets, s->selection, s->log, why);
        const json_t *given_up = state == TC_LEVEL_PASSED ? NULL : find_given_up(s, level);
        if (given_up) {
            double cases = 0;
            tc_json_number(given_up, "cases", &cases);
            state = TC_LEVEL_FAILED;
            snprintf(why, sizeof why, "%s/ was given up, %.0f cases did not run: %.700s",
                     tc_json_string(given_up, "class"), cases, tc_json_string(given_up, "why"));
        }
        if (state == TC_LEVEL_PASSED && s->interrupted) {
            state = TC_LEVEL_NOT_RUN;
            snprintf(why, sizeof why, "the run was interrupted");
        }
        if (state == TC_LEVEL_PASSED) {
            find_terms(s->levels, level, s->selection, s->log, terms);
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

/* What is missing for the levels that are judged. */
static json_t *make_needs(const tc_summary *s) {
    tc_needs needs = {0};
    for (unsigned i = 0; i < s->levels->n && !s->shard; i++)
        if (s->whole || s->levels->at[i].asked)
            tc_level_needs(s->levels, &s->levels->at[i], s->log,
                           &needs); /* as far as memory goes */
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

json_t *tc_summary_make(const tc_summary *s, bool *out_good) {
    size_t counts[TC_N_STATUSES], i;
    const json_t *given_up;
    bool good = !s->interrupted && s->log->n_notes == 0;
    char passed[512] = "", words[512], summary[1536];
    json_t *numbers = json_object();
    tc_summary_count(s->log, counts);
    for (i = 0; i < TC_N_STATUSES; i++) {
        json_object_set_new(numbers, tc_status_name((tc_status)i),
                            json_integer((json_int_t)counts[i]));
        good = good && !(counts[i] && tc_status_is_bad((tc_status)i));
    }
    json_object_set_new(numbers, "skipped", json_integer((json_int_t)s->n_skipped));
    json_t *levels = make_levels(s, passed, &good);
    json_t *unused = s->interrupted ? json_array() : make_unused(s->expectations);
    bool judged = json_array_size(levels) > 0;
    *out_good = good && json_array_size(unused) == 0;
    snprintf(summary, sizeof summary, "%.400s: %s%s%s%s", tc_log_device(s->log),
             judged ? "levels passed: " : "", !judged || *passed ? passed : "none",
             judged ? "; " : "", tc_summary_counts(counts, s->n_skipped, words, sizeof words));
    double n_given_up = 0;
    json_array_foreach(s->log->given_up, i, given_up) {
        double cases = 0;
        tc_json_number(given_up, "cases", &cases);
        n_given_up += cases;
    }
    if (n_given_up > 0)
        append(summary, sizeof summary, ", %.0f given up", n_given_up);
    json_t *end = json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:f, s:b, s:o}", "record", "end",
                            "counts", numbers, "levels", levels, "needs", make_needs(s), "unused",
                            unused, "interrupted", s->interrupted, "seconds", s->seconds, "good",
                            *out_good, "summary", tc_json_text(summary));
    if (end && s->log->given_up)
        json_object_set(end, "given_up", s->log->given_up);
    return end;
}
