/* See progress.h. */
#include "plugin-sdk/conformance/runner/run/progress.h"

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/runner/run/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 24 };

static double cost_of(const tc_item *items, size_t n) {
    double cost = 0;
    for (size_t i = 0; i < n; i++)
        cost += tc_schedule_get(items[i].schedule)->cost;
    return cost;
}

void tc_progress_init(tc_progress *p, const tc_item *items, size_t n, bool quiet) {
    const char *term = getenv("TERM");
    *p = (tc_progress){.n = n, .work = cost_of(items, n), .start = tc_now(), .quiet = quiet};
    p->shown = p->start;
    p->terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void tc_progress_done(tc_progress *p, const tc_item *item) {
    p->done++;
    p->worked += cost_of(item, 1);
}

void tc_progress_drop(tc_progress *p, const tc_item *items, size_t n) {
    p->n -= n;
    p->work -= cost_of(items, n);
}

double tc_progress_left(const tc_progress *p, double now) {
    if (p->done == 0)
        return -1;
    return p->done == p->n ? 0 : (now - p->start) * (p->work - p->worked) / p->worked;
}

static char *duration(double seconds, char out[32]) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(out, 32, "%ld h %02ld min", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(out, 32, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(out, 32, "%ld s", s);
    return out;
}

void tc_progress_tick(tc_progress *p) {
    double now = tc_now(), every = p->terminal ? 0.1 : 10;
    if (p->quiet || now - p->shown < every)
        return;
    p->shown = now;
    double rate = (double)p->done / (now - p->start), seconds = tc_progress_left(p, now);
    char left[32] = "?", bad[48] = "";
    if (seconds >= 0)
        duration(seconds, left);
    if (p->bad)
        snprintf(bad, sizeof bad, ", %zu bad", p->bad);
    if (!p->terminal) {
        fprintf(stderr, "%zu of %zu%s, %.0f/s, %s left\n", p->done, p->n, bad, rate, left);
        return;
    }
    char bar[BAR + 1], line[256];
    size_t full = p->n ? p->done * BAR / p->n : 0;
    for (size_t i = 0; i < BAR; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR] = '\0';
    snprintf(line, sizeof line, "[%s] %zu/%zu%s  %.0f/s  %s left", bar, p->done, p->n, bad, rate,
             left);
    struct winsize size;
    size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
                       ? (size_t)size.ws_col - 1
                       : 79;
    if (width < strlen(line))
        line[width] = '\0';
    fprintf(stderr, "\r%s\033[K", line);
}

void tc_progress_clear(tc_progress *p) {
    if (p->terminal && !p->quiet)
        fputs("\r\033[K", stderr);
}
