/* The copy of a left factor, and kernels that are such a copy and a product. */
#include "plugins/shared/gpu/device/pad.params.h"
#include "plugins/shared/gpu/gemm.h"

#include <string.h>

static const uint64_t PAD = UINT64_C(1) << 47; /* which no kernel of gemm.c has in its key */

tn_status gpu_pad_run(const tn_call *call, const gpu_pad *p) {
    bool one = !gpu_device_traits(call->device)->is_cpu;
    tn_dtype type = gpu_computed(p->dtype);
    uint64_t key = GPU_KEY(GPU_FAMILY_matmul, PAD | (uint64_t)p->dtype);
    if (!p->memory)
        return TN_OK;
    pad_params params = {.from = p->offset, .to = gpu_piece(call, p->at, type)};
    memcpy(params.sizes, p->sizes, sizeof p->sizes);
    memcpy(params.inside, p->inside, sizeof p->inside);
    memcpy(params.before, p->before, sizeof p->before);
    memcpy(params.strides, p->strides, sizeof p->strides);
    gpu_launch launch = {.n_memory = 2,
                         .memory = {call->workspace, p->memory},
                         .parameters = &params,
                         .parameter_bytes = sizeof params};
    gpu_launch_items(&launch, p->sizes[0] * p->sizes[1] * p->sizes[2] * (one ? p->sizes[3] : 1),
                     one ? GPU_GROUP : 1);
    return gpu_run(call, &launch, key, &gpu_source_pad, "pad -DT=%s -DC=%s -DONE=%d",
                   gpu_dtype_names[p->dtype], gpu_dtype_names[type], one);
}

/* ---- kernels that are one product -------------------------------------------------------- */

static void make(const tn_call *call, gpu_gemm_job *job) {
    const gpu_gemm_maker *maker = call->user;
    *job = (gpu_gemm_job){0};
    maker->make(call, job);
}

tn_status gpu_gemm_job_run(const tn_call *call) {
    gpu_gemm_job job;
    make(call, &job);
    PLUGIN_TRY(gpu_pad_run(call, &job.pad));
    return gpu_gemm_run(call, &job.product);
}

tn_status gpu_gemm_job_prepare(const tn_call *call, tn_plan *out) {
    gpu_gemm_job job;
    make(call, &job);
    out->workspace_bytes = job.bump;
    return TN_OK;
}
