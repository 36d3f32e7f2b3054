/* See expectations.h. */
#include "plugin-sdk/conformance/runner/run/expectations.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"skip", "xfail", "waive"};

const char *tc_expectation_kind_name(tc_expectation_kind kind) {
    return kinds[kind];
}

static void drop(tc_expectation *e) {
    tc_pattern_destroy(e->pattern);
    free(e->reason);
    free(e->terms);
    free(e->where);
}

void tc_expectations_finish(tc_expectations *expectations) {
    for (size_t i = 0; i < expectations->n; i++)
        drop(&expectations->entries[i]);
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

/* ---- terms ------------------------------------------------------------------------------- */

/* Cuts " [...]" off the end of the pattern; NULL where there is none. A shape's bracket stands
 * behind '=' or '/', never behind a blank. */
static char *cut_terms(char *text) {
    size_t n = strlen(text);
    if (n == 0 || text[n - 1] != ']')
        return NULL;
    for (char *at = text + n - 1; at > text; at--)
        if (*at == '[' && strchr(" \t", at[-1])) {
            text[n - 1] = '\0';
            at[-1] = '\0';
            for (char *c = at; *c; c++)
                *c = *c == '\t' ? ' ' : *c;
            return trim(at + 1);
        }
    return NULL;
}

/* A day as people write it, so that two compare as texts do. */
static bool is_day(const char *text) {
    int year, month, day, n = 0;
    return strlen(text) == 10 && sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &n) == 3 &&
           n == 10 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static bool is_condition(const char *name, size_t n) {
#define NAME(name) #name,
    static const char *const names[] = {TC_CONDITIONS(NAME)};
#undef NAME
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
            return true;
    return false;
}

/* The value of the first word NAME=value of the terms into `out`; false where there is none. */
static bool find_term(const char *terms, const char *name, char *out, size_t room) {
    size_t n = strlen(name);
    for (const char *at = terms; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strncmp(at, name, n) == 0 && at[n] == '=') {
            snprintf(out, room, "%.*s", (int)strcspn(at + n + 1, " "), at + n + 1);
            return true;
        }
    return false;
}

static bool read_terms(tc_expectation *e, char why[TC_MESSAGE]) {
    for (const char *at = e->terms; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t n = strcspn(at, "= "), whole = strcspn(at, " ");
        bool known = (n == 6 && memcmp(at, "ticket", 6) == 0) ||
                     (n == 5 && (memcmp(at, "owner", 5) == 0 || memcmp(at, "until", 5) == 0)) ||
                     is_condition(at, n);
        if (!known || at[n] != '=' || whole == n + 1)
            return tc_why(why, TC_MESSAGE,
                          "%.*s: a term is ticket=, owner=, until= or a condition, which is "
                          "id=, version=, type=, name=, device=, firmware= or driver=",
                          whole > 60 ? 60 : (int)whole, at);
    }
    char day[32], text[8];
    if (find_term(e->terms, "until", day, sizeof day)) {
        if (!is_day(day))
            return tc_why(why, TC_MESSAGE, "until=%s: a day such as 2027-06-30", day);
        memcpy(e->until, day, sizeof e->until);
    }
    if (e->kind == TC_EXPECT_WAIVE && !(*e->until && find_term(e->terms, "ticket", text, 8) &&
                                        find_term(e->terms, "owner", text, 8)))
        return tc_why(why, TC_MESSAGE,
                      "a waiver says which ticket, whose, and until when: waive PATTERN "
                      "[ticket=HW-12 owner=jane until=2027-06-30] # why");
    return true;
}

/* "the adder (ticket=HW-12 owner=jane until=2027-06-30)"; NULL: no memory. */
static char *make_reason(const char *why, const char *terms) {
    size_t room = strlen(why) + strlen(terms) + 4;
    char *made = malloc(room);
    if (made)
        snprintf(made, room, "%s%s%s%s", why, *terms ? " (" : "", terms, *terms ? ")" : "");
    return made;
}

/* Does every condition hold of what the worker says? Of those with one name, one has to. */
static bool holds(const tc_expectation *e, const json_t *described) {
    for (const char *at = e->terms; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t n = strcspn(at, "=");
        char name[32], glob[TC_MAX_LINE];
        bool matches = false;
        if (!is_condition(at, n))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        for (const char *k = e->terms; *k; k += strcspn(k, " "), k += strspn(k, " "))
            if (strncmp(k, name, n) == 0 && k[n] == '=') {
                snprintf(glob, sizeof glob, "%.*s", (int)strcspn(k + n + 1, " "), k + n + 1);
                matches |= fnmatch(glob, tc_json_string(described, name), 0) == 0;
            }
        if (!matches)
            return false;
    }
    return true;
}

void tc_expectations_settle(tc_expectations *expectations, const char *today,
                            const json_t *described) {
    for (size_t i = 0; i < expectations->n; i++) {
        tc_expectation *e = &expectations->entries[i];
        e->expired = *e->until && strcmp(e->until, today) < 0;
        e->elsewhere = !holds(e, described);
    }
}

/* ---- reading ----------------------------------------------------------------------------- */

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
    const char *terms = cut_terms(text);
    terms = terms ? terms : "";
    tc_expectation e = {.kind = (tc_expectation_kind)kind,
                        .pattern = tc_pattern_create(text + n, why),
                        .reason = make_reason(reason, terms),
                        .terms = strdup(terms),
                        .where = strdup(where)};
    tc_expectation *entries =
        realloc(expectations->entries, (expectations->n + 1) * sizeof *entries);
    if (entries)
        expectations->entries = entries;
    bool room = entries && e.reason && e.terms && e.where;
    if (e.pattern && !room)
        snprintf(why, TC_MESSAGE, "no memory");
    if (!e.pattern || !room || !read_terms(&e, why)) {
        drop(&e);
        return false;
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

static bool counts(const tc_expectation *e) {
    return !e->expired && !e->elsewhere;
}

const tc_expectation *tc_expectations_expired(tc_expectations *expectations, const char *line) {
    for (size_t i = 0; i < expectations->n; i++) {
        tc_expectation *e = &expectations->entries[i];
        if (e->expired && !e->elsewhere && tc_pattern_finds(e->pattern, line)) {
            e->used = true;
            return e;
        }
    }
    return NULL;
}

const tc_expectation *tc_expectations_skip(tc_expectations *expectations, const char *line) {
    for (size_t i = 0; i < expectations->n; i++) {
        tc_expectation *e = &expectations->entries[i];
        if (e->kind == TC_EXPECT_SKIP && counts(e) && tc_pattern_finds(e->pattern, line)) {
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
        if (e->kind == TC_EXPECT_SKIP || !counts(e) || !tc_pattern_finds(e->pattern, line))
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
    return !e->used && !e->elsewhere && e->n_ran == e->n_lines;
}
