/* See figures.h. */
#include "plugin-sdk/conformance/runner/report/figures.h"

#include <stdio.h>

const char *const tc_figure_titles[TC_N_FIGURES] = {"time", "spread",  "on the device",
                                                    "GB/s", "GFLOP/s", "of the ceiling"};

char *tc_duration_text(double ns, char out[TC_FIGURE]) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    unsigned k = 0;
    for (; k < 3 && ns >= 999.5; k++)
        ns /= 1000;
    snprintf(out, TC_FIGURE, "%.3g %s", ns, units[k]);
    return out;
}

double tc_times_as_long(const tc_figures *before, const tc_figures *after, bool *out_within) {
    double ratio = after->ns / before->ns;
    double noise = before->spread > after->spread ? before->spread : after->spread;
    *out_within = ratio < 1 + noise && ratio > 1 / (1 + noise);
    return ratio;
}

void tc_figure_texts(const tc_figures *f, char out[TC_N_FIGURES][TC_FIGURE]) {
    for (unsigned i = 0; i < TC_N_FIGURES; i++)
        out[i][0] = '\0';
    tc_duration_text(f->ns, out[0]);
    snprintf(out[1], TC_FIGURE, "%.0f %%", 100 * f->spread);
    if (f->device_ns > 0)
        tc_duration_text(f->device_ns, out[2]);
    if (f->bytes > 0)
        snprintf(out[3], TC_FIGURE, "%.3g", f->bytes / f->ns);
    if (f->flop > 0)
        snprintf(out[4], TC_FIGURE, "%.3g", f->flop / f->ns);
    if (f->share > 0)
        snprintf(out[5], TC_FIGURE, "%.0f %% of %s", 100 * f->share, tc_ceiling_name(f->bound));
}
