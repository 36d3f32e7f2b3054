/* flash_attention and its gradients: one launch makes the output, or one gradient. A group has queries, or
 * keys, of one head; who has them goes through all of the other side. */
#include "plugins/shared/gpu/device/attention.params.h"
#include "plugins/shared/gpu/gemm.h"

enum {
    MAKES_OUTPUT, /* OUT in attention.cl */
    MAKES_QUERY,
    MAKES_KEY,
    MAKES_VALUE,
    GROUP = 64,          /* work items of a device that is no CPU */
    MOST_REGISTERS = 80, /* words of one of them for features */
    MOST_PARTS = 16,
    STEP = 4,
    STEP_OF_CPU = 8,
    MOST_FEATURES = 1023
};

/* Work items that share a row. */
static int parts_of(int made, int64_t e, int64_t v, int64_t bytes) {
    int64_t words = (made == MAKES_QUERY || made == MAKES_KEY ? 2 * e + v : e + v) * bytes / 4;
    int parts = 1;
    while (parts < MOST_PARTS && gpu_ceil_div(words, parts) > MOST_REGISTERS)
        parts *= 2;
    return parts;
}

static tn_status supports(const tn_call *call, const tn_tensor_view *query,
                          const tn_tensor_view *value) {
    const gpu_device *device = (const gpu_device *)call->device;
    if (query->sizes[3] <= MOST_FEATURES && value->sizes[3] <= MOST_FEATURES)
        return TN_OK;
    return device->host->fail(device->host, TN_ERR_UNSUPPORTED,
                              "flash_attention has at most 1023 features");
}

static tn_status launch(const tn_call *call, int made,
                        const tn_tensor_view *const views[ATTENTION_TENSORS], bool causal,
                        double scale) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    const tn_tensor_view *query = views[ATTENTION_QUERY], *key = views[ATTENTION_KEY];
    int64_t e = query->sizes[3], v = views[ATTENTION_VALUE]->sizes[3];
    tn_dtype computed = gpu_computed(query->dtype);
    int64_t bytes = gpu_dtype_sizes[computed];
    bool of_keys = made >= MAKES_KEY, unit = true;
    int parts = traits->is_cpu ? 1 : parts_of(made, e, v, bytes);
    int w = traits->is_cpu ? (int)(traits->vector_bytes / bytes) : 1;
    int group = traits->is_cpu ? 1 : GROUP, step = traits->is_cpu ? STEP_OF_CPU : STEP;
    const tn_tensor_view *rows = of_keys ? key : query;
    attention_params p = {
        .heads = query->sizes[1],
        .share = query->sizes[1] / key->sizes[1],
        .queries = query->sizes[2],
        .keys = key->sizes[2],
        .per = gpu_ceil_div(rows->sizes[2], group / parts * w),
        .scale = gpu_number_f(computed, scale),
    };
    gpu_launch l = {.parameters = &p,
                    .parameter_bytes = sizeof p,
                    .groups = {(uint64_t)(rows->sizes[0] * rows->sizes[1] * p.per)},
                    .local = {(uint64_t)group}};
    for (int k = 0; k < ATTENTION_TENSORS; k++) {
        bool is_read = views[k] && (k != ATTENTION_VALUE || made != MAKES_VALUE) &&
                       (k != ATTENTION_OUTPUT || made == MAKES_QUERY || made == MAKES_KEY);
        if (!is_read)
            continue;
        p.offsets[k] = gpu_offset(views[k]);
        for (int d = 0; d < views[k]->rank; d++)
            p.strides[k][d] = views[k]->strides[d];
        unit = unit && (k == ATTENTION_MASK || k == ATTENTION_LOGSUMEXP || p.strides[k][3] == 1 ||
                        views[k]->sizes[3] == 1);
        l.memory[l.n_memory++] = views[k]->memory;
    }
    bool masked = views[ATTENTION_MASK];
    uint64_t key_bits = (uint64_t)e << 20 | (uint64_t)v << 10 | (uint64_t)query->dtype << 6 |
                        (uint64_t)made << 4 | (uint64_t)masked << 2 | (uint64_t)causal << 1 | unit;
    return gpu_run(call, &l, GPU_KEY(GPU_FAMILY_attention, key_bits), &gpu_source_attention,
                   "attention -DOUT=%d -DT=%s -DA=%s -DE=%d -DV=%d -DMASK=%d -DCAUSAL=%d -DUNIT=%d "
                   "-DSTEP=%d -DPARTS=%d -DW=%d -DGROUP=%d",
                   made, gpu_dtype_names[query->dtype], gpu_dtype_names[computed], (int)e, (int)v,
                   masked, causal, unit, step, parts, w, group);
}

