/* The rows of device.c: what is measured on a device with a queue, of which the host is a part alone.
 * The sizes are here, for the bare side (cuda_bare.c) and the peer's (peer/device.cpp) too. */
#ifndef TNI_BENCH_DEVICE_H
#define TNI_BENCH_DEVICE_H

#include "bench/common.h"

#include <stddef.h>

enum {
    BENCH_SIDE = 8192, /* of the square f32 tensors, 256 MiB each */
    BENCH_TINY_SIDE = 64,
    BENCH_LAUNCHES = 256, /* without waiting; fewer than any driver's queue takes */
    BENCH_CHAIN = 8,      /* launches, each of which needs the one before */
    BENCH_BACKWARD = 3,   /* launches of the smallest backward pass and its forward one */
    BENCH_ELEMENTS = 256, /* of a small tensor */
    BENCH_SMALL = 16      /* rows, columns and depth of a small product */
};

static inline int64_t bench_side(void) {
    return bench_tiny ? BENCH_TINY_SIDE : BENCH_SIDE;
}

/* A size of a product or a convolution. */
static inline int64_t bench_size(int64_t n) {
    return bench_tiny && n > 16 ? 16 : n;
}

/* X(dtype, name, m, n, k): [m, k] by [k, n] */
#define BENCH_PRODUCTS(X) \
    X(f32, 1024, 1024, 1024, 1024) \
    X(f32, 4096, 4096, 4096, 4096) \
    X(f32, skinny, 16, 4096, 4096) \
    X(f16, 1024, 1024, 1024, 1024) \
    X(f16, 4096, 4096, 4096, 4096) \
    X(f16, skinny, 16, 4096, 4096) \
    X(bf16, 1024, 1024, 1024, 1024) \
    X(bf16, 4096, 4096, 4096, 4096) \
    X(bf16, skinny, 16, 4096, 4096)

/* X(dtype, name, images, channels in, side, channels out, padding): 3 x 3 */
#define BENCH_CONVOLUTIONS(X) \
    X(f32, mnist, 64, 32, 26, 64, 0) \
    X(f32, deep, 32, 128, 28, 128, 1) \
    X(f16, deep, 32, 128, 28, 128, 1) \
    X(bf16, deep, 32, 128, 28, 128, 1)

/* X(name, tensors of BENCH_SIDE x BENCH_SIDE f32 that it reads or writes) */
#define BENCH_STREAMED(X) \
    X(add, 3) \
    X(relu, 2) \
    X(copy, 2) \
    X(transpose, 2) \
    X(sum, 1) \
    X(sum_rows, 1) \
    X(softmax, 2) \
    X(layer_norm, 2) \
    X(adamw, 7)

extern const bench_row device_rows[];
extern const size_t n_device_rows;

#endif
