/* See expectations.h. */
#include "plugin-sdk/conformance/runner/run/expectations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"skip", "xfail", "waive"};

const char *tc_expectation_kind_name(tc_expectation_kind kind) {
    return kinds[kind];
}

void tc_expectations_finish(tc_expectations *expectations) {
    for (size_t i = 0; i < expectations->n; i++) {
        tc_pattern_destroy(expectations->entries[i].pattern);
        free(expectations->entries[i].reason);
        free(expectations->entries[i].where);
    }
    free(expectations->entries);
    *expectations = (tc_expectations){0};
}

static char *trim(char *text) {
    text += strspn(text, " \t\r\n");
    size_t n = strlen(text);
    while (n && strchr(" \t\r\n", text[n - 1]))
        n--;
    text[n] = '\0';
    return text;
}

static bool add(tc_expectations *expectations, char *text, const char *where,
                char why[TC_MESSAGE]) {
    char *reason = strchr(text, '#');
    if (reason)
        *reason++ = '\0';
    text = trim(text);
    if (*text == '\0')
        return true; /* a comment, or nothing */
    size_t n = strcspn(text, " \t");
    unsigned kind = 0;
    while (kind < 3 && (strlen(kinds[kind]) != n || memcmp(kinds[kind], text, n) != 0))
        kind++;
    if (kind == 3)
        return tc_why(why, TC_MESSAGE, "%.*s: an entry begins with skip, xfail or waive",
                      n > 100 ? 100 : (int)n, text);
    reason = reason ? trim(reason) : NULL;
    if (!reason || *reason == '\0')
        return tc_why(why, TC_MESSAGE, "no reason; write it behind #: %s PATTERN # why",
                      kinds[kind]);
    tc_expectation e = {.kind = (tc_expectation_kind)kind,
                        .pattern = tc_pattern_create(text + n, why)};
    if (!e.pattern)
        return false;
    tc_expectation *entries =
        realloc(expectations->entries, (expectations->n + 1) * sizeof *entries);
    if (entries)
        expectations->entries = entries;
    e.reason = strdup(reason);
    e.where = strdup(where);
    if (!entries || !e.reason || !e.where) {
        tc_pattern_destroy(e.pattern);
        free(e.reason);
        free(e.where);
        return tc_why(why, TC_MESSAGE, "no memory");
    }
    expectations->entries[expectations->n++] = e;
    return true;
}

static bool read_stream(tc_expectations *expectations, const char *name, FILE *file,
                        char why[TC_VERDICT_MESSAGE]) {
    char *text = NULL, reason[TC_MESSAGE];
    size_t room = 0;
    bool good = true;
    for (unsigned number = 1; good && getline(&text, &room, file) >= 0; number++) {
        char where[512];
        snprintf(where, sizeof where, "%.480s:%u", name, number);
        good = add(expectations, text, where, reason);
        if (!good)
            snprintf(why, TC_VERDICT_MESSAGE, "%s: %s", where, reason);
    }
    if (good && ferror(file)) {
        snprintf(why, TC_VERDICT_MESSAGE, "%s: %s", name, strerror(errno));
        good = false;
    }
    free(text);
    return good;
}

bool tc_expectations_read(tc_expectations *expectations, const char *path,
                          char why[TC_VERDICT_MESSAGE]) {
    FILE *file = fopen(path, "re");
    if (!file)
        return tc_why(why, TC_VERDICT_MESSAGE, "%s: %s", path, strerror(errno));
    bool good = read_stream(expectations, path, file, why);
    fclose(file);
    return good;
}

bool tc_expectations_read_text(tc_expectations *expectations, const char *name, const char *text,
                               char why[TC_VERDICT_MESSAGE]) {
    if (*text == '\0')
        return true;
    FILE *file = fmemopen((void *)text, strlen(text), "r");
    if (!file)
        return tc_why(why, TC_VERDICT_MESSAGE, "%s: %s", name, strerror(errno));
    bool good = read_stream(expectations, name, file, why);
    fclose(file);
    return good;
}

const tc_expectation *tc_expectations_skip(tc_expectations *expectations, const char *line) {
    for (size_t i = 0; i < expectations->n; i++) {
        tc_expectation *e = &expectations->entries[i];
        if (e->kind == TC_EXPECT_SKIP && tc_pattern_finds(e->pattern, line)) {
            e->used = true;
            return e;
        }
    }
    return NULL;
}

tc_status tc_expectations_judge(tc_expectations *expectations, const char *line, tc_status status,
                                const tc_expectation **out_entry) {
    *out_entry = NULL;
    bool failed = status == TC_FAIL || status == TC_CRASH || status == TC_TIMEOUT ||
                  status == TC_FLAKY || status == TC_INCONCLUSIVE;
    if (!failed && status != TC_PASS)
        return status;
    for (size_t i = 0; i < expectations->n; i++) {
        tc_expectation *e = &expectations->entries[i];
        if (e->kind == TC_EXPECT_SKIP || !tc_pattern_finds(e->pattern, line))
            continue;
        if (!failed && e->kind == TC_EXPECT_WAIVE)
            return status;
        e->used = true; /* by an xpass, too: it is told there */
        *out_entry = e;
        return !failed ? TC_XPASS : e->kind == TC_EXPECT_XFAIL ? TC_XFAIL : TC_WAIVED;
    }
    return status;
}

void tc_expectations_count(tc_expectations *expectations, const char *line, bool ran) {
    for (size_t i = 0; i < expectations->n; i++)
        if (tc_pattern_finds(expectations->entries[i].pattern, line)) {
            expectations->entries[i].n_lines++;
            expectations->entries[i].n_ran += ran;
        }
}

bool tc_expectation_unused(const tc_expectation *e) {
    return !e->used && e->n_ran == e->n_lines;
}
