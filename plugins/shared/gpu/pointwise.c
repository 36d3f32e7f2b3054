/* Operators that compute each element from the elements in its place: the form that a call's layouts
 * allow, and parameters for as many tensors as it has. */
#include "plugins/shared/gpu/device/pointwise.params.h"
#include "plugins/shared/gpu/loop.h"
#include "plugins/shared/gpu/pointwise.h"

#include <string.h>

enum {
    MAX_TENSORS = 7,
    LONG_ROW = 64,      /* elements, from which on a work item need not divide to find its place */
    MAX_GROUPS = 32768, /* of a launch, along its second dimension */
    SIDE = 16           /* of a group's tile */
};

/* Of any number of tensors: what follows the numbers is packed as their struct has it. */
typedef pointwise_params_7 parameters;

/* The forms of device/pointwise.cl. */
enum { IN_A_ROW, BY_STRIDES, BY_ROWS };

/* Offsets, and for a strided call the loop; returns the bytes of the whole. */
static uint64_t pack(const tn_tensor_view *const *views, int n, const gpu_loop *loop, bool strided,
                     parameters *p) {
    int64_t offsets[MAX_TENSORS];
    for (int k = 0; k < n; k++)
        offsets[k] = gpu_offset(views[k]);
    uint64_t bytes = (uint64_t)n * sizeof offsets[0], loop_bytes = strided ? gpu_loop_bytes(n) : 0;
    char *rest = (char *)p + offsetof(parameters, offsets);
    memcpy(rest, offsets, bytes);
    memcpy(rest + bytes, loop, loop_bytes);
    return offsetof(parameters, offsets) + bytes + loop_bytes;
}

/* Does a tensor lie along the second dimension? Then a group takes a tile of the two, so that what
 * it reads lies close together either way. */
static bool turns(const gpu_loop *loop, int n) {
    for (int k = 0; k < n && loop->rank > 1; k++)
        if (loop->strides[k][1] == 1 && loop->strides[k][0] > 1)
            return true;
    return false;
}

/* In a program there are all operators of a dtype; where they follow strides, which takes longer to
 * compile, those of so many inputs. */
tn_status gpu_pointwise_run(const tn_call *call) {
    const gpu_pointwise *op = call->user;
    const tn_tensor_view *views[MAX_TENSORS] = {NULL}, *first = call->outs[0];
    int n = op->n_out + op->n_in;
    int scalar = -1;
    tn_dtype in = TN_DTYPE_NONE, out = first->dtype;
    for (int k = 0; k < op->n_out; k++)
        views[k] = call->outs[k];
    for (int k = 0; k < op->n_in; k++) {
        const tn_cell *cell = &call->args[k];
        if (cell->tag == TN_CELL_TENSOR) {
            views[op->n_out + k] = cell->v.view;
            if (k >= op->bool_in)
                in = cell->v.view->dtype;
        } else {
            scalar = k;
        }
    }
    if (in == TN_DTYPE_NONE)
        in = out;
    gpu_loop loop;
    gpu_loop_init(&loop, views, n, GPU_ALL_DIMS);
    uint32_t absent = scalar < 0 ? 0 : UINT32_C(1) << (op->n_out + scalar);
    int form = gpu_loop_in_a_row(&loop, n, absent) ? IN_A_ROW
               : loop.sizes[0] >= LONG_ROW         ? BY_ROWS
                                                   : BY_STRIDES;
    bool is_int32 = first->numel < INT32_MAX - GPU_GROUP;
    uint64_t key = GPU_KEY(GPU_FAMILY_pointwise,
                           (uint64_t)op->id << 32 | (uint64_t)in << 16 | (uint64_t)out << 8 |
                               (uint64_t)(scalar + 1) << 4 | (uint64_t)form << 1 | is_int32);
    parameters p;
    p.numel = first->numel;
    if (scalar >= 0)
        p.scalar = gpu_number(op->bool_in && scalar == 0 ? TN_BOOL : in, &call->args[scalar]);
    if (op->numbers)
        op->numbers(call, in, p.numbers);
    gpu_launch launch = {.n_memory = (uint32_t)n,
                         .parameters = &p,
                         .parameter_bytes = pack(views, n, &loop, form != IN_A_ROW, &p)};
    gpu_launch_items(&launch, p.numel, GPU_GROUP);
    if (form == BY_ROWS) {
        int64_t high = turns(&loop, n) ? SIDE : 1, wide = GPU_GROUP / high,
                rows = gpu_ceil_div(p.numel / loop.sizes[0], high);
        launch.groups[0] = (uint64_t)gpu_ceil_div(loop.sizes[0], wide);
        launch.groups[1] = (uint64_t)(rows < MAX_GROUPS ? rows : MAX_GROUPS);
        launch.groups[2] = (uint64_t)gpu_ceil_div(rows, MAX_GROUPS);
        launch.local[0] = (uint64_t)wide;
        launch.local[1] = (uint64_t)high;
    }
    for (int k = 0; k < n; k++)
        launch.memory[k] = (views[k] ? views[k] : first)->memory;
    static const char *const suffixes[] = {"", "_s0", "_s1", "_s2", "_s3"};
    return gpu_run(call, &launch, key, &gpu_source_pointwise,
                   "op_%s%s -DT=%s -DSTRIDED=%d -DINDEX=%s -DN_IN=%d", op->name,
                   suffixes[scalar + 1], gpu_dtype_names[in], form, is_int32 ? "i32" : "i64",
                   form == IN_A_ROW ? 0 : op->n_in);
}
