/* Draws a run as an SVG: for each network the loss and the accuracy over the time of training, and
 * the digits it got wrong.
 *
 *   title
 *   mlp ---------------------------
 *   | loss           || accuracy  |
 *   | wrong digits                |
 *   cnn ---------------------------
 */
#include "report.h"

#include <math.h>
#include <stdio.h>

enum {
    WIDTH = 960,
    MARGIN = 40,
    TITLE_HEIGHT = 64,
    HEAD_HEIGHT = 56,
    LABEL_WIDTH = 40, /* of the numbers left of an axis */
    PLOT_WIDTH = 374, /* inside the axes */
    PLOT_HEIGHT = 170,
    PLOT_GAP = 92,
    PLOT_TOP = 24, /* the panel's name */
    AXIS_HEIGHT = 44,
    DIGIT = 36, /* side of a drawn image */
    DIGIT_STEP = 44,
    DIGIT_ROW = 58,
    DIGITS_IN_ROW = 20,
    SIDE = 28,
    N_GREYS = 6
};

static const char *const style =
    "text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px;fill:#444}"
    ".title{font-size:22px;font-weight:600;fill:#111}.head{font-size:16px;font-weight:600;fill:#"
    "111}"
    ".grid{stroke:#e4e4e4}.axis{stroke:#999}.raw{fill:none;stroke-width:1;opacity:.28}"
    ".line{fill:none;stroke-width:2}.end{text-anchor:end}.mid{text-anchor:middle}"
    ".name{font-weight:600}";

static const char *const colours[] = {"#1f6feb", "#c2410c"};

/* ---- axes -------------------------------------------------------------------------------- */

typedef struct axis {
    double low, high;       /* of the data */
    double at_low, at_high; /* on the page */
    bool is_log;
} axis;

static double place(const axis *a, double value) {
    double part = a->is_log ? (log(value) - log(a->low)) / (log(a->high) - log(a->low))
                            : (value - a->low) / (a->high - a->low);
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return a->at_low + part * (a->at_high - a->at_low);
}

