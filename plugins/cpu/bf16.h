/* Products of bf16 with the dot products of pairs that AVX512_BF16 has. In the instruction set
 * avx512_bf16 alone. */
#ifndef TNI_PLUGINS_CPU_BF16_H
#define TNI_PLUGINS_CPU_BF16_H

#include "plugins/cpu/gemm.h"

enum {
    TNC_BF16_DEPTH = 512, /* of a panel */
    TNC_BF16_WIDTH = 512, /* the most rows and columns of C */
    TNC_BF16_LANES = 16,  /* C's rows are whole vectors */
    TNC_BF16_STRIP = 64,  /* the most columns that lie together in a panel */
};

/* Bytes of a panel of so many rows or columns. */
static inline int64_t tnc_bf16_panel_bytes(int64_t outer) {
    int64_t strips = tnc_ceil_div(outer, TNC_BF16_STRIP);
    return (outer + TNC_BF16_STRIP) * TNC_BF16_DEPTH * 2 + 2 * strips * 64;
}

/* Elements from one row of C to the next. */
static inline int64_t tnc_bf16_pitch(int64_t n) {
    return tnc_ceil_div(n, TNC_BF16_LANES) * TNC_BF16_LANES;
}

/* C [m, n] = alpha A [m, k] B [k, n] + beta C in f32, with k at most TNC_BF16_DEPTH and n at most
 * TNC_BF16_WIDTH. With beta 0 C is not read. */
typedef struct tnc_bf16_product {
    int64_t m, n, k;
    float alpha, beta;
    tnc_matrix a, b;       /* any strides */
    float *c;              /* rows tnc_bf16_pitch(n) apart, which are written to their ends */
    bool is_normal;        /* C is sums of such products alone: not one number is subnormal */
    const tnc_matrix *out; /* of dense rows: where C goes instead, rounded to bf16; or NULL */
    void *panel_a, *panel_b;
} tnc_bf16_product;

/* The instructions take subnormal numbers for zero, inputs and results alike. Where that could be
 * told the answer is false, and C is as it was. */
#ifdef TNC_BF16_PRODUCTS
enum { TNC_HAS_BF16 = true };
bool tnc_bf16_multiply(const tnc_bf16_product *p);
#else
enum { TNC_HAS_BF16 = false };
static inline bool tnc_bf16_multiply(const tnc_bf16_product *p) {
    (void)p;
    return false;
}
#endif

#endif
