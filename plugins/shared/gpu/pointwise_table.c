/* The pointwise operators, and the attributes of each as the device code takes
 * them. */
#include "plugins/shared/gpu/pointwise.h"
#include "plugins/shared/gpu/device/pointwise_list.h"

#include <math.h>
#include <string.h>

/* ---- attributes -------------------------------------------------------------------------- */

static void numbers_first(const tn_call *call, tn_dtype dtype, int64_t *out) {
    const gpu_pointwise *op = call->user;
    out[0] = gpu_number(dtype, &call->args[op->n_in]);
}

/* Bounds are brought into the dtype's range; a bound that is missing bounds nothing. */
static int64_t bound(tn_dtype dtype, const tn_cell *cell, int side) {
    static const int64_t low[] = {INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN, 0},
                         high[] = {INT8_MAX, INT16_MAX, INT32_MAX, INT64_MAX, UINT8_MAX};
    if (dtype < TN_I8)
        return cell->tag == TN_CELL_NONE ? gpu_number_f(dtype, side * (double)INFINITY)
                                         : gpu_number(dtype, cell);
    int64_t lowest = low[dtype - TN_I8], highest = high[dtype - TN_I8];
    if (cell->tag == TN_CELL_NONE)
        return side < 0 ? lowest : highest;
    int64_t x = gpu_number(dtype, cell);
    return x < lowest ? lowest : x > highest ? highest : x;
}

static void numbers_clamp(const tn_call *call, tn_dtype dtype, int64_t *out) {
    out[0] = bound(dtype, &call->args[TN_ARG_clamp_min], -1);
    out[1] = bound(dtype, &call->args[TN_ARG_clamp_max], 1);
}

static void numbers_gelu(const tn_call *call, tn_dtype dtype, int64_t *out) {
    (void)dtype;
    const gpu_pointwise *op = call->user;
    out[0] = strcmp(call->args[op->n_in].v.string, "tanh") == 0;
}

static void numbers_sgd(const tn_call *call, tn_dtype dtype, int64_t *out) {
    const tn_cell *a = call->args;
    const double numbers[] = {a[TN_ARG_fused_sgd_lr].v.f64,
                              a[TN_ARG_fused_sgd_momentum].v.f64,
                              1 - a[TN_ARG_fused_sgd_dampening].v.f64,
                              a[TN_ARG_fused_sgd_weight_decay].v.f64,
                              a[TN_ARG_fused_sgd_nesterov].v.boolean ? 1 : 0,
                              a[TN_ARG_fused_sgd_maximize].v.boolean ? -1 : 1};
    for (int i = 0; i < 6; i++)
        out[i] = gpu_number_f(dtype, numbers[i]);
}

static void numbers_adamw(const tn_call *call, tn_dtype dtype, int64_t *out) {
    const tn_cell *a = call->args;
    double lr = a[TN_ARG_fused_adamw_lr].v.f64, b1 = a[TN_ARG_fused_adamw_beta1].v.f64,
           b2 = a[TN_ARG_fused_adamw_beta2].v.f64, steps = (double)a[TN_ARG_fused_adamw_step].v.i64,
           sign = a[TN_ARG_fused_adamw_maximize].v.boolean ? -1 : 1;
    const double numbers[] = {b1,
                              sign * (1 - b1),
                              b2,
                              1 - b2,
                              a[TN_ARG_fused_adamw_eps].v.f64,
                              1 - lr * a[TN_ARG_fused_adamw_weight_decay].v.f64,
                              lr / (1 - pow(b1, steps)),
                              1 / (1 - pow(b2, steps))};
    for (int i = 0; i < 8; i++)
        out[i] = gpu_number_f(dtype, numbers[i]);
}

/* ---- operators --------------------------------------------------------------------------- */

#define FLOATS TN_DTYPES_FLOAT
#define NUMBERS TN_DTYPES_NUMBER
#define INTS_BOOL (TN_DTYPES_INT | TN_DTYPE_BIT(TN_BOOL))
#define ALL TN_DTYPES_ALL

enum {
#define ID(name, ...) ID_##name,
    POINTWISE(ID)
#undef ID
};

#define IS_BOOL_own false
#define IS_BOOL_bool true
#define numbers_none NULL

#define OPERATOR(name_, in, out, mask, first, result, attributes) \
    static const gpu_pointwise op_##name_ = {.name = #name_, \
                                             .id = ID_##name_, \
                                             .n_in = in, \
                                             .n_out = out, \
                                             .bool_in = IS_BOOL_##first, \
                                             .numbers = numbers_##attributes};
POINTWISE(OPERATOR)

#define FLAGS (GPU_FLAGS_STRIDED | TN_KERNEL_IN_PLACE)
#define RECORDS(name_, in, out, mask, first, result, attributes) \
    GPU_KERNEL(name_, mask, FLAGS | (in > 1 ? TN_KERNEL_SCALARS : 0), gpu_pointwise_run, \
               .user = (void *)&op_##name_),
static const tn_kernel records[] = {POINTWISE(RECORDS)};
GPU_PUBLISH(pointwise, records);
