/* See lists.h. */
#include "plugin-sdk/conformance/runner/run/lists.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"skip", "xfail", "waive"};

const char *tc_list_kind_name(tc_list_kind kind) {
    return kinds[kind];
}

void tc_lists_finish(tc_lists *lists) {
    for (size_t i = 0; i < lists->n; i++) {
        tc_pattern_destroy(lists->entries[i].pattern);
        free(lists->entries[i].reason);
        free(lists->entries[i].where);
    }
    free(lists->entries);
    *lists = (tc_lists){0};
}

static char *trim(char *text) {
    text += strspn(text, " \t\r\n");
    size_t n = strlen(text);
    while (n && strchr(" \t\r\n", text[n - 1]))
        n--;
    text[n] = '\0';
    return text;
}

static bool add(tc_lists *lists, char *text, const char *where, char why[TC_MESSAGE]) {
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
    if (kind == 3) {
        snprintf(why, TC_MESSAGE, "%.*s: an entry begins with skip, xfail or waive",
                 n > 100 ? 100 : (int)n, text);
        return false;
    }
    reason = reason ? trim(reason) : NULL;
    if (!reason || *reason == '\0') {
        snprintf(why, TC_MESSAGE, "no reason; write it behind #: %s PATTERN # why", kinds[kind]);
        return false;
    }
    tc_entry e = {.kind = (tc_list_kind)kind, .pattern = tc_pattern_create(text + n, why)};
    if (!e.pattern)
        return false;
    tc_entry *entries = realloc(lists->entries, (lists->n + 1) * sizeof *entries);
    if (entries)
        lists->entries = entries;
    e.reason = strdup(reason);
    e.where = strdup(where);
    if (!entries || !e.reason || !e.where) {
        tc_pattern_destroy(e.pattern);
        free(e.reason);
        free(e.where);
        snprintf(why, TC_MESSAGE, "no memory");
        return false;
    }
    lists->entries[lists->n++] = e;
    return true;
}

static bool read_stream(tc_lists *lists, const char *name, FILE *file,
                        char why[TC_VERDICT_MESSAGE]) {
    char *text = NULL, reason[TC_MESSAGE];
    size_t room = 0;
    bool good = true;
    for (unsigned number = 1; good && getline(&text, &room, file) >= 0; number++) {
        char where[512];
        snprintf(where, sizeof where, "%.480s:%u", name, number);
        good = add(lists, text, where, reason);
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

bool tc_lists_read(tc_lists *lists, const char *path, char why[TC_VERDICT_MESSAGE]) {
    FILE *file = fopen(path, "re");
    if (!file) {
        snprintf(why, TC_VERDICT_MESSAGE, "%s: %s", path, strerror(errno));
        return false;
    }
    bool good = read_stream(lists, path, file, why);
    fclose(file);
    return good;
}

bool tc_lists_read_text(tc_lists *lists, const char *name, const char *text,
                        char why[TC_VERDICT_MESSAGE]) {
    if (*text == '\0')
        return true;
    FILE *file = fmemopen((void *)text, strlen(text), "r");
    if (!file) {
        snprintf(why, TC_VERDICT_MESSAGE, "%s: %s", name, strerror(errno));
        return false;
    }
    bool good = read_stream(lists, name, file, why);
    fclose(file);
    return good;
}

const tc_entry *tc_lists_skip(tc_lists *lists, const char *line) {
    for (size_t i = 0; i < lists->n; i++) {
        tc_entry *e = &lists->entries[i];
        if (e->kind == TC_LIST_SKIP && tc_pattern_finds(e->pattern, line)) {
            e->used = true;
            return e;
        }
    }
    return NULL;
}

tc_status tc_lists_judge(tc_lists *lists, const char *line, tc_status status,
                         const tc_entry **out_entry) {
    *out_entry = NULL;
    bool failed = status == TC_FAIL || status == TC_CRASH || status == TC_TIMEOUT ||
                  status == TC_FLAKY || status == TC_INCONCLUSIVE;
    if (!failed && status != TC_PASS)
        return status;
    for (size_t i = 0; i < lists->n; i++) {
        tc_entry *e = &lists->entries[i];
        if (e->kind == TC_LIST_SKIP || !tc_pattern_finds(e->pattern, line))
            continue;
        if (!failed && e->kind == TC_LIST_WAIVE)
            return status;
        e->used = true; /* by an xpass, too: it is told there */
        *out_entry = e;
        return !failed ? TC_XPASS : e->kind == TC_LIST_XFAIL ? TC_XFAIL : TC_WAIVED;
    }
    return status;
}

void tc_lists_count(tc_lists *lists, const char *line, bool ran) {
    for (size_t i = 0; i < lists->n; i++)
        if (tc_pattern_finds(lists->entries[i].pattern, line)) {
            lists->entries[i].n_lines++;
            lists->entries[i].n_ran += ran;
        }
}

bool tc_entry_unused(const tc_entry *e) {
    return !e->used && e->n_ran == e->n_lines;
}
