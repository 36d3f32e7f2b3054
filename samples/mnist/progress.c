/* The progress line. */
#include "progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { N_PLAIN_LINES = 10, WIDEST_BAR = 30, REST_OF_LINE = 70 };
static const double redraw_every = 0.1; /* seconds */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(progress *p, const char *name, int64_t n_steps, int n_epochs, int batch,
                    bool is_shown) {
    *p = (progress){.name = name,
                    .n_steps = n_steps,
                    .n_epochs = n_epochs,
                    .batch = batch,
                    .is_shown = is_shown,
                    .is_terminal = isatty(STDOUT_FILENO),
                    .started = now(),
                    .shown_step = -1};
}

/* As many cells as leave the figures room on one line. */
static int bar_width(void) {
    struct winsize size;
    int columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
    int width = columns - REST_OF_LINE;
    return width < 0 ? 0 : width > WIDEST_BAR ? WIDEST_BAR : width;
}

static void print_bar(double part) {
    int width = bar_width(), full = (int)(part * width + 0.5);
    for (int i = 0; i < width; i++)
        fputs(i < full ? "━" : "╌", stdout);
}

static void print_figures(const progress *p, int64_t done, double loss, double seconds) {
    double rate = seconds > 0 ? (double)(done * p->batch) / seconds : 0;
    int left = (int)(seconds * (double)(p->n_steps - done) / (double)done + 0.5);
    int64_t epoch = (done - 1) * p->n_epochs / p->n_steps + 1;
    printf(" %3d%%  epoch %d/%d  loss %.4f  %6.0f images/s  %d:%02d left",
           (int)(100 * done / p->n_steps), (int)epoch, p->n_epochs, loss, rate, left / 60,
           left % 60);
}

static void show(progress *p, int64_t done, double loss, double at) {
    if (p->is_terminal)
        printf("\r\033[K%s  ", p->name);
    else
        printf("%s ", p->name);
    if (p->is_terminal)
        print_bar((double)done / (double)p->n_steps);
    print_figures(p, done, loss, at - p->started);
    if (!p->is_terminal)
        printf("\n");
    fflush(stdout);
    p->shown = at;
    p->shown_step = done;
}

void progress_update(progress *p, int64_t step, double loss) {
    if (!p->is_shown)
        return;
    double at = now();
    int64_t done = step + 1;
    bool is_due = p->is_terminal ? at - p->shown >= redraw_every
                                 : done * N_PLAIN_LINES / p->n_steps >
                                       p->shown_step * N_PLAIN_LINES / p->n_steps;
    if (is_due)
        show(p, done, loss, at);
}

void progress_end(progress *p) {
    if (p->is_shown && p->is_terminal) {
        printf("\r\033[K");
        fflush(stdout);
    }
    p->is_shown = false;
}
