/* flash_attention and its gradients: which rows a group has, of the tensor that it makes. Own rows
 * are queries, or keys; whoever has them goes through all of the other side, so that no two groups
 * add to one number. */
#include "plugins/shared/gpu/device/attention.params.h"
#include "plugins/shared/gpu/gemm.h"

enum {
    GROUPS_OF_UNIT = 4, /* of a CPU, each with scratch memory and one tile after the other */
    BYTES_OF_BOTH = 128 /* of a row, for both gradients of keys to be in registers */
};

/* A call: its tensors, by ATTENTION_*; NULL where there is none. */
typedef struct attention {
    const tn_tensor_view *views[ATTENTION_TENSORS];
    attention_params p;
    tn_dtype dtype, computed;
    int64_t batch;
    uint64_t scratch_at; /* bytes into the workspace, of which */
    uint64_t workspace;  /* so many are needed */
} attention;

/* How the tiles of one launch are. */
typedef struct form {
    int64_t own; /* rows of a tile */
    int vectors, lanes, panel;
} form;

/* ---- tiles ------------------------------------------------------------------------------- */

static bool is_of_keys(int made) {
    return made & (ATTENTION_MAKES_KEY | ATTENTION_MAKES_VALUE);
}

/* Rows of a head of what is made, and its columns. */
static int64_t rows_of(const attention *a, int made) {
    return is_of_keys(made) ? a->p.keys : a->p.queries;
}
static int64_t columns_of(const attention *a, int made) {
    int64_t e = made & (ATTENTION_MAKES_QUERY | ATTENTION_MAKES_KEY) ? a->p.e : 0,
            v = made & (ATTENTION_MAKES_OUTPUT | ATTENTION_MAKES_VALUE) ? a->p.v : 0;
    return e > v ? e : v;
}

static form form_of(const attention *a, const gpu_traits *traits, int made) {
    int64_t bytes = gpu_dtype_sizes[a->computed], columns = columns_of(a, made);
    form f = {0};
    if (traits->is_cpu) { /* with as many vectors as there are registers for */
        f.lanes = (int)(traits->vector_bytes / bytes);
        f.vectors = rows_of(a, made) <= f.lanes ? 1 : traits->vector_bytes >= 64 ? 4 : 2;
        f.own = f.vectors * f.lanes;
    } else {
        f.own = bytes == 8 ? 32 : 64;
        f.panel = columns <= 32 ? 32 : columns <= 64 || bytes == 8 ? 64 : 128;
    }
    return f;
}

