/* The matrix product of convolutions: its left factor is a tensor that is read in place, through
 * offsets (M. Dukhan, "The Indirect Convolution Algorithm", arXiv:1907.02129), so no columns are
 * gathered. Vectors run along the columns of B; each element of A is spread over one.
 */
#include "plugins/cpu/convolution.h"

/* A tile's sums, one row of B and one spread element fill the registers of the instruction set. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define TILE_VECTORS 4
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define TILE_VECTORS 2
#else
#define VECTOR_BYTES 16
#define TILE_VECTORS 2
#endif
#define TILE_ROWS 6

#define T float
#define SFX f32
#include "plugins/cpu/indirect.inc"

#define T double
#define SFX f64
#include "plugins/cpu/indirect.inc"

void tnc_indirect_gemm(tn_dtype type, const tnc_indirect *p) {
    (type == TN_F32 ? indirect_f32 : indirect_f64)(p);
}

int64_t tnc_indirect_lanes(tn_dtype type) {
    return VECTOR_BYTES / tnc_dtype_bytes(type);
}

/* ---- transposing ------------------------------------------------------------------------- */

typedef float quad __attribute__((vector_size(16)));
typedef float quad_unaligned __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t quad_order __attribute__((vector_size(16)));

#if defined(__clang__)
#define SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (quad_order){i, j, k, l})
#endif

static inline void transpose_4x4(float *to, int64_t to_stride, const float *from,
                                 int64_t from_stride) {
    quad a = *(const quad_unaligned *)from, b = *(const quad_unaligned *)(from + from_stride);
    quad c = *(const quad_unaligned *)(from + 2 * from_stride);
    quad d = *(const quad_unaligned *)(from + 3 * from_stride);
    quad ab = SHUFFLE(a, b, 0, 4, 1, 5), cd = SHUFFLE(c, d, 0, 4, 1, 5);
    quad AB = SHUFFLE(a, b, 2, 6, 3, 7), CD = SHUFFLE(c, d, 2, 6, 3, 7);
    *(quad_unaligned *)to = SHUFFLE(ab, cd, 0, 1, 4, 5);
    *(quad_unaligned *)(to + to_stride) = SHUFFLE(ab, cd, 2, 3, 6, 7);
    *(quad_unaligned *)(to + 2 * to_stride) = SHUFFLE(AB, CD, 0, 1, 4, 5);
    *(quad_unaligned *)(to + 3 * to_stride) = SHUFFLE(AB, CD, 2, 3, 6, 7);
}

static void transpose_f32(float *to, int64_t to_stride, const float *from, int64_t from_stride,
                          int64_t rows, int64_t columns) {
    int64_t whole_rows = rows & ~(int64_t)3, whole_columns = columns & ~(int64_t)3;
    for (int64_t c = 0; c < whole_columns; c += 4)
        for (int64_t r = 0; r < whole_rows; r += 4)
            transpose_4x4(to + c * to_stride + r, to_stride, from + r * from_stride + c,
                          from_stride);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; r++)
            to[c * to_stride + r] = from[r * from_stride + c];
}

void tnc_transpose(tn_dtype type, void *to, int64_t to_stride, const void *from,
                   int64_t from_stride, int64_t rows, int64_t columns) {
    if (type == TN_F32) {
        transpose_f32(to, to_stride, from, from_stride, rows, columns);
        return;
    }
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++)
            ((double *)to)[c * to_stride + r] = ((const double *)from)[r * from_stride + c];
}
