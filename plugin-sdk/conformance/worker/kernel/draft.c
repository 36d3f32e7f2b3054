/* See draft.h. */
#include "plugin-sdk/conformance/worker/kernel/draft.h"

#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/worker/kernel/record.h"

bool tc_draft_read(const char *line, tc_draft *out, char why[TC_MESSAGE]) {
    tc_case c;
    memset(out, 0, sizeof *out);
    if (!tc_case_parse(line, &c, why))
        return false;
    bool fits = strlen(c.class) < TC_DRAFT_NAME && strlen(c.subject) < TC_DRAFT_NAME;
    for (uint32_t i = 0; i < c.n_params; i++)
        fits &=
            strlen(c.params[i].name) < TC_DRAFT_NAME && strlen(c.params[i].value) < TC_DRAFT_VALUE;
    if (!fits)
        return tc_why(why, TC_MESSAGE, "a word of the line is too long to be shrunk");
    strcpy(out->class, c.class);
    strcpy(out->subject, c.subject);
    for (uint32_t i = 0; i < c.n_params; i++)
        tc_draft_set(out, c.params[i].name, c.params[i].value);
    return true;
}

static bool calls_kernel(const tc_draft *d) {
    return strcmp(d->class, "kernel") == 0 || strcmp(d->class, "same") == 0 ||
           strcmp(d->class, "refuse") == 0;
}

bool tc_draft_line(const tc_draft *d, char out[TC_MAX_LINE]) {
    char text[TC_MAX_LINE], why[TC_MESSAGE];
    size_t n = (size_t)snprintf(text, sizeof text, "%s/%s", d->class, d->subject);
    for (uint32_t i = 0; i < d->n && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s=%s", d->at[i].name, d->at[i].value);
    tc_case c;
    if (n >= sizeof text || !tc_case_parse(text, &c, why))
        return false;
    tc_case_line(&c, out);
    if (!calls_kernel(d))
        return true;
    tc_arena arena = {NULL};
    tc_invocation call;
    bool good = tc_invocation_parse(&c, &arena, &call, why);
    tc_arena_finish(&arena);
    return good;
}

int tc_draft_find(const tc_draft *d, const char *name) {
    for (uint32_t i = 0; i < d->n; i++)
        if (tc_same_word(d->at[i].name, name))
            return (int)i;
    return -1;
}

void tc_draft_set(tc_draft *d, const char *name, const char *value) {
    int at = tc_draft_find(d, name);
    if (at < 0) {
        if (d->n == TC_MAX_PARAMS)
            return;
        at = (int)d->n++;
        snprintf(d->at[at].name, TC_DRAFT_NAME, "%s", name);
    }
    snprintf(d->at[at].value, TC_DRAFT_VALUE, "%s", value);
}

void tc_draft_remove(tc_draft *d, int at) {
    memmove(&d->at[at], &d->at[at + 1], (d->n - (uint32_t)at - 1) * sizeof *d->at);
    d->n--;
}

bool tc_draft_shape(const tc_draft *d, int at, tc_shape *out) {
    char why[TC_MESSAGE];
    return d->at[at].value[0] == '[' && tc_read_shape(d->at[at].value, out, why);
}

void tc_draft_put_shape(tc_draft *d, int at, const tc_shape *s) {
    tc_write_shape(s, d->at[at].value, TC_DRAFT_VALUE);
}

void tc_draft_set_shape(tc_draft *d, const char *name, const tc_shape *s) {
    char text[TC_DRAFT_VALUE];
    tc_draft_set(d, name, tc_write_shape(s, text, sizeof text));
}
