/* Steps of optimizers, in one pass over a parameter and its state, whose learning rate and what follows
 * from it lie in memory: a graph that is launched again finds those of that launch. The tensors lie in a
 * row. One work item makes 16 bytes at a time, a thread of a CPU one element.
 *
 *   T          dtype of all tensors but the factors
 *   F          f32 or f64: that of the factors
 *   INDEX      i32 or i64, what counts elements */
#include "plugins/shared/gpu/device/step.params.h"

#define C computed(T)

#define E (IS_CPU ? 1 : 16 / BYTES(T))
MAKE_PACK(T, E)

#define n(k) number(T)(p.numbers[k])
#define factor(k) ((C)load(F)(factors, p.factors_offset + (k)))

/* `count` elements of tensor k are the work item's, from offset i on. */
#define GET(k, in, x) \
    C x[E]; \
    LOAD_PACK(T, E, (in) + p.offsets[k] + i, count, x)
#define PUT(k, out, x) STORE_PACK(T, E, (out) + p.offsets[k] + i, count, x, narrow(T))

/* momentum, 1 - dampening, weight decay, the gradient's sign */
KERNEL(fused_sgd_from)
(GLOBAL stored(T) * out0, GLOBAL stored(T) * out1, GLOBAL const stored(T) * self,
 GLOBAL const stored(T) * grad, GLOBAL const stored(T) * buffer, GLOBAL const stored(F) * factors,
 const step_params p) {
    INDEX step = (INDEX)(GROUPS(0) * LOCAL_SIZE(0)) * E;
    C lr = factor(0);
    for (INDEX i = (INDEX)GLOBAL_ID(0) * E; i < p.numel; i += step) {
        int count = p.numel - i < E ? (int)(p.numel - i) : E;
        GET(2, self, x);
        GET(3, grad, y);
        GET(4, buffer, z);
        for (int l = 0; l < E; l++) {
            C g = n(3) * y[l] + n(2) * x[l], b = n(0) * z[l] + n(1) * g;
            x[l] = x[l] - lr * (p.nesterov ? g + n(0) * b : b);
            z[l] = b;
        }
        PUT(0, out0, x);
        PUT(1, out1, z);
    }
}

/* beta1, 1 - beta1 with the gradient's sign, beta2, 1 - beta2, eps */
KERNEL(fused_adamw_from)
(GLOBAL stored(T) * out0, GLOBAL stored(T) * out1, GLOBAL stored(T) * out2,
 GLOBAL const stored(T) * self, GLOBAL const stored(T) * grad, GLOBAL const stored(T) * exp_avg,
 GLOBAL const stored(T) * exp_avg_sq, GLOBAL const stored(F) * factors, const step_params p) {
    INDEX step = (INDEX)(GROUPS(0) * LOCAL_SIZE(0)) * E;
    C shrink = factor(0), size = factor(1), root = factor(2);
    for (INDEX i = (INDEX)GLOBAL_ID(0) * E; i < p.numel; i += step) {
        int count = p.numel - i < E ? (int)(p.numel - i) : E;
        GET(3, self, x);
        GET(4, grad, y);
        GET(5, exp_avg, z);
        GET(6, exp_avg_sq, w);
        for (int l = 0; l < E; l++) {
            z[l] = n(0) * z[l] + n(1) * y[l];
            w[l] = n(2) * w[l] + n(3) * y[l] * y[l];
            x[l] = x[l] * shrink - size * z[l] / (SQRT(w[l] * root) + n(4));
        }
        PUT(0, out0, x);
        PUT(1, out1, z);
        PUT(2, out2, w);
    }
}
