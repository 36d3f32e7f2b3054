/* convolution.h: the description of a convolution that its kernels share. */
#ifndef TENON_PLUGINS_CPU_CONVOLUTION_H
#define TENON_PLUGINS_CPU_CONVOLUTION_H

#include "iterate.h"

/* input [N, C, H, W], weight [O, C / G, KH, KW], output [N, O, OH, OW]; index 0 is H, 1 is W. */
typedef struct conv {
    int64_t n, c, o, groups;
    int64_t size[2], out[2], kernel[2];
    int64_t stride[2], padding[2], dilation[2];
    tn_dtype dtype, type; /* of the tensors; computed in */
    int64_t item, cell;   /* bytes of either */
    const char *x;        /* input, or NULL where it is the result */
    const char *w;        /* weight */
    const char *y;        /* output or its gradient */
    const char *bias;     /* [O] or NULL */
    char *result;
} conv;

static inline int64_t conv_taps(const conv *v) {
    return v->kernel[0] * v->kernel[1];
}

static inline int64_t conv_pixels(const conv *v) {
    return v->out[0] * v->out[1];
}

static inline int64_t conv_aligned(int64_t bytes) {
    return (bytes + 63) & ~(int64_t)63;
}

#endif /* TENON_PLUGINS_CPU_CONVOLUTION_H */
