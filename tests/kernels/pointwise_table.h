/* pointwise_table.h: what each pointwise operator must compute. */
#ifndef TENON_TESTS_POINTWISE_TABLE_H
#define TENON_TESTS_POINTWISE_TABLE_H

#include "kernels_test.h"

enum { MAX_IN = 4 };

/* Results of one element. Of `x` and of the results, `f` counts for floating dtypes and `i` for the
 * others; both are always computed. `scales` come in as -1; where a result is the difference of
 * larger numbers, they are set to the size of those. */
typedef void (*reference)(const number *x, const tn_cell *attrs, number *r, double *scales);

/* Writes variant `v` of the attributes for a floating dtype or not; returns how many there are. */
typedef uint32_t (*attributes)(int v, bool is_float, tn_cell *out);

typedef struct pointwise {
    const char *op;
    int n_in;
    reference f;
    double low, high;                          /* of random floating inputs */
    double ulps;                               /* of f32 and f64; 0: also the signs of zeros */
    double half_ulps;                          /* of f16 and bf16 */
    enum { PLAIN, SPECIAL, EXTREME } specials; /* that the reference holds for */
    attributes attrs;                          /* or NULL */
    int n_variants;                            /* of the attributes; 0: one */
    int n_out;                                 /* 0: one */
    bool bool_out, bool_in;                    /* outputs, or the first input, are bool */
} pointwise;

extern const pointwise pointwise_table[];
extern const int n_pointwise;

#endif /* TENON_TESTS_POINTWISE_TABLE_H */
