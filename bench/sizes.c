/* Operators over sizes and dtypes, and what the machine can do at most; sizes.py makes a table of them. */
#include "bench/sizes.h"
#include "bench/ceilings.h"
#include "bench/tenon.h"

#include <stddef.h>

/* What the rows of one size and dtype work on; made when the first of them asks. */
typedef struct scene {
    int size;
    tn_dtype dtype;
    bool is_product;
    tn_tensor *x, *y, *target, *turned, *mask, *rows, *scale, *shift;
} scene;

static scene *with_scene(int size, tn_dtype dtype, bool is_product) {
    static scene now;
    if (now.x && now.size == size && now.dtype == dtype && now.is_product == is_product)
        return &now;
    tn_tensor *const old[] = {now.x,    now.y,    now.target, now.turned,
                              now.mask, now.rows, now.scale,  now.shift};
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++)
        if (old[i])
            tn_free(old[i]);
    int64_t r = is_product ? size : BENCH_ROWS(size), c = is_product ? size : BENCH_COLUMNS(size);
    TN_SCOPE;
    now = (scene){.size = size, .dtype = dtype, .is_product = is_product};
    now.x = tn_keep(tn_randn(TN_SHAPE(r, c), dtype, bench_device));
    now.y = tn_keep(tn_randn(TN_SHAPE(r, c), dtype, bench_device));
    if (is_product)
        return &now;
    now.target = tn_keep(tn_randn(TN_SHAPE(r, c), dtype, bench_device));
    now.turned = tn_keep(tn_transpose(tn_randn(TN_SHAPE(c, r), dtype, bench_device), 0, 1));
    now.mask = tn_keep(tn_gt(now.x, now.y));
    now.rows = tn_keep(tn_randint(0, r, TN_SHAPE(r), TN_I64, bench_device));
    now.scale = tn_keep(tn_randn(TN_SHAPE(c), dtype, bench_device));
    now.shift = tn_keep(tn_randn(TN_SHAPE(c), dtype, bench_device));
    return &now;
}

/* static double run_NAME(n, scene): the result of `call`, again and again, each freed before the next. */
#define RUN(name, call) \
    static double run_##name(uint64_t n, const scene *s) { \
        TN_SCOPE; \
        double start = bench_now(); \
        for (uint64_t i = 0; i < n; i++) \
            tn_free(call); \
        tn_synchronize(bench_device); \
        return bench_seconds(start); \
    }

RUN(add, tn_add(s->x, s->y))
RUN(relu, tn_relu(s->x))
RUN(exp, tn_exp(s->x))
RUN(gelu, tn_gelu(s->x))
RUN(where, tn_where(s->mask, s->x, s->y))
RUN(convert, tn_to_dtype(s->x, s->dtype == TN_F32 ? TN_BF16 : TN_F32))
RUN(gather, tn_index_select(s->x, 0, s->rows))
RUN(sum, tn_sum(s->x))
RUN(sum_rows, tn_sum_dim(s->x, TN_DIMS(1)))
RUN(sum_columns, tn_sum_dim(s->x, TN_DIMS(0)))
RUN(argmax, tn_argmax(s->x, 1))
RUN(cumsum, tn_cumsum(s->x, 1))
RUN(softmax, tn_softmax(s->x, 1))
RUN(layer_norm, tn_layer_norm(s->x, TN_SHAPE(BENCH_COLUMNS(s->size)), s->scale, s->shift))
RUN(matmul, tn_matmul(s->x, s->y))

/* Copies go into a tensor that exists: pages that are new cost the system, not the kernel. */
static double copies(uint64_t n, tn_tensor *to, tn_tensor *from) {
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++)
        tn_copy_(to, from);
    tn_synchronize(bench_device);
    return bench_seconds(start);
}

static double run_copy(uint64_t n, const scene *s) {
    return copies(n, s->target, s->x);
}

static double run_transpose(uint64_t n, const scene *s) {
    return copies(n, s->target, s->turned);
}

#define OF_SIZE(name, e, dtype) \
    static double name##_##dtype##_##e(uint64_t n) { \
        return run_##name(n, with_scene(e, TN_##dtype, false)); \
    }
#define OF_PRODUCT(name, side, dtype) \
    static double name##_##dtype##_##side(uint64_t n) { \
        return run_##name(n, with_scene(side, TN_##dtype, true)); \
    }
BENCH_SIZES(OF_SIZE)
BENCH_PRODUCTS(OF_PRODUCT)

static double ceiling_copy(void) {
    return bench_ceiling_copy(tn_get_num_threads());
}

static double ceiling_multiply(void) {
    return bench_ceiling_multiply(tn_get_num_threads());
}

#define ROW(name, size, dtype) \
    {#name "/" #dtype "/" #size, "", "us", .run = name##_##dtype##_##size},
static const bench_row rows[] = {
    {"ceiling-copy", "bytes read and written by memcpy past the caches, on all threads", "GB/s",
     .measure = ceiling_copy},
    {"ceiling-multiply", "f32 multiplications and additions in registers, on all threads",
     "GFLOP/s", .measure = ceiling_multiply},
    BENCH_SIZES(ROW) BENCH_PRODUCTS(ROW)};

int main(int argc, char **argv) {
    return bench_tenon_main("sizes", rows, sizeof rows / sizeof rows[0], argc, argv);
}
