/* One step of an optimizer over one parameter, in one pass over its memory. Outputs usually are the
 * inputs: parameter and state are updated in place. */
#include "plugins/cpu/pointwise.h"

#include <math.h>

/* in: self, grad, momentum_buffer; out: self, momentum_buffer */
#define SGD(sfx, T) \
    TNC_LOOP_HEAD(fused_sgd_##sfx) { \
        const T *self = in[0], *grad = in[1], *buffer = in[2]; \
        T *new_self = out[0], *new_buffer = out[1]; \
        T lr = TNC_ATTR_F(T, 0), momentum = TNC_ATTR_F(T, 1); \
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
SGD(f32, float)
SGD(f64, double)

/* in: self, grad, exp_avg, exp_avg_sq; out: self, exp_avg, exp_avg_sq */
#define ADAMW(sfx, T, sqrt) \
    TNC_LOOP_HEAD(fused_adamw_##sfx) { \
        const T *self = in[0], *grad = in[1], *avg = in[2], *avg_sq = in[3]; \
        T *new_self = out[0], *new_avg = out[1], *new_avg_sq = out[2]; \
        double lr = attrs[0].v.f64, b1 = attrs[1].v.f64, b2 = attrs[2].v.f64; \
        double steps = (double)attrs[5].v.i64; \
        T beta1 = (T)b1, rest1 = (T)(1 - b1), beta2 = (T)b2, rest2 = (T)(1 - b2); \
        T eps = TNC_ATTR_F(T, 3), shrink = (T)(1 - lr * attrs[4].v.f64); \
        T step_size = (T)(lr / (1 - pow(b1, steps))); \
        T root = (T)(1 / (1 - pow(b2, steps))); \
        T sign = attrs[6].v.boolean ? -1 : 1; \
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
ADAMW(f32, float, sqrtf)
ADAMW(f64, double, sqrt)

#define SGD_STEP(op, DT, loop, ...) TNC_POINTWISE(op, DT, loop, 3, 2, tnc_pointwise_run_any)
#define ADAMW_STEP(op, DT, loop, ...) TNC_POINTWISE(op, DT, loop, 4, 3, tnc_pointwise_run_any)

static const tn_kernel records[] = {
    TNC_FLOATS(SGD_STEP, fused_sgd),
    TNC_FLOATS(ADAMW_STEP, fused_adamw),
};
TNC_PUBLISH(optim, records);
