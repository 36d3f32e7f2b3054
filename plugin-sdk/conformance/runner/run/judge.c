/* See judge.h. */
#include "plugin-sdk/conformance/runner/run/judge.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/json.h"

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

void tc_count(const tc_log *log, size_t *counts) {
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

char *tc_counts_words(const size_t *counts, size_t n_skipped, char *out, size_t room) {
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

char *tc_judge(const tc_log *log, const tc_plan *plan, const tc_lists *lists,
               const tc_levels *levels, tc_sets sets, size_t n_skipped, bool interrupted,
               double seconds, bool *out_good) {
    char *text = NULL;
    size_t n_text = 0;
    FILE *out = open_memstream(&text, &n_text);
    if (!out)
        return NULL;
    size_t counts[TC_N_STATUSES], n_unused = 0;
    bool good = !interrupted && log->n_notes == 0;
    tc_count(log, counts);
    fputs("{\"record\":\"end\",\"counts\":{", out);
    for (unsigned i = 0; i < TC_N_STATUSES; i++) {
        fprintf(out, "%s\"%s\":%zu", i ? "," : "", tc_status_name((tc_status)i), counts[i]);
        good = good && !(counts[i] && tc_status_is_bad((tc_status)i));
    }
    fprintf(out, ",\"skipped\":%zu},\"levels\":[", n_skipped);

    char passed[512] = "", why[TC_VERDICT_MESSAGE];
    for (unsigned i = 0; i < levels->n; i++) {
        const tc_level *level = &levels->at[i];
        tc_level_state state = tc_level_judge(levels, level, sets, plan, log, why);
        if (state == TC_LEVEL_PASSED && interrupted) {
            state = TC_LEVEL_NOT_RUN;
            snprintf(why, sizeof why, "the run was interrupted");
        }
        if (state == TC_LEVEL_PASSED)
            append(passed, sizeof passed, "%s%s", *passed ? ", " : "", level->title);
        else if (level->asked)
            good = false;
        fprintf(out, "%s{\"name\":", i ? "," : "");
        tc_json_put(out, level->title);
        fprintf(out, ",\"version\":%u,\"state\":\"%s\",\"why\":", level->version,
                tc_level_state_name(state));
        tc_json_put(out, why);
        fputc('}', out);
    }

    fputs("],\"unused\":[", out);
    for (size_t i = 0; i < lists->n && !interrupted; i++)
        if (tc_entry_unused(&lists->entries[i])) {
            const tc_entry *e = &lists->entries[i];
            char entry[2 * TC_MAX_LINE];
            snprintf(entry, sizeof entry, "%s: %s %s", e->where, tc_list_kind_name(e->kind),
                     e->pattern->text);
            fputs(n_unused++ ? "," : "", out);
            tc_json_put(out, entry);
        }
    good = good && n_unused == 0;

    char device[256], words[512], summary[1536];
    tc_log_device(log, device, sizeof device);
    tc_counts_words(counts, n_skipped, words, sizeof words);
    snprintf(summary, sizeof summary, "%s: levels passed: %s; %s", device,
             *passed ? passed : "none", words);
    fprintf(out, "],\"interrupted\":%s,\"seconds\":%.3f,\"good\":%s,\"summary\":",
            interrupted ? "true" : "false", seconds, good ? "true" : "false");
    tc_json_put(out, summary);
    fputs("}", out);
    bool whole = !ferror(out);
    if (fclose(out) != 0 || !whole) {
        free(text);
        return NULL;
    }
    *out_good = good;
    return text;
}
