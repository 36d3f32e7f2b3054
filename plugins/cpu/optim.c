/* One step of an optimizer over one parameter, in one pass over its memory. Outputs usually are the
 * inputs: parameter and state are updated in place. */
#include "plugins/cpu/pointwise.h"

#include <math.h>

/* Where the attributes of a step begin with a tensor: its element k, of the computing type. */
#define FACTOR(T, k) \
    ((const T *)tnc_data( \
        attrs[0].v.view))[attrs[0].v.view->rank ? (k)*attrs[0].v.view->strides[0] : 0]

/* in: self, grad, momentum_buffer; out: self, momentum_buffer. The learning rate is attribute 0. */
#define SGD(name, T, lr_) \
    TNC_LOOP_HEAD(name) { \
        const T *self = in[0], *grad = in[1], *buffer = in[2]; \
        T *new_self = out[0], *new_buffer = out[1]; \
        T lr = lr_, momentum = TNC_ATTR_F(T, 1); \
        T keep = (T)(1 - attrs[2].v.f64), weight_decay = TNC_ATTR_F(T, 3); \
        bool nesterov = attrs[4].v.boolean; \
        T sign = attrs[5].v.boolean ? -1 : 1; \
        TNC_INDEPENDENT \
        for (int64_t i = 0; i < n; i++) { \
            T p = self[i], g = sign * grad[i] + weight_decay * p; \
            T b = momentum * buffer[i] + keep * g; \
            T step = nesterov ? g + momentum * b : b; \
            new_buffer[i] = b; \
            new_self[i] = p - lr * step; \
        } \
    }
SGD(fused_sgd_f32, float, TNC_ATTR_F(float, 0))
SGD(fused_sgd_f64, double, TNC_ATTR_F(double, 0))
SGD(fused_sgd_from_f32, float, FACTOR(float, 0))
SGD(fused_sgd_from_f64, double, FACTOR(double, 0))

/* What follows from learning rate, decay and step. */
#define FACTORS_NOW(T) \
    double lr = attrs[0].v.f64, b1 = attrs[1].v.f64, b2 = attrs[2].v.f64; \
    double steps = (double)attrs[5].v.i64; \
    T shrink = (T)(1 - lr * attrs[4].v.f64); \
    T step_size = (T)(lr / (1 - pow(b1, steps))); \
    T root = (T)(1 / (1 - pow(b2, steps)))
#define FACTORS_FROM(T) \
    double b1 = attrs[1].v.f64, b2 = attrs[2].v.f64; \
    T shrink = FACTOR(T, 0), step_size = FACTOR(T, 1), root = FACTOR(T, 2)

/* in: self, grad, exp_avg, exp_avg_sq; out: self, exp_avg, exp_avg_sq */
#define ADAMW(name, T, sqrt, factors, maximize) \
    TNC_LOOP_HEAD(name) { \
        const T *self = in[0], *grad = in[1], *avg = in[2], *avg_sq = in[3]; \
        T *new_self = out[0], *new_avg = out[1], *new_avg_sq = out[2]; \
        factors; \
        T beta1 = (T)b1, rest1 = (T)(1 - b1), beta2 = (T)b2, rest2 = (T)(1 - b2); \
        T eps = TNC_ATTR_F(T, 3), sign = attrs[maximize].v.boolean ? -1 : 1; \
        TNC_INDEPENDENT \
        for (int64_t i = 0; i < n; i++) { \
            T g = sign * grad[i]; \
            T m = beta1 * avg[i] + rest1 * g; \
            T v = beta2 * avg_sq[i] + rest2 * g * g; \
            T p = self[i] * shrink - step_size * m / (sqrt(v * root) + eps); \
            new_avg[i] = m; \
            new_avg_sq[i] = v; \
            new_self[i] = p; \
        } \
    }
ADAMW(fused_adamw_f32, float, sqrtf, FACTORS_NOW(float), 6)
ADAMW(fused_adamw_f64, double, sqrt, FACTORS_NOW(double), 6)
ADAMW(fused_adamw_from_f32, float, sqrtf, FACTORS_FROM(float), 4)
ADAMW(fused_adamw_from_f64, double, sqrt, FACTORS_FROM(double), 4)

#define SGD_STEP(op, DT, loop, ...) TNC_POINTWISE(op, DT, loop, 3, 2, tnc_pointwise_run_any)
#define ADAMW_STEP(op, DT, loop, ...) TNC_POINTWISE(op, DT, loop, 4, 3, tnc_pointwise_run_any)

/* The tensor of factors is an attribute to the loop. */
#define STEP_FROM(op, DT, loop_, n_in_, n_out_) \
    TNC_KERNEL(op, TN_DTYPE_BIT(TN_##DT), TNC_FLAGS_STRIDED | TN_KERNEL_IN_PLACE, \
               tnc_pointwise_run_any, \
               .dtypes[1] = TN_DTYPE_BIT(TN_##DT == TN_F64 ? TN_F64 : TN_F32), \
               .user = (void *)&(const tnc_pointwise){ \
                   .loop = loop_, .n_in = n_in_, .n_out = n_out_, .dtype = TN_##DT})
#define SGD_FROM(op, DT, loop, ...) STEP_FROM(op, DT, loop, 3, 2)
#define ADAMW_FROM(op, DT, loop, ...) STEP_FROM(op, DT, loop, 4, 3)

static const tn_kernel records[] = {
    TNC_FLOATS_IN_BLOCKS(SGD_STEP, fused_sgd),
    TNC_FLOATS_IN_BLOCKS(ADAMW_STEP, fused_adamw),
    TNC_FLOATS_IN_BLOCKS(SGD_FROM, fused_sgd_from),
    TNC_FLOATS_IN_BLOCKS(ADAMW_FROM, fused_adamw_from),
};
TNC_PUBLISH(optim, records);
