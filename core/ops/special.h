/* What special functions are made of: polynomials where a function is smooth, and what brings an argument there, in
 * pointwise operators. Every device computes them alike, and with the digits of its dtype.
 *
 * The coefficients are those of polynomials through the zeros of a Chebyshev polynomial (mpmath, 50
 * digits), lowest first; f32 has shorter ones. tests/values holds them against PyTorch's.
 *
 * Of all functions the result is the list's, and NULL where an argument is. */
#ifndef TNI_CORE_OPS_SPECIAL_H
#define TNI_CORE_OPS_SPECIAL_H

#include "core/ops/functions.h"
#include "core/ops/halves.h"

typedef struct tni_polynomial {
    const double *of_f64;
    uint32_t n_of_f64;
    const double *of_f32;
    uint32_t n_of_f32;
} tni_polynomial;
#define TNI_COUNT(table) ((uint32_t)(sizeof(table) / sizeof(table)[0]))
#define TNI_POLYNOMIAL(name) \
    { name##_f64, TNI_COUNT(name##_f64), name##_f32, TNI_COUNT(name##_f32) }

/* coefficients[0] + coefficients[1] x + ..., by Horner's rule, of n, 2 at least. */
tn_tensor *tni_evaluated(tni_temps *tmp, const double *coefficients, uint32_t n, tn_tensor *x);

/* The polynomial of x's dtype at x. */
tn_tensor *tni_polynomial_at(tni_temps *tmp, const tni_polynomial *p, tn_tensor *x);

/* x + number; x number; number / x */
tn_tensor *tni_plus_number(tni_temps *tmp, tn_tensor *x, double number);
tn_tensor *tni_times_number(tni_temps *tmp, tn_tensor *x, double number);
tn_tensor *tni_number_over(tni_temps *tmp, double number, tn_tensor *x);

/* (x - middle) / (x + middle), which brings [0, inf] into [-1, 1]. */
tn_tensor *tni_folded(tni_temps *tmp, tn_tensor *x, double middle);

/* A whole number or truth as f32. */
tn_tensor *tni_as_float(tni_temps *tmp, tn_tensor *x);

#endif