/* Elements of scratch memory of a CPU's group: see device/attention.cl. */
static int64_t scratch_of(const attention *a, int64_t own) {
    int64_t features = a->p.e + a->p.v;
    return 2 * features * own + a->p.v * own + ATTENTION_OTHERS * (2 * own + features);
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t tasks_of(const attention *a, const form *f, int made) {
    return a->batch * (is_of_keys(made) ? a->p.heads / a->p.share : a->p.heads) *
           gpu_ceil_div(rows_of(a, made), f->own);
}

static int64_t groups_of_cpu(const gpu_traits *traits, int64_t tasks) {
    return smaller(tasks, (int64_t)traits->compute_units * GROUPS_OF_UNIT);
}

/* Takes what a launch needs of the workspace, which launches share. */
static void reserve(attention *a, const gpu_traits *traits, int made) {
    form f = form_of(a, traits, made);
    gpu_bump bump = a->scratch_at;
    if (traits->is_cpu)
        gpu_bump_take(&bump, (uint64_t)(groups_of_cpu(traits, tasks_of(a, &f, made)) *
                                        scratch_of(a, f.own) * gpu_dtype_sizes[a->computed]));
    if (bump > a->workspace)
        a->workspace = bump;
}

/* ---- launches ---------------------------------------------------------------------------- */

static void set_view(attention *a, int tensor, const tn_tensor_view *view) {
    a->views[tensor] = view;
    a->p.offsets[tensor] = gpu_offset(view);
    for (int d = 0; view && d < view->rank; d++)
        a->p.strides[tensor][d] = view->strides[d];
}

static void init(attention *a, bool is_causal, double scale) {
    const tn_tensor_view *query = a->views[ATTENTION_QUERY], *key = a->views[ATTENTION_KEY];
    a->dtype = query->dtype;
    a->computed = gpu_computed(a->dtype);
    a->batch = query->sizes[0];
    a->p = (attention_params){.heads = query->sizes[1],
                              .share = query->sizes[1] / key->sizes[1],
                              .queries = query->sizes[2],
                              .keys = key->sizes[2],
                              .e = query->sizes[3],
                              .v = a->views[ATTENTION_VALUE]->sizes[3],
                              .causal = is_causal,
                              .masked = a->views[ATTENTION_MASK] != NULL,
                              .scale = gpu_number_f(a->computed, scale)};
    for (int k = 0; k < ATTENTION_TENSORS; k++)
        set_view(a, k, a->views[k]);
}

/* Device code counts features in 32 bits. */
static tn_status check(const tn_call *call, const attention *a) {
    const gpu_device *device = (const gpu_device *)call->device;
    if (gpu_is_int32(a->p.e) && gpu_is_int32(a->p.v))
        return TN_OK;
    return device->host->fail(device->host, TN_ERR_UNSUPPORTED,
                              "attention of rows of 2^30 features and more");
}

static tn_status launch(const tn_call *call, attention *a, int made) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    form f = form_of(a, traits, made);
    uint64_t side = traits->is_cpu ? 1 : ATTENTION_GROUP;
    a->p.tiles = gpu_ceil_div(rows_of(a, made), f.own);
    a->p.n_tasks = tasks_of(a, &f, made);
    a->p.panels = traits->is_cpu ? 1 : gpu_ceil_div(columns_of(a, made), f.panel);
    a->p.scratch = gpu_piece(call, a->scratch_at, a->computed);
    a->p.per = scratch_of(a, f.own);
    if (a->p.n_tasks == 0)
        return TN_OK;
    gpu_launch l = {.n_memory = ATTENTION_GRAD + 2,
                    .parameters = &a->p,
                    .parameter_bytes = sizeof a->p,
                    .groups = {(uint64_t)(traits->is_cpu ? groups_of_cpu(traits, a->p.n_tasks)
                                                         : a->p.n_tasks * a->p.panels)},
                    .local = {side, side}};
    for (int k = 0; k <= ATTENTION_GRAD; k++) /* what is not there is not looked at */
        l.memory[k] = (a->views[k] ? a->views[k] : a->views[ATTENTION_QUERY])->memory;
    l.memory[ATTENTION_GRAD + 1] =
        a->workspace ? call->workspace : a->views[ATTENTION_QUERY]->memory;
    uint64_t key =
        GPU_KEY(GPU_FAMILY_attention, (uint64_t)f.panel << 16 | (uint64_t)f.vectors << 12 |
                                          (uint64_t)made << 4 | (uint64_t)a->dtype);
    const char *type = gpu_dtype_names[a->dtype], *computed = gpu_dtype_names[a->computed];
    if (traits->is_cpu)
        return gpu_run(call, &l, key, &gpu_source_attention,
                       "attention -DT=%s -DA=%s -DMAKES=%d -DLANES=%d -DVECTORS=%d", type, computed,
                       made, f.lanes, f.vectors);
    return gpu_run(call, &l, key, &gpu_source_attention,
                   "attention -DT=%s -DA=%s -DMAKES=%d -DSIDE=%d -DPANEL=%d", type, computed, made,
                   (int)f.own, f.panel);
}

/* ---- forward ----------------------------------------------------------------------------- */

static void make_forward(const tn_call *call, attention *a) {
    *a = (attention){.views = {
                         [ATTENTION_OUT] = call->outs[0],
                         [ATTENTION_SECOND] = call->outs[1],
                         [ATTENTION_QUERY] = gpu_arg(call, TN_ARG_flash_attention_query),
                         [ATTENTION_KEY] = gpu_arg(call, TN_ARG_flash_attention_key),
                         [ATTENTION_VALUE] = gpu_arg(call, TN_ARG_flash_attention_value),
                         [ATTENTION_MASK] = gpu_arg(call, TN_ARG_flash_attention_attn_mask),
                     }};
    init(a, call->args[TN_ARG_flash_attention_is_causal].v.boolean,
         call->args[TN_ARG_flash_attention_scale].v.f64);
    reserve(a, gpu_device_traits(call->device), ATTENTION_MAKES_OUTPUT);
}

static tn_status forward_prepare(const tn_call *call, tn_plan *out) {
    attention a;
    make_forward(call, &a);
    out->workspace_bytes = a.workspace;
    return TN_OK;
}

static tn_status forward(const tn_call *call) {
    attention a;
    make_forward(call, &a);
    PLUGIN_TRY(check(call, &a));
    return launch(call, &a, ATTENTION_MAKES_OUTPUT);
}

/* ---- backward ---------------------------------------------------------------------------- */

