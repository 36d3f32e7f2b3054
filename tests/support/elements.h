/* elements.h: elements of every dtype as numbers, read and written by rules of the tests' own. */
#ifndef TENON_TESTS_ELEMENTS_H
#define TENON_TESTS_ELEMENTS_H

#include <stdbool.h>
#include <tenon/plugin.h>

bool is_float(tn_dtype dtype);

/* Relative spacing of a floating dtype around 1, and its smallest normal number. */
double epsilon(tn_dtype dtype);
double smallest_normal(tn_dtype dtype);

/* An element as a number: `f` for floating dtypes, `i` for the others; the other one is 0. */
typedef struct number {
    double f;
    int64_t i;
} number;

number get(tn_dtype dtype, const void *data, int64_t i);

/* Floating dtypes round `x.f` to nearest even, integers wrap `x.i`, bool is x.i != 0. */
void set(tn_dtype dtype, void *data, int64_t i, number x);

/* Uniform in [low, high], rounded to the dtype; both included for integers. */
void set_random(tn_dtype dtype, void *data, int64_t i, double low, double high);

uint64_t random_u64(void);

#endif /* TENON_TESTS_ELEMENTS_H */
