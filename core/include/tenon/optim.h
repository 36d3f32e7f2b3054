/* tenon/optim.h: optimizers, clipping of gradients, schedules of learning rates.
 *
 *     tn_adam_options options = tn_adamw_defaults();
 *     options.lr = 3e-4;
 *     tn_optimizer *adamw = tn_adamw_create(params, n, &options);
 *     for (int64_t t = 0; t < steps; t++) {
 *         ... tn_backward(loss) ...
 *         tn_clip_grad_norm_(params, n, 1.0, 2.0, false, NULL);
 *         tn_optimizer_set_lr(adamw, tn_lr_cosine(options.lr, t, steps, 0));
 *         tn_optimizer_step(adamw);
 *         tn_optimizer_zero_grad(adamw);
 *     }
 *     tn_optimizer_destroy(adamw);
 *
 * Formulas, names and defaults are PyTorch's (torch.optim, torch.nn.utils), but for Lion, whose
 * paper has them. Parameters may be of several devices and floating dtypes. Steps of f16 and bf16
 * are computed in f32 and rounded where parameter and state are stored.
 */
#ifndef TENON_OPTIM_H
#define TENON_OPTIM_H

#include <tenon/autograd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- an optimizer ------------------------------------------------------------------------ */

/* Keeps references to its parameters and to the state it makes for them. One thread at a time uses
 * it, and nothing else reads or writes its parameters during a step. */
typedef struct tn_optimizer tn_optimizer;

TN_API void tn_optimizer_destroy(tn_optimizer *optimizer);

/* Updates, in place and without recording, every parameter that has a gradient (tn_grad); reads
 * nothing from a device. After an error the parameters before the one that failed are updated, and
 * that one or its state may be in part. */
TN_API tn_status tn_optimizer_step(tn_optimizer *optimizer);
/* Drops the parameters' gradients: the next backward makes new ones. */
TN_API tn_status tn_optimizer_zero_grad(tn_optimizer *optimizer);

/* The learning rate of the next step; 0 of NULL. */
TN_API double tn_optimizer_lr(const tn_optimizer *optimizer);
/* At least 0 and finite. */
TN_API tn_status tn_optimizer_set_lr(tn_optimizer *optimizer, double lr);

/* ---- its state, to be saved and put back ------------------------------------------------- */

/* For each parameter the steps it has taken, and some tensors. Those of parameter i are all there
 * or none is: they are made by its first step. One that has them all put back, and its steps, goes
 * on as the one they came from, to the last bit. */

/* Tensors for each parameter: 0 for SGD without momentum; 0 of NULL. */
TN_API uint64_t tn_optimizer_n_states(const tn_optimizer *optimizer);
/* PyTorch's name of tensor k ("exp_avg"), which the optimizer owns; NULL with an error. */
TN_API const char *tn_optimizer_state_name(const tn_optimizer *optimizer, uint64_t k);
/* The tensor of that name of parameter i, borrowed; NULL, without an error, before its first step. */
TN_API tn_tensor *tn_optimizer_state(const tn_optimizer *optimizer, uint64_t i, const char *name);
/* Puts one back: kept, not copied, and written by steps; of the parameter's shape, dtype and device.
 * NULL: as before the first step. */
TN_API tn_status tn_optimizer_set_state(tn_optimizer *optimizer, uint64_t i, const char *name,
                                        tn_tensor *state);
/* Steps that parameter i has taken; -1 with an error. */
TN_API int64_t tn_optimizer_steps(const tn_optimizer *optimizer, uint64_t i);
TN_API tn_status tn_optimizer_set_steps(tn_optimizer *optimizer, uint64_t i, int64_t steps);

/* ---- the optimizers ---------------------------------------------------------------------- */

/* Each tn_NAME_create takes n parameters, leaves of a floating dtype, each given once, and options
 * (NULL: the defaults, of tn_NAME_defaults), which it reads and does not keep. NULL with an error.
 * Below, g is the gradient, negated where `maximize` is set, p the parameter; weight decay as an L2
 * penalty is g += weight_decay * p. Numbers in brackets are the defaults. */

/* Stochastic gradient descent (momentum: Sutskever et al., 2013).
 *
 *     b = momentum * b + (1 - dampening) * g      (the first: b = g)
 *     p -= lr * (nesterov ? g + momentum * b : b)
 *
 * State, with momentum: momentum_buffer. */
