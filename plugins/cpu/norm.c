/* layer_norm and its derivative by the input, a row at a time. */
#include "plugins/cpu/iterate.h"

#include <math.h>

/* Partial sums of a block: four vectors of AVX-512, to hide latency. */
enum { LANES = 64 };

/* A dense tensor; data is NULL for an optional one left out. */
typedef struct array {
    char *data;
    tn_dtype dtype;
} array;

typedef struct norm {
    void (*row)(const struct norm *l, int64_t row);
    array x, grad, weight, bias, out, mean, rstd;
    int64_t n; /* elements of a row */
    double eps;
} norm;

static const void *load(const array *a, int64_t i, int64_t n, void *block) {
    int64_t item = tnc_dtype_bytes(a->dtype);
    return tnc_load_run(block, a->data + i * item, item, n, a->dtype);
}

/* Where to compute element i and on: in place, or in `block` until they are stored. */
static void *target(const array *a, int64_t i, void *block) {
    int64_t item = tnc_dtype_bytes(a->dtype);
    return tnc_is_direct(item, a->dtype) ? a->data + i * item : block;
}

static void store(const array *a, int64_t i, const void *run, int64_t n) {
    int64_t item = tnc_dtype_bytes(a->dtype);
    tnc_store_run(a->data + i * item, item, run, n, a->dtype);
}

#define T float
#define NAME(x) x##_f32
#include "plugins/cpu/norm.inc"
#undef T
#undef NAME

#define T double
#define NAME(x) x##_f64
#include "plugins/cpu/norm.inc"

static array as_array(const tn_tensor_view *v) {
    return v ? (array){tnc_data(v), v->dtype} : (array){NULL, TN_F32};
}

enum { WIDENED = 4 * TNC_BLOCK };

/* Halves that are asked for more than once are made f32 once, where they are few. */
static void widen(array *a, int64_t n, float *block) {
    if (!a->data || !tnc_is_half(a->dtype) || n > WIDENED)
        return;
    tnc_halves_to_floats(a->dtype, block, a->data, n);
    *a = (array){(char *)block, TN_F32};
}

static void advance(array *a, int64_t n) {
    if (a->data)
        a->data += n * tnc_dtype_bytes(a->dtype);
}

static void rows(void *context, int64_t begin, int64_t end, int slot) {
    norm l = *(const norm *)context;
    (void)slot;
    _Alignas(64) float weight[WIDENED], bias[WIDENED], x[WIDENED];
    widen(&l.weight, l.n, weight);
    widen(&l.bias, l.n, bias);
    for (int64_t row = begin; row < end; row++) {
        norm one = l;
        advance(&one.x, row * l.n);
        advance(&one.grad, row * l.n);
        advance(&one.out, row * l.n);
        advance(&one.mean, row);
        advance(&one.rstd, row);
        widen(&one.x, l.n, x);
        l.row(&one, 0);
    }
}

static tn_status run(const tn_call *call, norm *l, const tn_tensor_view *x, int64_t n_dims) {
    l->n = 1;
    for (int64_t d = x->rank - n_dims; d < x->rank; d++)
        l->n *= x->sizes[d];
    tnc_parallel(call, x->numel / l->n, tnc_max(1, TNC_GRAIN / 4 / l->n), TNC_MAX_SLOTS, rows, l);
    return TN_OK;
}

static tn_status forward(const tn_call *call) {
    const tn_tensor_view *x = tnc_view(call, TN_ARG_layer_norm_input);
    norm l = {
        .row = x->dtype == TN_F64 ? forward_row_f64 : forward_row_f32,
        .x = as_array(x),
        .weight = as_array(tnc_view(call, TN_ARG_layer_norm_weight)),
        .bias = as_array(tnc_view(call, TN_ARG_layer_norm_bias)),
        .out = as_array(call->outs[0]),
        .mean = as_array(call->outs[1]),
        .rstd = as_array(call->outs[2]),
        .eps = call->args[TN_ARG_layer_norm_eps].v.f64,
    };
    return run(call, &l, x, call->args[TN_ARG_layer_norm_n_dims].v.i64);
}

static tn_status backward(const tn_call *call) {
    const tn_tensor_view *x = tnc_view(call, TN_ARG_layer_norm_backward_input);
    norm l = {
        .row = x->dtype == TN_F64 ? backward_row_f64 : backward_row_f32,
        .x = as_array(x),
        .grad = as_array(tnc_view(call, TN_ARG_layer_norm_backward_grad_output)),
        .weight = as_array(tnc_view(call, TN_ARG_layer_norm_backward_weight)),
        .out = as_array(call->outs[0]),
        .mean = as_array(tnc_view(call, TN_ARG_layer_norm_backward_mean)),
        .rstd = as_array(tnc_view(call, TN_ARG_layer_norm_backward_rstd)),
    };
    return run(call, &l, x, call->args[TN_ARG_layer_norm_backward_n_dims].v.i64);
}

static const tn_kernel records[] = {
    TNC_KERNEL(layer_norm, TN_DTYPES_FLOAT, TNC_FLAGS_DENSE | TN_KERNEL_IN_PLACE, forward),
    TNC_KERNEL(layer_norm_backward, TN_DTYPES_FLOAT, TNC_FLAGS_DENSE | TN_KERNEL_IN_PLACE,
               backward),
};
TNC_PUBLISH(norm, records);
