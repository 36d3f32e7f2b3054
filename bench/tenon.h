/* What the benchmarks of Tenon share. */
#ifndef TNI_BENCH_TENON_H
#define TNI_BENCH_TENON_H

#include "bench/common.h"

#include <tenon/tenon.h>

/* The device that TENON_DEVICE names, cpu:0 by default; set by bench_tenon_start. */
extern tn_device bench_device;

/* Before the first row, and again in a child that measures by itself. */
bool bench_tenon_start(uint32_t n_threads);

/* main of a program whose rows measure Tenon. */
int bench_tenon_main(const char *name, const bench_row *rows, size_t n_rows, int argc, char **argv);

/* Reports a failure from inside a row: -1, when a call has left an error. */
static inline double bench_seconds(double start) {
    double took = bench_now() - start;
    return tn_error_status() == TN_OK ? took : -1;
}

#endif