/* Both gradients of keys come of one launch where there are registers for both. */
static bool is_made_at_once(const attention *a, const gpu_traits *traits) {
    int made = ATTENTION_MAKES_KEY | ATTENTION_MAKES_VALUE;
    return traits->is_cpu || columns_of(a, made) * gpu_dtype_sizes[a->computed] <= BYTES_OF_BOTH;
}

static void make_backward(const tn_call *call, attention *a) {
    const gpu_traits *traits = gpu_device_traits(call->device);
    *a = (attention){
        .views = {
            [ATTENTION_OUT] = call->outs[0],
            [ATTENTION_SECOND] = call->outs[2],
            [ATTENTION_QUERY] = gpu_arg(call, TN_ARG_flash_attention_backward_query),
            [ATTENTION_KEY] = gpu_arg(call, TN_ARG_flash_attention_backward_key),
            [ATTENTION_VALUE] = gpu_arg(call, TN_ARG_flash_attention_backward_value),
            [ATTENTION_MASK] = gpu_arg(call, TN_ARG_flash_attention_backward_attn_mask),
            [ATTENTION_GRAD] = gpu_arg(call, TN_ARG_flash_attention_backward_grad_output),
            [ATTENTION_OUTPUT] = gpu_arg(call, TN_ARG_flash_attention_backward_output),
            [ATTENTION_LOGSUMEXP] = gpu_arg(call, TN_ARG_flash_attention_backward_logsumexp),
        }};
    init(a, call->args[TN_ARG_flash_attention_backward_is_causal].v.boolean,
         call->args[TN_ARG_flash_attention_backward_scale].v.f64);
    a->p.n_rows = a->batch * a->p.heads * a->p.queries;
    a->p.rows = gpu_piece(call, a->scratch_at, a->computed);
    gpu_bump_take(&a->scratch_at, (uint64_t)(2 * a->p.n_rows * gpu_dtype_sizes[a->computed]));
    reserve(a, traits, ATTENTION_MAKES_QUERY);
    reserve(a, traits, ATTENTION_MAKES_KEY | ATTENTION_MAKES_VALUE);
}

static tn_status backward_prepare(const tn_call *call, tn_plan *out) {
    attention a;
    make_backward(call, &a);
    out->workspace_bytes = a.workspace;
    return TN_OK;
}

static tn_status launch_rows(const tn_call *call, const attention *a) {
    if (a->p.n_rows == 0)
        return TN_OK;
    gpu_launch l = {.n_memory = 4,
                    .memory = {call->workspace, a->views[ATTENTION_OUTPUT]->memory,
                               a->views[ATTENTION_GRAD]->memory,
                               a->views[ATTENTION_LOGSUMEXP]->memory},
                    .parameters = &a->p,
                    .parameter_bytes = sizeof a->p};
    gpu_launch_items(&l, a->p.n_rows, GPU_GROUP);
    return gpu_run(call, &l, GPU_KEY(GPU_FAMILY_attention, a->dtype), &gpu_source_attention,
                   "rows -DT=%s -DA=%s -DMAKES=0", gpu_dtype_names[a->dtype],
                   gpu_dtype_names[a->computed]);
}

static tn_status backward(const tn_call *call) {
    attention a;
    make_backward(call, &a);
    PLUGIN_TRY(check(call, &a));
    PLUGIN_TRY(launch_rows(call, &a));
    PLUGIN_TRY(launch(call, &a, ATTENTION_MAKES_QUERY));
    set_view(&a, ATTENTION_OUT, call->outs[1]);
    if (is_made_at_once(&a, gpu_device_traits(call->device)))
        return launch(call, &a, ATTENTION_MAKES_KEY | ATTENTION_MAKES_VALUE);
    PLUGIN_TRY(launch(call, &a, ATTENTION_MAKES_KEY));
    return launch(call, &a, ATTENTION_MAKES_VALUE);
}

/* A dtype and what it is computed in. */
#define RECORD(op_, types_, A_, name_) \
    { \
        .struct_size = sizeof(tn_kernel), .op = #op_, .schema_hash = TN_KERNEL_HASH_##op_, \
        .dtypes = {types_, TN_DTYPE_BIT(A_)}, \
        .flags = GPU_FLAGS_STRIDED | TN_KERNEL_DETERMINISTIC, .prepare = name_##_prepare, \
        .run = name_ \
    }
#define RECORDS(op_, name_) \
    RECORD(op_, TN_DTYPES_FLOAT & ~GPU_F64, TN_F32, name_), RECORD(op_, GPU_F64, TN_F64, name_)

static const tn_kernel records[] = {RECORDS(flash_attention, forward),
                                    RECORDS(flash_attention_backward, backward)};
GPU_PUBLISH(attention, records);
