/* The rows of the PyTorch side, which bear the names of Tenon's. */
#ifndef TNI_BENCH_PEER_PEER_H
#define TNI_BENCH_PEER_PEER_H

#include "bench/common.h"

#include <ATen/ATen.h>
#include <cstddef>

extern const bench_row overhead_rows[], kernel_rows[], train_rows[], peer_device_rows[],
    size_rows[];
extern const size_t n_overhead_rows, n_kernel_rows, n_train_rows, n_peer_device_rows, n_size_rows;

/* The device that TENON_DEVICE names, which PyTorch calls the same, "cpu" and "cuda:0"; rows of
 * overhead.cpp are always on the CPU. */
at::Device peer_device();

/* Until the device has done what was queued. */
void peer_wait();

#endif