typedef struct tn_sgd_options {
    uint64_t struct_size;
    double lr;           /* [1e-3] */
    double momentum;     /* [0] */
    double dampening;    /* [0] of the momentum; not of its first step */
    double weight_decay; /* [0] L2 penalty */
    bool nesterov;       /* [false] needs a momentum and no dampening */
    bool maximize;       /* [false] go up the gradient */
} tn_sgd_options;

static inline tn_sgd_options tn_sgd_defaults(void) {
    tn_sgd_options o = {sizeof(tn_sgd_options), 1e-3, 0, 0, 0, false, false};
    return o;
}
TN_API tn_optimizer *tn_sgd_create(tn_tensor *const *params, uint64_t n,
                                   const tn_sgd_options *options);

/* Adam (Kingma and Ba, arXiv:1412.6980), and AdamW, whose weight decay is decoupled from the
 * gradient (Loshchilov and Hutter, arXiv:1711.05101). In step t, from 1:
 *
 *     AdamW: p *= 1 - lr * weight_decay           Adam: L2 penalty
 *     m = beta1 * m + (1 - beta1) * g
 *     v = beta2 * v + (1 - beta2) * g * g
 *     x = max(x, v) where amsgrad is set (Reddi et al., arXiv:1904.09237), else v
 *     p -= lr * (m / (1 - beta1^t)) / (sqrt(x / (1 - beta2^t)) + eps)
 *
 * State: exp_avg (m), exp_avg_sq (v); with amsgrad max_exp_avg_sq (x). */
typedef struct tn_adam_options {
    uint64_t struct_size;
    double lr;           /* [1e-3] */
    double beta1;        /* [0.9] in [0, 1) */
    double beta2;        /* [0.999] in [0, 1) */
    double eps;          /* [1e-8] */
    double weight_decay; /* [0 for Adam, 1e-2 for AdamW] */
    bool maximize;       /* [false] */
    bool amsgrad;        /* [false] */
} tn_adam_options;

static inline tn_adam_options tn_adam_defaults(void) {
    tn_adam_options o = {sizeof(tn_adam_options), 1e-3, 0.9, 0.999, 1e-8, 0, false, false};
    return o;
}
static inline tn_adam_options tn_adamw_defaults(void) {
    tn_adam_options o = {sizeof(tn_adam_options), 1e-3, 0.9, 0.999, 1e-8, 1e-2, false, false};
    return o;
}
TN_API tn_optimizer *tn_adam_create(tn_tensor *const *params, uint64_t n,
                                    const tn_adam_options *options);
TN_API tn_optimizer *tn_adamw_create(tn_tensor *const *params, uint64_t n,
                                     const tn_adam_options *options);

/* RMSprop (Hinton's lectures; centered: Graves, arXiv:1308.0850).
 *
 *     v = alpha * v + (1 - alpha) * g * g
 *     a = alpha * a + (1 - alpha) * g             where centered is set, else 0
 *     r = g / (sqrt(v - a * a) + eps)
 *     b = momentum * b + r                        with momentum, else r
 *     p -= lr * b
 *
 * State: square_avg (v); with momentum momentum_buffer (b); with centered grad_avg (a). */
typedef struct tn_rmsprop_options {
    uint64_t struct_size;
    double lr;           /* [1e-2] */
    double alpha;        /* [0.99] at least 0, and at most 1 */
    double eps;          /* [1e-8] */
    double weight_decay; /* [0] L2 penalty */
    double momentum;     /* [0] */
    bool centered;       /* [false] */
    bool maximize;       /* [false] */
} tn_rmsprop_options;

static inline tn_rmsprop_options tn_rmsprop_defaults(void) {
    tn_rmsprop_options o = {sizeof(tn_rmsprop_options), 1e-2, 0.99, 1e-8, 0, 0, false, false};
    return o;
}
TN_API tn_optimizer *tn_rmsprop_create(tn_tensor *const *params, uint64_t n,
                                       const tn_rmsprop_options *options);

/* Adagrad (Duchi, Hazan and Singer, 2011). In step t, from 1:
 *
 *     s += g * g                                  s begins as initial_accumulator_value
 *     p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)
 *
 * State: sum (s). */
