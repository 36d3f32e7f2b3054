/* The copy of a left factor, and kernels that are such a copy and a product. */
#include "plugins/shared/gpu/gemm.h"

#include <string.h>

static const uint64_t PAD = UINT64_C(1) << 47; /* which no kernel of gemm.c has in its key */

/* As device/pad.cl has it. */
typedef struct pad_parameters {
    int64_t sizes[4], inside[2], before[2];
    int64_t from, strides[4];
    int64_t to;
} pad_parameters;

tn_status gpu_pad_run(const tn_call *call, const gpu_pad *p) {
    bool one = !gpu_device_traits(call->device)->is_cpu;
    int group = one ? GPU_GROUP : 1;
    tn_dtype type = gpu_computed(p->dtype);
    uint64_t key = GPU_KEY(GPU_FAMILY_matmul, PAD | (uint64_t)p->dtype);
    gpu_kernel *kernel;
    if (!p->memory)
        return TN_OK;
    tn_status status =
        gpu_kernel_get(call->device, key, &gpu_source_pad, "pad", &kernel, "-DT=%s -DC=%s -DONE=%d",
                       gpu_dtype_name(p->dtype), gpu_dtype_name(type), one);
    if (status != TN_OK)
        return status;
    pad_parameters parameters = {.from = p->offset, .to = gpu_piece(call, p->at, type)};
    memcpy(parameters.sizes, p->sizes, sizeof p->sizes);
    memcpy(parameters.inside, p->inside, sizeof p->inside);
    memcpy(parameters.before, p->before, sizeof p->before);
    memcpy(parameters.strides, p->strides, sizeof p->strides);
    int64_t items = p->sizes[0] * p->sizes[1] * p->sizes[2] * (one ? p->sizes[3] : 1);
    gpu_launch launch = {.kernel = kernel,
                         .n_memory = 2,
                         .memory = {call->workspace, p->memory},
                         .parameters = &parameters,
                         .parameter_bytes = sizeof parameters,
                         .groups = {(uint64_t)gpu_ceil_div(items, group)},
                         .local = {(uint64_t)group}};
    return gpu_launch_on(call->stream, &launch);
}

/* ---- kernels that are one product -------------------------------------------------------- */

static void plan(const tn_call *call, gpu_gemm_job *job) {
    const gpu_gemm_planner *planner = call->user;
    *job = (gpu_gemm_job){0};
    planner->plan(call, job);
}

tn_status gpu_gemm_job_run(const tn_call *call) {
    gpu_gemm_job job;
    plan(call, &job);
    tn_status status = gpu_pad_run(call, &job.pad);
    return status == TN_OK ? gpu_gemm_run(call, &job.product) : status;
}

tn_status gpu_gemm_job_workspace(const tn_call *call, uint64_t *out_bytes) {
    gpu_gemm_job job;
    plan(call, &job);
    *out_bytes = job.bump;
    return TN_OK;
}
