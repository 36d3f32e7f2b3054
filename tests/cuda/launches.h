/* The calls of plugins/shared/gpu on a device that is not there: which kernels are asked for,
 * built with which options, and how many work items of them. There is no memory, so tensors may
 * be of any size. */
#ifndef TNI_TESTS_CUDA_LAUNCHES_H
#define TNI_TESTS_CUDA_LAUNCHES_H

#include "plugins/shared/gpu/launch.h"

enum { MAX_LAUNCHES = 64 };

/* What the driver was asked to do. */
typedef struct seen {
    char entry[64], file[32], options[GPU_OPTIONS];
    gpu_launch launch; /* of which memory and parameters are gone */
} seen;

/* One call, as text. Arguments and outputs are separated by blanks:
 *
 *     f32[8192,4096]            a tensor in rows
 *     f32[8192,4096]/1,8192     one with strides
 *     (2,2)  3  1.5  true  none  -     integers, a number, a string; an argument that is left out */
typedef struct described {
    const char *name, *op, *outs, *args;
} described;

/* Runs the call on a device of `traits`: its launches, in order. Returns how many, and what `run`
 * answered. */
int launches_of(const described *call, const gpu_traits *traits, seen out[MAX_LAUNCHES],
                tn_status *out_status);

/* A GPU of the largest kind. */
extern const gpu_traits large_gpu;

/* What programs spend their time in. NULL ends them. */
extern const described hot_calls[];

#endif
