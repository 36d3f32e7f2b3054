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

/* Elements of a work item, where it is no thread of a CPU: E of device/pointwise.cl. */
static int64_t elements_of(tn_dtype dtype) {
    int64_t bytes = gpu_dtype_sizes[dtype];
    return bytes == 1 ? 8 : 16 / bytes;
}

/* Is it worth the form by rows, and does that have work groups for all of them? */
static bool in_rows(const gpu_loop *loop, int64_t numel) {
    return loop->sizes[0] >= LONG_ROW &&
           numel / loop->sizes[0] < (int64_t)MAX_GROUPS * GPU_MAX_GROUPS;
}

/* Work items along a row, a power of two; the others of a group take rows beside it. */
static int64_t width_of_group(const gpu_loop *loop, int64_t each) {
    int64_t wide = 16;
    while (wide < GPU_GROUP && wide * each < loop->sizes[0])
        wide *= 2;
    return wide;
}

typedef struct variant {
    tn_dtype in, out;
    int form, scalar;
    bool is_int32;
} variant;

/* A CPU's driver needs the longest to read a program: there all operators of a dtype are in one;
 * where they follow strides, which takes longer to compile, those of so many inputs. A GPU's needs
 * as long as there are kernels: there each is a program. */
static tn_status run(const tn_call *call, const gpu_launch *launch, uint64_t key,
                     const variant *v) {
    static const char *const suffixes[] = {"", "_s0", "_s1", "_s2", "_s3"};
    const gpu_pointwise *op = call->user;
    const char *in = gpu_dtype_names[v->in], *suffix = suffixes[v->scalar + 1],
               *index = v->is_int32 ? "i32" : "i64";
    if (gpu_device_traits(call->device)->is_cpu)
        return gpu_run(call, launch, key, &gpu_source_pointwise,
                       "op_%s%s -DT=%s -DSTRIDED=%d -DINDEX=%s -DN_IN=%d", op->name, suffix, in,
                       v->form, index, v->form == IN_A_ROW ? 0 : op->n_in);
    return gpu_run(call, launch, key, &gpu_source_pointwise,
                   "op_%s%s -DENTRY=op_%s%s -DDO=DO_%s -DT=%s -DSTRIDED=%d -DINDEX=%s -DN_IN=%d "
                   "-DN_OUT=%d -DFIRST=%s -DRESULT=%s -DSCALAR=%d",
                   op->name, suffix, op->name, suffix, op->name, in, v->form, index, op->n_in,
                   op->n_out, op->bool_in ? "bool" : "own", v->out == v->in ? "own" : "bool",
                   v->scalar);
}

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
    const gpu_traits *traits = gpu_device_traits(call->device);
    int form = gpu_loop_in_a_row(&loop, n, absent) ? IN_A_ROW
               : in_rows(&loop, first->numel)      ? BY_ROWS
                                                   : BY_STRIDES;
    bool is_int32 = gpu_is_int32(first->numel);
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
    int64_t each = traits->is_cpu ? 1 : elements_of(in);
    if (form != BY_ROWS) {
        gpu_launch_elements(&launch, traits, p.numel, form == IN_A_ROW ? each : 1);
    } else {
        int64_t wide = traits->is_cpu ? GPU_GROUP : width_of_group(&loop, each),
                high = turns(&loop, n)  ? SIDE
                       : traits->is_cpu ? 1
                                        : GPU_GROUP / wide,
                rows = gpu_ceil_div(p.numel / loop.sizes[0], high);
        if (high == SIDE)
            wide = GPU_GROUP / SIDE;
        launch.groups[0] = (uint64_t)gpu_ceil_div(loop.sizes[0], wide * each);
        launch.groups[1] = (uint64_t)(rows < MAX_GROUPS ? rows : MAX_GROUPS);
        launch.groups[2] = (uint64_t)gpu_ceil_div(rows, MAX_GROUPS);
        launch.local[0] = (uint64_t)wide;
        launch.local[1] = (uint64_t)high;
    }
    for (int k = 0; k < n; k++)
        launch.memory[k] = (views[k] ? views[k] : first)->memory;
    return run(
        call, &launch, key,
        &(variant){.in = in, .out = out, .form = form, .scalar = scalar, .is_int32 = is_int32});
}