static tn_status forward_supports(const tn_call *call) {
    return supports(call, gpu_arg(call, TN_ARG_flash_attention_query),
                    gpu_arg(call, TN_ARG_flash_attention_value));
}

static tn_status forward(const tn_call *call) {
    const tn_tensor_view *const views[ATTENTION_TENSORS] = {
        [ATTENTION_QUERY] = gpu_arg(call, TN_ARG_flash_attention_query),
        [ATTENTION_KEY] = gpu_arg(call, TN_ARG_flash_attention_key),
        [ATTENTION_VALUE] = gpu_arg(call, TN_ARG_flash_attention_value),
        [ATTENTION_MASK] = gpu_arg(call, TN_ARG_flash_attention_attn_mask),
        [ATTENTION_LOGSUMEXP] = call->outs[1],
        [ATTENTION_OUT] = call->outs[0],
    };
    return launch(call, MAKES_OUTPUT, views, call->args[TN_ARG_flash_attention_is_causal].v.boolean,
                  call->args[TN_ARG_flash_attention_scale].v.f64);
}

static tn_status backward_supports(const tn_call *call) {
    return supports(call, gpu_arg(call, TN_ARG_flash_attention_backward_query),
                    gpu_arg(call, TN_ARG_flash_attention_backward_value));
}

static tn_status backward(const tn_call *call) {
    const tn_tensor_view *views[ATTENTION_TENSORS] = {
        [ATTENTION_QUERY] = gpu_arg(call, TN_ARG_flash_attention_backward_query),
        [ATTENTION_KEY] = gpu_arg(call, TN_ARG_flash_attention_backward_key),
        [ATTENTION_VALUE] = gpu_arg(call, TN_ARG_flash_attention_backward_value),
        [ATTENTION_MASK] = gpu_arg(call, TN_ARG_flash_attention_backward_attn_mask),
        [ATTENTION_LOGSUMEXP] = gpu_arg(call, TN_ARG_flash_attention_backward_logsumexp),
        [ATTENTION_GRAD] = gpu_arg(call, TN_ARG_flash_attention_backward_grad_output),
        [ATTENTION_OUTPUT] = gpu_arg(call, TN_ARG_flash_attention_backward_output),
    };
    tn_status status = TN_OK;
    for (int made = MAKES_QUERY; made <= MAKES_VALUE && status == TN_OK; made++) {
        views[ATTENTION_OUT] = call->outs[made - MAKES_QUERY];
        status = launch(call, made, views,
                        call->args[TN_ARG_flash_attention_backward_is_causal].v.boolean,
                        call->args[TN_ARG_flash_attention_backward_scale].v.f64);
    }
    return status;
}

/* A dtype and what goes with it. */
#define RECORD(op_, types, A, name) \
    { \
        .struct_size = sizeof(tn_kernel), .op = #op_, .schema_hash = TN_KERNEL_HASH_##op_, \
        .dtypes = {types, TN_DTYPE_BIT(A)}, .flags = GPU_FLAGS_STRIDED | TN_KERNEL_DETERMINISTIC, \
        .supports = name##_supports, .run = name \
    }

static const tn_kernel records[] = {
    RECORD(flash_attention, TN_DTYPES_FLOAT & ~GPU_F64, TN_F32, forward),
    RECORD(flash_attention, GPU_F64, TN_F64, forward),
    RECORD(flash_attention_backward, TN_DTYPES_FLOAT & ~GPU_F64, TN_F32, backward),
    RECORD(flash_attention_backward, GPU_F64, TN_F64, backward),
};
GPU_PUBLISH(attention, records);
