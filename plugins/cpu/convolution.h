/* The description of a convolution, and the product it is made of. */
#ifndef TNI_PLUGINS_CPU_CONVOLUTION_H
#define TNI_PLUGINS_CPU_CONVOLUTION_H

#include "plugins/cpu/iterate.h"

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

/* C [m, n] += A [m, k] B [k, n], where A is found by offsets (in elements): A(i, j) =
 * x[rows[i] + steps[j]]. n is a multiple of tnc_indirect_lanes. */
typedef struct tnc_indirect {
    const void *x;
    const int64_t *rows, *steps;
    const void *b;
    void *c;
    int64_t m, n, k;
    int64_t ldb, ldc; /* elements from row to row */
} tnc_indirect;

/* On the calling thread; `type` is F32 or F64. */
#define tnc_indirect_gemm TNC_ISA(tnc_indirect_gemm)
void tnc_indirect_gemm(tn_dtype type, const tnc_indirect *p);

/* Elements of one vector. */
#define tnc_indirect_lanes TNC_ISA(tnc_indirect_lanes)
int64_t tnc_indirect_lanes(tn_dtype type);

/* to[column][row] = from[row][column]; strides in elements of `type` (F32 or F64). */
#define tnc_transpose TNC_ISA(tnc_transpose)
void tnc_transpose(tn_dtype type, void *to, int64_t to_stride, const void *from,
                   int64_t from_stride, int64_t rows, int64_t columns);

#endif
