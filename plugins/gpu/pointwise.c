/* pointwise.c: calls of device/pointwise.c and device/copy.c. Dimensions are joined where all tensors let them be, so
 * that most calls lie in a row. */
#include "gpu.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TENSORS = 7, GROUP = 256 };

/* As the device code has it; what follows `offsets` begins where the tensors end. */
typedef struct parameters {
    int64_t numel, scalar, numbers[8];
    int64_t rest[MAX_TENSORS + 1 + TN_MAX_RANK * (MAX_TENSORS + 1)];
} parameters;

typedef struct loop {
    int n; /* tensors, outputs first */
    const tn_tensor_view *views[MAX_TENSORS];
    int rank;
    int64_t sizes[TN_MAX_RANK], strides[MAX_TENSORS][TN_MAX_RANK]; /* innermost first */
} loop;

/* Could dimension `d` of the views, which is outside of the loop's last, go on with it? */
static bool joins(const loop *l, const tn_tensor_view *const *views, int32_t d) {
    const int last = l->rank - 1;
    for (int k = 0; k < l->n; k++)
        if (views[k] && views[k]->strides[d] != l->strides[k][last] * l->sizes[last])
            return false;
    return true;
}

static void plan(loop *l) {
    const tn_tensor_view *shape = l->views[0];
    for (int32_t d = shape->rank - 1; d >= 0; d--) {
        if (shape->sizes[d] == 1)
            continue;
        if (l->rank > 0 && joins(l, l->views, d)) {
            l->sizes[l->rank - 1] *= shape->sizes[d];
            continue;
        }
        l->sizes[l->rank] = shape->sizes[d];
        for (int k = 0; k < l->n; k++)
            l->strides[k][l->rank] = l->views[k] ? l->views[k]->strides[d] : 0;
        l->rank++;
    }
}

static bool lies_in_a_row(const loop *l) {
    if (l->rank > 1)
        return false;
    for (int k = 0; k < l->n && l->rank; k++)
        if (l->views[k] && l->strides[k][0] != 1)
            return false;
    return true;
}

/* Can 32 bits count the elements? */
static bool is_short(const loop *l) {
    return l->views[0]->numel < INT32_MAX - GROUP;
}

/* Of equal dtypes the bits move. */
static tn_dtype moved_as(tn_dtype dtype) {
    const uint32_t bytes = gpu_dtype_bytes(dtype);
    return bytes == 1 ? TN_I8 : bytes == 2 ? TN_I16 : bytes == 4 ? TN_I32 : TN_I64;
}

static void describe(const gpu_op *op, tn_dtype in, tn_dtype out, int scalar, bool strided,
                     bool is_int32, gpu_variant *v) {
    if (op->converts) {
        v->source = &gpu_source_copy;
        v->entry = "copy";
        snprintf(v->options, sizeof v->options, "-DS=%s -DD=%s -DN_STRIDED=2 -DSTRIDED=%d -DINDEX=%s",
                 gpu_dtype_name(in), gpu_dtype_name(out), strided, is_int32 ? "i32" : "i64");
        return;
    }
    v->source = &gpu_source_pointwise;
    v->entry = "pointwise";
    snprintf(v->options, sizeof v->options,
             "-DOP=DO_%s -DT=%s -DR=%s -DN_IN=%d -DN_OUT=%d -DBOOL_IN=%d -DSCALAR=%d -DSTRIDED=%d "
             "-DINDEX=%s",
             op->name, gpu_dtype_name(in), gpu_dtype_name(out), op->n_in, op->n_out, op->bool_in,
             scalar, strided, is_int32 ? "i32" : "i64");
}

static uint64_t pack(const loop *l, bool strided, parameters *p) {
    int64_t *rest = p->rest;
    for (int k = 0; k < l->n; k++)
        *rest++ = l->views[k] ? (int64_t)(l->views[k]->offset / gpu_dtype_bytes(l->views[k]->dtype))
                              : 0;
    if (strided) {
        *rest++ = l->rank;
        memcpy(rest, l->sizes, sizeof l->sizes);
        memcpy(rest + TN_MAX_RANK, l->strides, (size_t)l->n * sizeof l->strides[0]);
        rest += TN_MAX_RANK * (1 + l->n);
    }
    return (uint64_t)((char *)rest - (char *)p);
}

tn_status gpu_pointwise_run(const tn_call *call) {
    const gpu_op *op = call->user;
    loop l = {.n = op->n_out + op->n_in};
    int scalar = -1;
    tn_dtype in = TN_DTYPE_NONE;
    for (int k = 0; k < op->n_out; k++)
        l.views[k] = call->outs[k];
    for (int k = 0; k < op->n_in; k++) {
        const tn_cell *cell = &call->args[k];
        if (cell->tag == TN_CELL_TENSOR) {
            l.views[op->n_out + k] = cell->v.view;
            if (k >= op->bool_in)
                in = cell->v.view->dtype;
        } else {
            scalar = k;
        }
    }
    if (in == TN_DTYPE_NONE)
        in = call->outs[0]->dtype;
    plan(&l);
    tn_dtype out = call->outs[0]->dtype;
    if (op->converts && in == out)
        in = out = moved_as(in);
    const bool strided = !lies_in_a_row(&l), is_int32 = is_short(&l);
    const uint64_t key = (uint64_t)op->id << 32 | (uint64_t)in << 16 | (uint64_t)out << 8 |
                         (uint64_t)(scalar + 1) << 4 | (uint64_t)strided << 1 | is_int32;
    gpu_kernel *kernel = gpu_kernel_find(call->device, key);
    if (!kernel) {
        gpu_variant v;
        describe(op, in, out, scalar, strided, is_int32, &v);
        const tn_status status = gpu_kernel_build(call->device, key, &v, &kernel);
        if (status != TN_OK)
            return status;
    }
    parameters p;
    p.numel = call->outs[0]->numel;
    if (scalar >= 0)
        p.scalar = gpu_number(scalar < op->bool_in ? TN_BOOL : in, &call->args[scalar]);
    if (op->numbers)
        op->numbers(call, in, p.numbers);
    gpu_launch launch = {.kernel = kernel,
                         .n_memory = (uint32_t)l.n,
                         .parameters = &p,
                         .parameter_bytes = pack(&l, strided, &p),
                         .groups = {((uint64_t)p.numel + GROUP - 1) / GROUP},
                         .local = {GROUP}};
    for (int k = 0; k < l.n; k++)
        launch.memory[k] = l.views[k] ? l.views[k]->memory : l.views[0]->memory;
    return gpu_launch_on(call->stream, &launch);
}
