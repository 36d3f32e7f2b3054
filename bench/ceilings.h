/* What the machine does at most, measured by nothing but itself: the best of some tries. */
#ifndef TNI_BENCH_CEILINGS_H
#define TNI_BENCH_CEILINGS_H

#include <stdint.h>

/* GB/s, read and written, past the caches; negative where there is no memory. */
double bench_ceiling_copy(uint32_t n_threads);

/* GFLOP/s in f32, a multiplication and an addition being two. */
double bench_ceiling_multiply(uint32_t n_threads);

#endif
