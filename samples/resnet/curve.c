/* Losses and accuracies over steps, one below the other, as an SVG. */
#include "curve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGE = 760,
    LEFT = 56,
    RIGHT = 20,
    HEAD = 48,
    PLOT = 190,
    GAP = 56,
    FOOT = 44,
    SMOOTHED = 9
};
enum { HEIGHT = HEAD + 2 * PLOT + GAP + FOOT };

typedef struct frame {
    double steps, low, high;
    int top;
} frame;

static double x_of(const frame *f, int64_t step) {
    return LEFT + (double)step / f->steps * (PAGE - LEFT - RIGHT);
}

static double y_of(const frame *f, double value) {
    return f->top + (f->high - value) / (f->high - f->low) * PLOT;
}

/* The mean of the points around i. */
static double smoothed(const point *points, int n, int i) {
    int from = i > SMOOTHED / 2 ? i - SMOOTHED / 2 : 0;
    int to = i + SMOOTHED / 2 < n - 1 ? i + SMOOTHED / 2 : n - 1;
    double sum = 0;
    for (int k = from; k <= to; k++)
        sum += points[k].value;
    return sum / (to - from + 1);
}

static void put_line(FILE *out, const frame *f, const point *points, int n, bool smooth,
                     const char *style) {
    fprintf(out, "<polyline fill=\"none\" %s points=\"", style);
    for (int i = 0; i < n; i++)
        fprintf(out, "%.1f,%.1f ", x_of(f, points[i].step),
                y_of(f, smooth ? smoothed(points, n, i) : points[i].value));
    fputs("\"/>\n", out);
}

/* Lines and numbers, `format` of a value times `unit`, and the panel's name. */
static void put_axes(FILE *out, const frame *f, const char *format, double unit, const char *name) {
    fprintf(out, "<text x=\"%d\" y=\"%d\" fill=\"#111\">%s</text>\n", LEFT, f->top - 8, name);
    for (int i = 0; i <= 5; i++) {
        double value = f->low + (f->high - f->low) * i / 5, y = y_of(f, value);
        fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>", LEFT, y, PAGE - RIGHT);
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y + 4);
        fprintf(out, format, value * unit);
        fputs("</text>\n", out);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
                LEFT + (PAGE - LEFT - RIGHT) * i / 5.0, f->top + PLOT + 18, f->steps * i / 5);
    }
}

bool curve_write(const char *path, const history *h, const char *title) {
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "resnet: %s: %s\n", path, strerror(errno));
        return false;
    }
    frame losses = {.steps = 1, .high = 0.1, .top = HEAD};
    for (int i = 0; i < h->n_losses; i++) {
        losses.high = h->losses[i].value > losses.high ? h->losses[i].value : losses.high;
        losses.steps = (double)h->losses[i].step;
    }
    frame right = {.steps = losses.steps, .high = 1, .top = losses.top + PLOT + GAP};
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"#444\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
            "<text x=\"%d\" y=\"26\" font-size=\"16\" fill=\"#111\">%s</text>\n",
            PAGE, HEIGHT, PAGE, HEIGHT, LEFT, title);
    put_axes(out, &losses, "%.2f", 1, "cross entropy of the batches, in nats");
    put_line(out, &losses, h->losses, h->n_losses, false, "stroke=\"#9bbbe0\"");
    put_line(out, &losses, h->losses, h->n_losses, true, "stroke=\"#1f6feb\" stroke-width=\"2.5\"");
    put_axes(out, &right, "%.0f %%", 100, "test pictures that it gets right, over the steps");
    put_line(out, &right, h->accuracies, h->n_accuracies, false,
             "stroke=\"#d1495b\" stroke-width=\"2.5\"");
    for (int i = 0; i < h->n_accuracies; i++)
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#d1495b\"/>\n",
                x_of(&right, h->accuracies[i].step), y_of(&right, h->accuracies[i].value));
    fputs("</svg>\n", out);
    bool good = !ferror(out);
    if (fclose(out) != 0 || !good) {
        fprintf(stderr, "resnet: %s could not be written whole\n", path);
        return false;
    }
    return true;
}
