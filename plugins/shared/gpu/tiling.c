/* CPUs get lanes that become vectors and work items that are tasks; GPUs as many work items as there
 * are elements to share. */
#include "plugins/shared/gpu/tiling.h"

enum {
    LANES_ROWS = 32,     /* of a work item of a CPU: two to eight vectors, to hide latency */
    LANES_COLUMNS = 256, /* there: enough that each row read is worth its page */
    TASK = 16384         /* elements worth a work item of a CPU */
};

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The largest power of two that is not above n, nor above `limit`. */
static int64_t power_below(int64_t n, int64_t limit) {
    int64_t power = 1;
    while (power * 2 <= n && power * 2 <= limit)
        power *= 2;
    return power;
}

bool gpu_tiling_by_rows(const gpu_lines *lines) {
    bool short_run = lines->run < GPU_TILING_SHORT && lines->width > lines->run,
         short_width = lines->width < GPU_TILING_SHORT && lines->run > lines->width;
    return !short_run && (short_width || lines->run_step <= lines->step);
}

static void choose_for_cpu(gpu_tiling *t, const gpu_traits *traits, const gpu_lines *lines) {
    t->wanted = 4 * (int64_t)traits->compute_units;
    t->l = t->m = t->p = 1;
    t->w = t->rows ? LANES_ROWS : LANES_COLUMNS;
    int64_t side_by_side = t->rows ? 1 : smaller(lines->width, LANES_COLUMNS);
    t->n_teams = lines->n / lines->width *
                 (t->rows ? lines->width : gpu_ceil_div(lines->width, side_by_side));
    t->per = larger(gpu_ceil_div(TASK, side_by_side * lines->length),
                    gpu_ceil_div(t->n_teams, 4 * t->wanted));
}

static int64_t power_above(int64_t n, int64_t limit) {
    int64_t power = 1;
    while (power < n && power < limit)
        power *= 2;
    return power;
}

/* Lanes of a run: few, each with several packs, so that little is left to do together; more where
 * there are too few lines to keep the device busy. */
static int64_t lanes_of_run(const gpu_traits *traits, const gpu_lines *lines, int64_t w,
                            int64_t limit) {
    enum { PACKS = 4, ITEMS = 1024 }; /* of a lane; of a compute unit that does not say */
    int64_t items = (traits->unit_items ? traits->unit_items : ITEMS) / 2 * traits->compute_units,
            packs = gpu_ceil_div(lines->run, w), each = PACKS;
    while (each > 1 && lines->n * gpu_ceil_div(packs, each) < items)
        each /= 2;
    return power_above(gpu_ceil_div(packs, each), limit);
}

static void choose_for_gpu(gpu_tiling *t, const gpu_traits *traits, const gpu_lines *lines) {
    int64_t limit = power_below(traits->max_group, 256);
    t->wanted = 8 * (int64_t)traits->compute_units;
    t->w = t->per = 1;
    if (t->rows) {
        t->w = lines->pack;
        t->l = lanes_of_run(traits, lines, t->w, limit);
        t->m = power_below(lines->length / lines->run, limit / t->l);
        t->p = power_below(lines->n, limit / t->l / t->m);
        t->p = larger(t->p, traits->warp / (t->l * t->m)); /* no part of a warp */
        t->n_teams = lines->n;
    } else {
        t->m = lines->in_order ? 1 : power_below(lines->length / GPU_TILING_SHORT, limit / 32);
        t->l = power_below(2 * lines->width - 1, limit / t->m);
        t->n_teams = lines->n / lines->width * gpu_ceil_div(lines->width, t->l);
        t->p = power_below(t->n_teams, limit / t->l / t->m);
    }
}

int64_t gpu_tiling_steps(const gpu_tiling *t, const gpu_traits *traits, int64_t length,
                         int64_t bytes) {
    enum { KEPT = 128 }; /* bytes of registers */
    int64_t steps = power_above(gpu_ceil_div(length, t->l * t->w), length);
    return !traits->is_cpu && t->rows && steps * t->w * bytes <= KEPT ? steps : 0;
}

int64_t gpu_tiling_pack(tn_dtype dtype, bool unit) {
    int64_t bytes = gpu_dtype_sizes[dtype];
    return !unit ? 1 : bytes == 1 ? 8 : 16 / bytes;
}

void gpu_tiling_choose(gpu_tiling *t, const gpu_traits *traits, const gpu_lines *lines, bool rows) {
    t->rows = rows;
    if (traits->is_cpu)
        choose_for_cpu(t, traits, lines);
    else
        choose_for_gpu(t, traits, lines);
    t->groups = gpu_ceil_div(t->n_teams, t->p * t->per);
}

static uint64_t log2_of(int64_t power) {
    uint64_t n = 0;
    while (power >> n > 1)
        n++;
    return n;
}

uint64_t gpu_tiling_key(const gpu_tiling *t) {
    return log2_of(t->l) << 16 | log2_of(t->m) << 12 | log2_of(t->p) << 8 | log2_of(t->w) << 4 |
           t->rows;
}
