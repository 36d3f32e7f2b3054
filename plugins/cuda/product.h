/* Bmm and addmm as cuBLASLt has products: matrices are column-major, and a row-major one is its
 * transpose.
 *
 *     D [m, n] = alpha op(A) [m, k] op(B) [k, n] + beta C [m, n], or + a bias [m]
 */
#ifndef TNI_PLUGINS_CUDA_PRODUCT_H
#define TNI_PLUGINS_CUDA_PRODUCT_H

#include <stdbool.h>
#include <tenon/plugin.h>

typedef struct cuda_matrix {
    int64_t is_transposed; /* it lies as its transpose would */
    int64_t ld;            /* elements from one column, of what lies there, to the next */
    int64_t step;      /* elements from one matrix of a batch to the next; 0: all are the same */
    int64_t alignment; /* bytes: 256, 16 or less */
} cuda_matrix;

enum { CUDA_ADDS_NOTHING, CUDA_ADDS_MATRIX, CUDA_ADDS_BIAS };

/* All that a plan depends on, in words of 64 bits without gaps. */
typedef struct cuda_product {
    int64_t dtype, m, n, k, batch;
    int64_t is_turned; /* D is the output's transpose: A is the second factor */
    int64_t adds;
    cuda_matrix a, b, c, d; /* c: the matrix or bias that is added */
} cuda_product;

enum { CUDA_PRODUCT_WORDS = sizeof(cuda_product) / sizeof(int64_t) };

/* out = alpha x y + beta s */
typedef struct cuda_terms {
    const tn_tensor_view *x, *y, *s, *out; /* s may be NULL */
    double alpha, beta;
} cuda_terms;

cuda_terms cuda_terms_of_bmm(const tn_call *call);
cuda_terms cuda_terms_of_addmm(const tn_call *call);

/* False: strides or numbers that cuBLASLt does not have. With an alpha of 0 it would not look at the
 * factors, which may be NaN. */
bool cuda_product_of(const cuda_terms *terms, cuda_product *out);

#endif
