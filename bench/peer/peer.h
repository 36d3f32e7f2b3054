/* The rows of the PyTorch side, which bear the names of Tenon's. */
#ifndef TNI_BENCH_PEER_PEER_H
#define TNI_BENCH_PEER_PEER_H

#include "bench/common.h"

#include <cstddef>

extern const bench_row overhead_rows[], kernel_rows[], train_rows[];
extern const size_t n_overhead_rows, n_kernel_rows, n_train_rows;

#endif
