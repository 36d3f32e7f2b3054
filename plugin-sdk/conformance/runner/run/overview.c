/* See overview.h. */
#include "plugin-sdk/conformance/runner/run/overview.h"

#include <stdlib.h>
#include <string.h>

#include "plugin-sdk/conformance/runner/run/schedule.h"

enum { WIDTH = 88 };

void tc_overview_put(const tc_selection *selection, FILE *out) {
    size_t counts[TC_N_SCHEDULES] = {0};
    for (size_t i = 0; i < selection->n; i++)
        counts[selection->at[i].schedule]++;
    for (unsigned i = 0; i < TC_N_SCHEDULES; i++)
        if (counts[i])
            fprintf(out, "    %-10s %7zu\n", i ? tc_schedule_get(i)->class : "others", counts[i]);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The subjects of a class, each once. */
static void put_subjects(const tc_selection *selection, unsigned schedule, FILE *out) {
    const char **lines = calloc(selection->n + 1, sizeof *lines);
    size_t n = 0, column = WIDTH, length = 0;
    for (size_t i = 0; lines && i < selection->n; i++)
        if (selection->at[i].schedule == schedule)
            lines[n++] = strchr(selection->at[i].line, '/') + 1;
    if (n)
        qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++) {
        if (i && strcspn(lines[i], " ") == length && memcmp(lines[i], lines[i - 1], length) == 0)
            continue;
        length = strcspn(lines[i], " ");
        if (column + length + 1 > WIDTH) {
            fputs(i ? "\n   " : "   ", out);
            column = 3;
        }
        fprintf(out, " %.*s", (int)length, lines[i]);
        column += length + 1;
    }
    fputs(n ? "\n" : "", out);
    free(lines);
}

/* A few lines of the class and subject that the pattern begins with, from all of them; false where
 * there are none. */
static bool put_lines(const tc_selection *selection, const char *pattern, FILE *out) {
    enum { SHOWN = 6 };
    size_t length = strcspn(pattern, " "), n = 0, met = 0;
    for (size_t i = 0; i < selection->n; i++)
        n += strncmp(selection->at[i].line, pattern, length) == 0 &&
             selection->at[i].line[length] == ' ';
    if (n > 0)
        fprintf(out, "no case is found by `%.500s`; of %.*s there are %zu, as:\n", pattern,
                (int)length, pattern, n);
    for (size_t i = 0; i < selection->n && n > 0; i++)
        if (strncmp(selection->at[i].line, pattern, length) == 0 &&
            selection->at[i].line[length] == ' ' && met++ * SHOWN % n < SHOWN)
            fprintf(out, "    %s\n", selection->at[i].line);
    return n > 0;
}

void tc_overview_missing(const tc_selection *selection, const char *pattern, FILE *out) {
    if (strchr(pattern, '/') && put_lines(selection, pattern, out))
        return;
    unsigned schedule = *pattern == '/' ? TC_UNKNOWN_SCHEDULE : tc_schedule_of(pattern);
    bool named = false;
    for (size_t i = 0; schedule != TC_UNKNOWN_SCHEDULE && i < selection->n && !named; i++)
        named = selection->at[i].schedule == schedule;
    fprintf(out, "no case is found by `%.500s`; %s\n", pattern,
            named ? "its class has these:" : "these classes have cases:");
    if (named)
        put_subjects(selection, schedule, out);
    else
        tc_overview_put(selection, out);
}