typedef struct tn_adagrad_options {
    uint64_t struct_size;
    double lr;                        /* [1e-2] */
    double lr_decay;                  /* [0] */
    double weight_decay;              /* [0] L2 penalty */
    double initial_accumulator_value; /* [0] */
    double eps;                       /* [1e-10] */
    bool maximize;                    /* [false] */
} tn_adagrad_options;

static inline tn_adagrad_options tn_adagrad_defaults(void) {
    tn_adagrad_options o = {sizeof(tn_adagrad_options), 1e-2, 0, 0, 0, 1e-10, false};
    return o;
}
TN_API tn_optimizer *tn_adagrad_create(tn_tensor *const *params, uint64_t n,
                                       const tn_adagrad_options *options);

/* Lion (Chen et al., arXiv:2302.06675, algorithm 2), with decoupled weight decay.
 *
 *     p *= 1 - lr * weight_decay
 *     p -= lr * sign(beta1 * m + (1 - beta1) * g)
 *     m = beta2 * m + (1 - beta2) * g
 *
 * State: exp_avg (m). */
typedef struct tn_lion_options {
    uint64_t struct_size;
    double lr;           /* [1e-4] */
    double beta1;        /* [0.9] in [0, 1) */
    double beta2;        /* [0.99] in [0, 1) */
    double weight_decay; /* [0] */
    bool maximize;       /* [false] */
} tn_lion_options;

static inline tn_lion_options tn_lion_defaults(void) {
    tn_lion_options o = {sizeof(tn_lion_options), 1e-4, 0.9, 0.99, 0, false};
    return o;
}
TN_API tn_optimizer *tn_lion_create(tn_tensor *const *params, uint64_t n,
                                    const tn_lion_options *options);

/* ---- clipping of gradients --------------------------------------------------------------- */

/* Scales the gradients of n parameters (those that have one), in place, by
 * min(max_norm / (norm + 1e-6), 1), where norm is the norm_type-norm (1, 2 or INFINITY) of all of
 * them as one vector: torch.nn.utils.clip_grad_norm_. What is scaled where norm is not finite is
 * not finite either. With error_if_nonfinite such a norm is TN_ERR_INVALID_ARGUMENT and nothing is
 * scaled; that alone reads from the device, and waits for it. *out_total_norm (unless NULL): the norm
 * before, of no dimensions, on the device of the first gradient (the default one where there is none), owned
 * by the scope; NULL with an error. */
TN_API tn_status tn_clip_grad_norm_(tn_tensor *const *params, uint64_t n, double max_norm,
                                    double norm_type, bool error_if_nonfinite,
                                    tn_tensor **out_total_norm);
/* Clamps the elements of the gradients into [-clip_value, clip_value], in place. */
TN_API tn_status tn_clip_grad_value_(tn_tensor *const *params, uint64_t n, double clip_value);

/* ---- scaling of losses ------------------------------------------------------------------- */

/* For gradients in f16 (tenon/autocast.h): the loss is multiplied by a factor that keeps them above
 * f16's smallest numbers, the gradients are divided by it before the step, and a step whose gradients
 * are not all finite is left out. The factor follows: torch.amp.GradScaler.
 *
 *     tn_backward(tn_grad_scaler_scale(scaler, loss));
 *     tn_grad_scaler_unscale_(scaler, adamw);           only for what looks at gradients, as clipping
 *     tn_grad_scaler_step(scaler, adamw, NULL);
 *     tn_grad_scaler_update(scaler);                    once, after the steps of all optimizers
 *
 * One thread at a time uses it. */
typedef struct tn_grad_scaler tn_grad_scaler;

typedef struct tn_grad_scaler_options {
    uint64_t struct_size;
    double init_scale;       /* [65536] the factor at first */
    double growth_factor;    /* [2] above 1: of `growth_interval` finite steps in a row */
    double backoff_factor;   /* [0.5] in (0, 1): of a step that is left out */
    int64_t growth_interval; /* [2000] at least 1 */
} tn_grad_scaler_options;

static inline tn_grad_scaler_options tn_grad_scaler_defaults(void) {
    tn_grad_scaler_options o = {sizeof(tn_grad_scaler_options), 65536, 2, 0.5, 2000};
    return o;
}
/* NULL with an error. options NULL: the defaults. */
TN_API tn_grad_scaler *tn_grad_scaler_create(const tn_grad_scaler_options *options);
TN_API void tn_grad_scaler_destroy(tn_grad_scaler *scaler);

