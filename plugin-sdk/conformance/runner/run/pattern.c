/* See pattern.h. */
#include "plugin-sdk/conformance/runner/run/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tc_glob(const char *form, const char *text, size_t n) {
    const char *end = text + n, *star = NULL, *back = NULL;
    while (text < end) {
        if (*form == '*') {
            star = form++;
            back = text;
        } else if (*form == '?' || *form == *text) {
            form++;
            text++;
        } else if (star) { /* let the last star take one letter more */
            form = star + 1;
            text = ++back;
        } else {
            return false;
        }
    }
    while (*form == '*')
        form++;
    return *form == '\0';
}

static bool read_words(tc_pattern *p, const char *text, char why[TC_MESSAGE]) {
    strcpy(p->words, text);
    char *rest = NULL;
    for (char *word = strtok_r(p->words, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        size_t n = strlen(p->text);
        snprintf(p->text + n, sizeof p->text - n, "%s%s", n ? " " : "", word);
        if (!p->subject) {
            p->subject = word;
        } else if (!strchr(word, '=')) {
            snprintf(why, TC_MESSAGE, "%.100s: words after the first are name=value", word);
            return false;
        } else if (p->n_params == TC_MAX_PARAMS) {
            snprintf(why, TC_MESSAGE, "more than %d parameters", TC_MAX_PARAMS);
            return false;
        } else {
            p->params[p->n_params++] = word;
        }
    }
    if (p->subject)
        return true;
    snprintf(why, TC_MESSAGE, "a pattern is empty");
    return false;
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

/* Whether one of the words after the line's first is of the form. */
static bool has_param(const char *line, const char *form) {
    for (const char *at = strchr(line, ' '); at; at = strchr(at, ' ')) {
        at++;
        if (tc_glob(form, at, strcspn(at, " ")))
            return true;
    }
    return false;
}

bool tc_pattern_finds(const tc_pattern *p, const char *line) {
    if (!p->subject)
        return regexec(&p->regex, line, 0, NULL, 0) == 0;
    if (!tc_glob(p->subject, line, strcspn(line, " ")))
        return false;
    for (uint32_t i = 0; i < p->n_params; i++)
        if (!has_param(line, p->params[i]))
            return false;
    return true;
}
