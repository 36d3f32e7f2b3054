/* Losses over steps, as an SVG. */
#include "curve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 760, HEIGHT = 420, LEFT = 56, RIGHT = 20, TOP = 48, BOTTOM = 44 };

typedef struct frame {
    double steps, low, high;
} frame;

static double x_of(const frame *f, double step) {
    return LEFT + step / f->steps * (WIDTH - LEFT - RIGHT);
}

static double y_of(const frame *f, double loss) {
    return TOP + (f->high - loss) / (f->high - f->low) * (HEIGHT - TOP - BOTTOM);
}

static void grow(frame *f, const point *points, int n) {
    for (int i = 0; i < n; i++) {
        if (points[i].loss > f->high)
            f->high = points[i].loss;
        if (points[i].loss < f->low)
            f->low = points[i].loss;
        if ((double)points[i].step > f->steps)
            f->steps = (double)points[i].step;
    }
}

static void put_line(FILE *out, const frame *f, const point *points, int n, const char *style) {
    fprintf(out, "<polyline fill=\"none\" %s points=\"", style);
    for (int i = 0; i < n; i++)
        fprintf(out, "%.1f,%.1f ", x_of(f, (double)points[i].step), y_of(f, points[i].loss));
    fputs("\"/>\n", out);
}

static void put_axes(FILE *out, const frame *f) {
    for (int i = 0; i <= 6; i++) {
        double loss = f->low + (f->high - f->low) * i / 6, y = y_of(f, loss);
        fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>", LEFT, y, WIDTH - RIGHT);
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.2f</text>\n", LEFT - 8, y + 4,
                loss);
    }
    for (int i = 0; i <= 5; i++)
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
                x_of(f, f->steps * i / 5), HEIGHT - BOTTOM + 18, f->steps * i / 5);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">steps</text>\n", WIDTH / 2,
            HEIGHT - 8);
}

bool curve_write(const char *path, const history *h, const char *device) {
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "gpt: %s: %s\n", path, strerror(errno));
        return false;
    }
    frame f = {.steps = 1, .low = 1e9, .high = 0};
    grow(&f, h->train, h->n_train);
    grow(&f, h->test, h->n_test);
    if (!(f.low < f.high)) /* one point, or none */
        f = (frame){.steps = f.steps, .low = f.high - 0.5, .high = f.high + 0.5};
    fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"#444\">\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
        "<text x=\"%d\" y=\"24\" font-size=\"16\" fill=\"#111\">Cross entropy of the next byte, "
        "in nats, on %s</text>\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, device);
    put_axes(out, &f);
    put_line(out, &f, h->train, h->n_train, "stroke=\"#9bbbe0\" stroke-width=\"1.5\"");
    put_line(out, &f, h->test, h->n_test, "stroke=\"#d1495b\" stroke-width=\"2.5\"");
    fprintf(
        out,
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#6a94c4\">text that is learnt</text>\n"
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#d1495b\">text that is not</text>\n"
        "</svg>\n",
        WIDTH - RIGHT, TOP + 16, WIDTH - RIGHT, TOP + 34);
    bool good = !ferror(out);
    if (fclose(out) != 0 || !good) {
        fprintf(stderr, "gpt: %s could not be written whole\n", path);
        return false;
    }
    return true;
}
