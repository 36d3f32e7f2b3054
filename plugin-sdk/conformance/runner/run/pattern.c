/* See pattern.h. */
#include "plugin-sdk/conformance/runner/run/pattern.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/kernels.h>

static const struct {
    const char *name;
    bool small;
} kernels[] = {
#define KERNEL(name, hash, small, kind, schema) {#name, small},
    TN_KERNEL_TABLE(KERNEL)
#undef KERNEL
};

/* Writes a word as fnmatch takes it: brackets are a shape's, and mean themselves. Returns one past
 * its zero. */
static char *escape(char *to, const char *word) {
    for (; *word; *to++ = *word++)
        if (*word == '[' || *word == '\\')
            *to++ = '\\';
    *to = '\0';
    return to + 1;
}

/* The first word: a class alone stands for all of its cases, a group for the names that are in it.
 * False where it has a group that there is none of. */
static bool read_subject(tc_pattern *p, char *word, size_t room) {
    size_t n = strlen(word);
    char *group = strchr(word, '@');
    if (group) {
        p->small = strcmp(group, "@small") == 0;
        p->kernels = p->small || strcmp(group, "@all") == 0;
        strcpy(group, "*");
        return p->kernels && strchr(word, '/');
    }
    bool class = strcspn(word, "/*?=") == n;
    if ((class || word[n - 1] == '/') && n + 2 < room)
        strcat(word, class ? "/*" : "*");
    return true;
}

static bool read_words(tc_pattern *p, const char *text, char why[TC_MESSAGE]) {
    char words[TC_MAX_LINE], *rest = NULL, *to = p->words;
    strcpy(words, text);
    for (char *word = strtok_r(words, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        size_t n = strlen(p->text);
        snprintf(p->text + n, sizeof p->text - n, "%s%s", n ? " " : "", word);
        if (p->subject && !strchr(word, '='))
            return tc_why(why, TC_MESSAGE, "%.100s: words after the first are name=value", word);
        if (p->n_params == TC_MAX_PARAMS)
            return tc_why(why, TC_MESSAGE, "more than %d parameters", TC_MAX_PARAMS);
        char first[TC_MAX_LINE];
        if (!p->subject) {
            word = strcpy(first, word);
            if (!read_subject(p, first, sizeof first))
                return tc_why(why, TC_MESSAGE, "a group is CLASS/@small or CLASS/@all");
        }
        *(p->subject ? &p->params[p->n_params++] : &p->subject) = to;
        to = escape(to, word);
    }
    if (p->subject)
        return true;
    return tc_why(why, TC_MESSAGE, "a pattern is empty");
}

tc_pattern *tc_pattern_create(const char *text, char why[TC_MESSAGE]) {
    text += strspn(text, " \t");
    size_t n = strlen(text);
    if (n >= TC_MAX_LINE) {
        snprintf(why, TC_MESSAGE, "a pattern is longer than %d", TC_MAX_LINE - 1);
        return NULL;
    }
    tc_pattern *p = calloc(1, sizeof *p);
    if (!p) {
        snprintf(why, TC_MESSAGE, "no memory");
        return NULL;
    }
    if (*text != '/') {
        if (read_words(p, text, why))
            return p;
        free(p);
        return NULL;
    }
    while (n > 1 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    memcpy(p->text, text, n);
    memcpy(p->words, text + 1, n - 1);
    int wrong = REG_BADPAT;
    if (n > 2 && text[n - 1] == '/') {
        p->words[n - 2] = '\0';
        wrong = regcomp(&p->regex, p->words, REG_EXTENDED | REG_NOSUB);
        if (wrong == 0)
            return p;
        regerror(wrong, &p->regex, why, TC_MESSAGE);
    } else {
        snprintf(why, TC_MESSAGE, "a regular expression stands between two slashes");
    }
    free(p);
    return NULL;
}

void tc_pattern_destroy(tc_pattern *p) {
    if (p && !p->subject)
        regfree(&p->regex);
    free(p);
}

/* Whether the line's word at `at` is of the form. A run asks this some hundred million times, and
 * nearly always the letters before the form's first * or ? tell. */
static bool is_word(const char *form, const char *at) {
    char rest[TC_MAX_LINE];
    for (; *form && *form != '*' && *form != '?'; form++, at++) {
        form += *form == '\\';
        if (*form != *at)
            return false;
    }
    size_t n = strcspn(at, " ");
    if (*form == '\0' || strcmp(form, "*") == 0)
        return *form || n == 0;
    if (n >= sizeof rest)
        return false;
    memcpy(rest, at, n);
    rest[n] = '\0';
    return fnmatch(form, rest, 0) == 0;
}

static bool has_param(const char *line, const char *form) {
    for (const char *at = strchr(line, ' '); at; at = strchr(at + 1, ' '))
        if (is_word(form, at + 1))
            return true;
    return false;
}

/* Whether the line's subject is of the pattern's group. */
static bool is_kernel(const tc_pattern *p, const char *line) {
    const char *slash = strchr(line, '/');
    size_t n = slash ? strcspn(slash + 1, " ") : 0;
    for (size_t i = 0; slash && i < sizeof kernels / sizeof *kernels; i++)
        if (strncmp(kernels[i].name, slash + 1, n) == 0 && kernels[i].name[n] == '\0')
            return !p->small || kernels[i].small;
    return false;
}

bool tc_pattern_finds(const tc_pattern *p, const char *line) {
    if (!p->subject)
        return regexec(&p->regex, line, 0, NULL, 0) == 0;
    bool found = is_word(p->subject, line) && (!p->kernels || is_kernel(p, line));
    for (uint32_t i = 0; i < p->n_params && found; i++)
        found = has_param(line, p->params[i]);
    return found;
}

bool tc_filters_add(tc_filters *filters, const char *text, char why[TC_MESSAGE]) {
    if (filters->n == TC_MOST_FILTERS)
        return tc_why(why, TC_MESSAGE, "too many; a regular expression /a|b/ joins some");
    tc_pattern *pattern = tc_pattern_create(text, why);
    if (pattern)
        filters->at[filters->n++] = pattern;
    return pattern != NULL;
}

void tc_filters_finish(tc_filters *filters) {
    while (filters->n)
        tc_pattern_destroy(filters->at[--filters->n]);
}
