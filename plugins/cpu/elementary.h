/* What plugins/shared/elementary.h asks of its includer, for C. */
#ifndef TNI_PLUGINS_CPU_ELEMENTARY_H
#define TNI_PLUGINS_CPU_ELEMENTARY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t tnc_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float tnc_float(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline double tnc_double(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t tnc_bits64(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

typedef float f32;
typedef double f64;
typedef int32_t i32;
typedef uint32_t u32;
typedef uint64_t u64;
#define HAS_F64 1
#define f32_of_bits tnc_float
#define bits_of_f32 tnc_bits
#define f64_of_bits tnc_double
#define bits_of_f64 tnc_bits64
#define em_sqrt sqrtf
#define em_sqrt_f64 sqrt
#define ELEMENTARY static inline __attribute__((always_inline))
#include "plugins/shared/elementary.h"

#endif
