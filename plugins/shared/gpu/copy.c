/* Copies between any strides and dtypes, for the operator and for others: in a row, by strides, or
 * in tiles where each tensor lies in a row along another dimension. */
#include "plugins/shared/gpu/copy.h"
#include "plugins/shared/gpu/device/copy.params.h"
#include "plugins/shared/gpu/loop.h"

#include <string.h>

/* Of a tile's group on a GPU, each COPY_TILE work items: so few that each has many elements under
 * way. */
enum { TILE_ROWS = 4 };

/* The forms of device/copy.cl. */
enum { IN_A_ROW, BY_STRIDES, TRANSPOSED };

/* The dimension along which tensor k lies in a row, or -1. */
static int64_t row_of(const gpu_loop *loop, int k) {
    int64_t d = 0;
    while (d < loop->rank && loop->strides[k][d] != 1)
        d++;
    return d < loop->rank ? d : -1;
}

/* Is it worth its tiles? Then `p` says how they lie, and the loop loses two dimensions. */
static bool is_transposed(gpu_loop *loop, copy_params *p) {
    enum { LEAST = 8 };
    int64_t x = row_of(loop, 0), y = row_of(loop, 1);
    if (x < 0 || y < 0 || x == y || loop->sizes[x] < LEAST || loop->sizes[y] < LEAST ||
        p->numel / (LEAST * LEAST) > INT32_MAX)
        return false;
    p->sizes[0] = loop->sizes[x];
    p->sizes[1] = loop->sizes[y];
    p->out_step = loop->strides[0][y];
    p->in_step = loop->strides[1][x];
    int64_t rank = 0;
    for (int64_t d = 0; d < loop->rank; d++) {
        if (d == x || d == y)
            continue;
        loop->sizes[rank] = loop->sizes[d];
        loop->strides[0][rank] = loop->strides[0][d];
        loop->strides[1][rank] = loop->strides[1][d];
        rank++;
    }
    loop->rank = rank;
    return true;
}

/* In a program for a CPU there are all dtypes of the input; see gpu_pointwise_run. */
tn_status gpu_copy(const tn_call *call, const tn_tensor_view *out, const tn_tensor_view *in) {
    const tn_tensor_view *views[] = {out, in};
    const gpu_traits *traits = gpu_device_traits(call->device);
    bool is_int32 = gpu_is_int32(out->numel);
    tn_dtype from = in->dtype, to = out->dtype;
    if (from == to) /* the bits move */
        from = to = gpu_moved_as(from);
    gpu_loop loop;
    copy_params p = {.numel = out->numel, .offsets = {gpu_offset(out), gpu_offset(in)}};
    gpu_loop_init(&loop, views, 2, GPU_ALL_DIMS);
    int form = gpu_loop_in_a_row(&loop, 2, 0) ? IN_A_ROW
               : is_transposed(&loop, &p)     ? TRANSPOSED
                                              : BY_STRIDES;
    gpu_launch launch = {.n_memory = 2,
                         .memory = {out->memory, in->memory},
                         .parameters = &p,
                         .parameter_bytes = form == IN_A_ROW     ? offsetof(copy_params, loop)
                                            : form == BY_STRIDES ? offsetof(copy_params, sizes)
                                                                 : sizeof p};
    int widest =
        gpu_dtype_sizes[from] > gpu_dtype_sizes[to] ? gpu_dtype_sizes[from] : gpu_dtype_sizes[to];
    if (form == IN_A_ROW)
        gpu_launch_elements(&launch, traits, p.numel, 16 / widest);
    else
        gpu_launch_items(&launch, p.numel, GPU_GROUP);
    if (form != IN_A_ROW)
        memcpy(&p.loop, &loop, sizeof p.loop);
    bool tiles = form == TRANSPOSED;
    if (tiles) {
        launch.groups[0] = (uint64_t)(gpu_ceil_div(p.sizes[0], COPY_TILE) *
                                      gpu_ceil_div(p.sizes[1], COPY_TILE) * gpu_loop_numel(&loop));
        launch.local[0] = traits->is_cpu ? 1 : COPY_TILE;
        launch.local[1] = traits->is_cpu ? 1 : TILE_ROWS;
    }
    uint64_t key = GPU_KEY(GPU_FAMILY_copy, (uint64_t)from << 16 | (uint64_t)to << 8 |
                                                (uint64_t)form << 1 | is_int32);
    return gpu_run(call, &launch, key, &gpu_source_copy,
                   "copy_%s -DD=%s -DSTRIDED=%d -DINDEX=%s -DSIDE_X=%d -DSIDE_Y=%d%s%s",
                   gpu_dtype_names[from], gpu_dtype_names[to], form, is_int32 ? "i32" : "i64",
                   tiles ? (int)launch.local[0] : 1, tiles ? (int)launch.local[1] : 1,
                   traits->is_cpu ? "" : " -DS=", traits->is_cpu ? "" : gpu_dtype_names[from]);
}

static tn_status run(const tn_call *call) {
    return gpu_copy(call, call->outs[0], gpu_arg(call, TN_ARG_copy_self));
}

#define ALL TN_DTYPES_ALL
#define RECORD(from, to) \
    { \
        .struct_size = sizeof(tn_kernel), .op = "copy", .schema_hash = TN_KERNEL_HASH_copy, \
        .dtypes = {from, to}, .flags = GPU_FLAGS_STRIDED | TN_KERNEL_DETERMINISTIC, .run = run \
    }

static const tn_kernel records[] = {
    RECORD(ALL & ~GPU_F64, ALL & ~GPU_F64),
    RECORD(GPU_F64, ALL),
    RECORD(ALL & ~GPU_F64, GPU_F64),
};
GPU_PUBLISH(copy, records);