/* loss times the factor, owned by the scope; recorded. A loss in f16 or bf16 is scaled in f32. */
TN_API tn_tensor *tn_grad_scaler_scale(tn_grad_scaler *scaler, tn_tensor *loss);
/* Looks whether the gradients of the optimizer's parameters are finite, for which it waits for the
 * device once, and divides them by the factor, in place. Once before each step, by tn_grad_scaler_step
 * where nobody did it before. After an error they are scaled as before. Gradients in f16, which would
 * be below its numbers again, are TN_ERR_DTYPE: keep parameters in f32. */
TN_API tn_status tn_grad_scaler_unscale_(tn_grad_scaler *scaler, tn_optimizer *optimizer);
/* tn_optimizer_step, unless a gradient is not finite. *out_stepped (unless NULL) says which. */
TN_API tn_status tn_grad_scaler_step(tn_grad_scaler *scaler, tn_optimizer *optimizer,
                                     bool *out_stepped);
/* The factor of the next step, after those of all optimizers. */
TN_API tn_status tn_grad_scaler_update(tn_grad_scaler *scaler);

/* Its state, to be saved and put back: the factor (0 of NULL), and finite steps in a row since it
 * last changed (-1 of NULL). */
TN_API double tn_grad_scaler_factor(const tn_grad_scaler *scaler);
TN_API int64_t tn_grad_scaler_good_steps(const tn_grad_scaler *scaler);
/* A factor above 0 and finite, and steps from 0. */
TN_API tn_status tn_grad_scaler_set(tn_grad_scaler *scaler, double factor, int64_t good_steps);

/* ---- schedules of learning rates --------------------------------------------------------- */

/* The rate of step t, from 0, for a base rate `lr`: pure functions, so that a schedule goes on from
 * any step, to give to tn_optimizer_set_lr before the step. They are the closed forms of PyTorch's
 * torch.optim.lr_scheduler and have no state. Arguments out of range: NaN with an error, which
 * tn_optimizer_set_lr passes on. Any thread. */

/* lr * gamma^floor(t / step_size)                                                       (StepLR) */
TN_API double tn_lr_step(double lr, int64_t t, int64_t step_size, double gamma);
/* lr * gamma^(milestones at or before t); n of them, ascending                      (MultiStepLR) */
TN_API double tn_lr_multi_step(double lr, int64_t t, const int64_t *milestones, uint64_t n,
                               double gamma);
/* lr * gamma^t                                                                    (ExponentialLR) */
TN_API double tn_lr_exponential(double lr, int64_t t, double gamma);
/* From lr * start to lr * end in `steps` equal steps, then lr * end: a warm-up     (LinearLR) */
TN_API double tn_lr_linear(double lr, int64_t t, int64_t steps, double start, double end);
/* Half a cosine from lr to eta_min in `steps` steps, and back up after them   (CosineAnnealingLR) */
TN_API double tn_lr_cosine(double lr, int64_t t, int64_t steps, double eta_min);
/* The same from lr again after every period; the first has `steps` steps, each later one `factor`
 * times (at least 1) those of the one before                        (CosineAnnealingWarmRestarts) */
TN_API double tn_lr_cosine_restarts(double lr, int64_t t, int64_t steps, int64_t factor,
                                    double eta_min);

/* From lr / div_factor up to lr and down to lr / div_factor / final_div_factor   (OneCycleLR, rates
 * only: the momentum stays). t is below total_steps. */
typedef struct tn_one_cycle_options {
    uint64_t struct_size;
    int64_t total_steps;     /* [0] must be set, at least 1 */
    double pct_start;        /* [0.3] share of the steps that go up, in [0, 1] */
    double div_factor;       /* [25] */
    double final_div_factor; /* [1e4] */
    bool linear;             /* [false] straight lines instead of half cosines */
    bool three_phase;        /* [false] down to lr / div_factor as fast as up, then to the end */
} tn_one_cycle_options;

static inline tn_one_cycle_options tn_one_cycle_defaults(void) {
    tn_one_cycle_options o = {sizeof(tn_one_cycle_options), 0, 0.3, 25, 1e4, false, false};
    return o;
}
TN_API double tn_lr_one_cycle(double lr, int64_t t, const tn_one_cycle_options *options);

#ifdef __cplusplus
}
#endif

#endif /* TENON_OPTIM_H */
