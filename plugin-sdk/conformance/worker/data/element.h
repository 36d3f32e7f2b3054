/* Elements of every dtype as numbers, by rules of the suite's own.
 *
 * Nothing here is shared with a plugin. Numbers are long double, wider than every dtype of
 * plugin.h, so that rounding to a dtype happens once.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_DATA_ELEMENT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_DATA_ELEMENT_H

#include <stdbool.h>
#include <tenon/plugin.h>

typedef long double tc_real;

/* `f` for floating dtypes, `i` for the others; the other one is 0, but of a NaN `i` may be the
 * bits that its significand is to have. */
typedef struct tc_number {
    tc_real f;
    int64_t i;
} tc_number;

const char *tc_dtype_name(tn_dtype dtype);
uint64_t tc_dtype_bytes(tn_dtype dtype);
bool tc_is_float(tn_dtype dtype);

/* Of a floating dtype: bits of the significand, the leading one counted; the largest and the
 * smallest normal number. */
int tc_digits(tn_dtype dtype);
tc_real tc_largest(tn_dtype dtype);
tc_real tc_smallest_normal(tn_dtype dtype);

/* The distance between the numbers of a floating dtype around x, that of the subnormal ones at
 * least. */
tc_real tc_spacing(tn_dtype dtype, tc_real x);

/* The unit roundoff of the arithmetic a kernel is to use: that of f64 for f64, of f32 for the
 * others. */
tc_real tc_unit(tn_dtype dtype);

/* How many exponents its numbers have, the subnormal ones included, and the lowest of them. */
int tc_exponents(tn_dtype dtype, int *out_lowest);

/* Largest and smallest integer of an integer dtype; 1 and 0 for bool. */
int64_t tc_int_max(tn_dtype dtype);
int64_t tc_int_min(tn_dtype dtype);

/* Element i of an array. */
tc_number tc_load(tn_dtype dtype, const void *data, int64_t i);

/* Floating dtypes round x.f to nearest even, integers wrap x.i, bool is x.i != 0. */
void tc_store(tn_dtype dtype, void *data, int64_t i, tc_number x);

/* What tc_load gives after tc_store. */
tc_number tc_round(tn_dtype dtype, tc_number x);

/* A stream of random numbers that follows from its seed (splitmix64, S. Vigna). */
typedef struct tc_random {
    uint64_t state;
} tc_random;

uint64_t tc_next(tc_random *r);
uint64_t tc_below(tc_random *r, uint64_t n);                 /* [0, n), n > 0 */
int64_t tc_integer(tc_random *r, int64_t low, int64_t high); /* both included */
tc_real tc_uniform(tc_random *r, tc_real low, tc_real high);

#endif
