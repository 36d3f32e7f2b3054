/* The language of the *.params.h files: what a kernel is told of a call, as its last argument.
 *
 * Each of them is the one definition that the host writes and device code reads, so it has members
 * of 64 bits alone, which lie alike in C, OpenCL C and CUDA. What some variants do without stands
 * last, and is there where the macros of the variant say so; the host sees all of it, and sends as
 * much as the variant has. tests/opencl/params_test.py compares where members lie. */
#ifndef TNI_PLUGINS_SHARED_GPU_DEVICE_PARAMS_H
#define TNI_PLUGINS_SHARED_GPU_DEVICE_PARAMS_H

#ifdef DEVICE /* dialect.h has come before */
#define HOST 0
#else
#define HOST 1
#include <stdint.h>
typedef int64_t i64;
#endif

#define MAX_RANK 12 /* TN_MAX_RANK of tenon/plugin.h */

/* A loop over the elements of n tensors: sizes, and strides in elements, innermost first. See
 * gpu_loop on the host, WALK in device code. */
#define LOOP(n) \
    struct { \
        i64 rank; \
        i64 sizes[MAX_RANK]; \
        i64 strides[n][MAX_RANK]; \
    }

#endif
