/* A product of packed panels, and the packing of one. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_GEMM_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_GEMM_PARAMS_H

#include "plugins/shared/gpu/device/params.h"

#define GEMM_SIDE 16 /* of a group of work items, on a GPU */

typedef struct gemm_params {
    i64 m, n, k;
    i64 m_sizes[2], k_sizes[2]; /* of the two inner dimensions */
    i64 a_offset, a_batch, a_m[3], a_k[3];
    i64 b_offset, b_batch;
    i64 c_offset, c_batch, c_part, c_m[3], c_n;
    i64 s_offset, s_batch, s_m[3], s_n;
    i64 parts, part; /* how many, and how much of k each has: a multiple of both k_sizes */
    i64 alpha, beta, has_s;
    i64 sums_offset; /* `combine`: of the partial sums, [batch][part][m][n] */
} gemm_params;

typedef struct pack_params {
    i64 k, n;
    i64 k_sizes[2]; /* of the two inner dimensions of k */
    i64 from, from_batch, from_k[3], from_n;
    i64 to; /* [batch][panel][k][PANEL] */
} pack_params;

#endif