/* 1, 2 or 5 times a power of ten, so that about n fit into `span`. */
static double nice_step(double span, int n) {
    double raw = span / n, power = pow(10, floor(log10(raw))), part = raw / power;
    return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

static void horizontal_tick(FILE *f, const axis *x, const axis *y, double value, int decimals) {
    double at = place(y, value);
    fprintf(f, "<path class='grid' d='M%.1f %.1fH%.1f'/>\n", x->at_low, at, x->at_high);
    fprintf(f, "<text class='end' x='%.1f' y='%.1f'>%.*f</text>\n", x->at_low - 8, at + 4, decimals,
            value);
}

static int decimals_of(double step) {
    int n = (int)ceil(-log10(step) - 1e-9);
    return n < 0 ? 0 : n;
}

static void draw_y_axis(FILE *f, const axis *x, const axis *y) {
    if (!y->is_log) {
        double step = nice_step(y->high - y->low, 4);
        for (int i = (int)ceil(y->low / step - 1e-9); i * step <= y->high + 1e-9; i++)
            horizontal_tick(f, x, y, i * step, decimals_of(step));
        return;
    }
    static const double digits[] = {1, 2, 5};
    for (int power = -6; power < 4; power++) {
        for (int i = 0; i < 3; i++) {
            double value = digits[i] * pow(10, power);
            if (value >= y->low * 0.999 && value <= y->high * 1.001)
                horizontal_tick(f, x, y, value, power < 0 ? -power : 0);
        }
    }
}

static void draw_x_axis(FILE *f, const axis *x, const axis *y) {
    double step = nice_step(x->high - x->low, 6);
    for (int i = 0; i * step <= x->high + 1e-9; i++) {
        double at = place(x, i * step);
        fprintf(f, "<path class='axis' d='M%.1f %.1fv5'/>\n", at, y->at_low);
        fprintf(f, "<text class='mid' x='%.1f' y='%.1f'>%.*f</text>\n", at, y->at_low + 19,
                decimals_of(step), i * step);
    }
    fprintf(f, "<path class='axis' d='M%.1f %.1fH%.1f'/>\n", x->at_low, y->at_low, x->at_high);
    fprintf(f, "<text class='mid' x='%.1f' y='%.1f'>seconds of training</text>\n",
            (x->at_low + x->at_high) / 2, y->at_low + 36);
}

/* ---- curves ------------------------------------------------------------------------------ */

static void draw_line(FILE *f, const char *class_name, const char *colour, const axis *x,
                      const axis *y, const point *points, int n) {
    fprintf(f, "<path class='%s' stroke='%s' d='", class_name, colour);
    for (int i = 0; i < n; i++)
        fprintf(f, "%c%.1f %.1f", i ? 'L' : 'M', place(x, points[i].seconds),
                place(y, points[i].value));
    fprintf(f, "'/>\n");
}

/* The mean of the points around each, over about 1/40 of them. */
static int smooth(const point *points, int n, point *out) {
    int reach = n / 80 + 1;
    for (int i = 0; i < n; i++) {
        int from = i - reach < 0 ? 0 : i - reach, to = i + reach >= n ? n - 1 : i + reach;
        double sum = 0;
        for (int j = from; j <= to; j++)
            sum += points[j].value;
        out[i] = (point){points[i].seconds, sum / (to - from + 1)};
    }
    return n;
}

static void limits(const point *points, int n, double *out_low, double *out_high) {
    *out_low = n ? points[0].value : 0;
    *out_high = n ? points[0].value : 1;
    for (int i = 1; i < n; i++) {
        *out_low = fmin(*out_low, points[i].value);
        *out_high = fmax(*out_high, points[i].value);
    }
}

static void panel_name(FILE *f, double left, double top, const char *name) {
    fprintf(f, "<text class='name' x='%.1f' y='%.1f'>%s</text>\n", left, top + 12, name);
}

static axis time_axis(const history *h, double left) {
    return (axis){0, h->seconds > 0 ? h->seconds : 1, left, left + PLOT_WIDTH, false};
}

static void draw_losses(FILE *f, const history *h, const char *colour, double left, double top) {
    static point smoothed[MAX_LOSSES];
    int n = smooth(h->losses, h->n_losses, smoothed);
    double low, high;
    limits(smoothed, n, &low, &high);
    low = fmax(low * 0.6, 1e-4);
    high = fmax(high * 1.2, low * 10);

    axis x = time_axis(h, left),
         y = {low, high, top + PLOT_TOP + PLOT_HEIGHT, top + PLOT_TOP, true};
    panel_name(f, left - LABEL_WIDTH, top, "training loss (cross entropy, log scale)");
    draw_y_axis(f, &x, &y);
    draw_x_axis(f, &x, &y);
    draw_line(f, "raw", colour, &x, &y, h->losses, h->n_losses);
    draw_line(f, "line", colour, &x, &y, smoothed, n);
}

static void draw_accuracies(FILE *f, const history *h, const char *colour, double left,
                            double top) {
    double low, high;
    limits(h->accuracies, h->n_accuracies, &low, &high);
    low = fmax(0, floor(low * 20 - 0.2) / 20);
    axis x = time_axis(h, left), y = {low, 1, top + PLOT_TOP + PLOT_HEIGHT, top + PLOT_TOP, false};
    panel_name(f, left - LABEL_WIDTH, top, "test accuracy");
    draw_y_axis(f, &x, &y);
    draw_x_axis(f, &x, &y);
    draw_line(f, "line", colour, &x, &y, h->accuracies, h->n_accuracies);
    for (int i = 0; i < h->n_accuracies; i++)
        fprintf(f, "<circle cx='%.1f' cy='%.1f' r='%s' fill='%s'/>\n",
                place(&x, h->accuracies[i].seconds), place(&y, h->accuracies[i].value),
                i == h->n_accuracies - 1 ? "4.5" : "2.5", colour);
}

/* ---- digits ------------------------------------------------------------------------------ */

static int grey(uint8_t pixel) {
    return pixel * N_GREYS / 256;
}

/* Runs of equal grey, one path for each grey: a tenth of the size of one square for each pixel. */
static void draw_pixels(FILE *f, const uint8_t *pixels) {
    for (int level = 1; level < N_GREYS; level++) {
        bool is_open = false;
        for (int row = 0; row < SIDE; row++) {
            for (int start = 0, end; start < SIDE; start = end) {
                int here = grey(pixels[row * SIDE + start]);
                for (end = start + 1; end < SIDE && grey(pixels[row * SIDE + end]) == here;)
                    end++;
                if (here != level)
                    continue;
                if (!is_open)
                    fprintf(f, "<path opacity='%.2f' d='", (double)level / (N_GREYS - 1));
                is_open = true;
                fprintf(f, "M%d %dh%dv1h-%dz", start, row, end - start, end - start);
            }
        }
        if (is_open)
            fprintf(f, "'/>");
    }
}

static void draw_mistake(FILE *f, const mistake *m, const char *colour, double left, double top) {
    fprintf(f, "<g transform='translate(%.1f %.1f)'>", left, top);
    fprintf(f, "<rect width='%d' height='%d' rx='3' fill='#f4f4f5'/>", DIGIT, DIGIT);
    fprintf(f, "<g transform='scale(%.4f)' fill='#111'>", (double)DIGIT / SIDE);
    draw_pixels(f, m->pixels);
    fprintf(f, "</g><text class='mid' x='%d' y='%d'>%d → <tspan fill='%s'>%d</tspan></text></g>\n",
            DIGIT / 2, DIGIT + 14, m->label, colour, m->predicted);
}

static void draw_mistakes(FILE *f, const history *h, const char *colour, double top) {
    char name[96];
    snprintf(name, sizeof(name), "taken for another digit: %lld of %lld%s (true → taken for)",
             (long long)h->n_wrong, (long long)h->n_tested,
             h->n_wrong > h->n_mistakes ? ", the first of them" : "");
    panel_name(f, MARGIN, top, name);
    for (int i = 0; i < h->n_mistakes; i++) {
        int column = i % DIGITS_IN_ROW, row = i / DIGITS_IN_ROW;
        draw_mistake(f, &h->mistakes[i], colour, MARGIN + column * DIGIT_STEP,
                     top + PLOT_TOP + row * DIGIT_ROW);
    }
}

/* ---- the page ---------------------------------------------------------------------------- */

static int mistakes_height(const history *h) {
    int rows = (h->n_mistakes + DIGITS_IN_ROW - 1) / DIGITS_IN_ROW;
    return PLOT_TOP + rows * DIGIT_ROW;
}

static int block_height(const history *h) {
    return HEAD_HEIGHT + PLOT_TOP + PLOT_HEIGHT + AXIS_HEIGHT + mistakes_height(h) + 24;
}

static void draw_block(FILE *f, const history *h, const char *colour, double top) {
    fprintf(f, "<path class='axis' d='M%d %.1fH%d'/>\n", MARGIN, top, WIDTH - MARGIN);
    fprintf(f,
            "<text class='head' x='%d' y='%.1f'><tspan fill='%s'>%s</tspan> test accuracy %.4f"
            "</text>\n",
            MARGIN, top + 26, colour, h->model, h->accuracy);
    fprintf(f,
            "<text class='end' x='%d' y='%.1f'>%lld weights, %d epoch%s of %lld images in %.1f s, "
            "%.0f images/s</text>\n",
            WIDTH - MARGIN, top + 26, (long long)h->n_weights, h->n_epochs,
            h->n_epochs == 1 ? "" : "s", (long long)h->n_images, h->seconds,
            (double)(h->n_images * h->n_epochs) / h->seconds);
    top += HEAD_HEIGHT - 12;
    draw_losses(f, h, colour, MARGIN + LABEL_WIDTH, top);
    draw_accuracies(f, h, colour, MARGIN + LABEL_WIDTH + PLOT_WIDTH + PLOT_GAP, top);
    draw_mistakes(f, h, colour, top + PLOT_TOP + PLOT_HEIGHT + AXIS_HEIGHT + 12);
}

static void draw_page(FILE *f, const history *histories, int n) {
    int height = TITLE_HEIGHT;
    for (int i = 0; i < n; i++)
        height += block_height(&histories[i]);
    fprintf(f,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d'>\n"
            "<style>%s</style>\n<rect width='100%%' height='100%%' fill='#fff'/>\n",
            WIDTH, height, WIDTH, height, style);
    fprintf(f, "<text class='title' x='%d' y='44'>MNIST, trained with Tenon</text>\n", MARGIN);
    double top = TITLE_HEIGHT;
    for (int i = 0; i < n; i++) {
        draw_block(f, &histories[i], colours[i % 2], top);
        top += block_height(&histories[i]);
    }
    fprintf(f, "</svg>\n");
}

bool report_write(const char *path, const history *histories, int n) {
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    draw_page(f, histories, n);
    bool is_written = !ferror(f);
    return fclose(f) == 0 && is_written;
}
