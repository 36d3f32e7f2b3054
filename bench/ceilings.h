/* What the machine does at most, measured by nothing but itself. */
#ifndef TNI_BENCH_CEILINGS_H
#define TNI_BENCH_CEILINGS_H

/* On as many threads as OMP_NUM_THREADS says, all processors without it. The best of some tries, of
 * about 50 ms each; negative where there is no memory. */
double bench_ceiling_copy(void); /* GB/s, read and written */
double
bench_ceiling_multiply(void); /* GFLOP/s in f32, a multiplication and an addition being two */

#endif
