/* tenon/optim.h: optimizers.
 *
 * An optimizer keeps references to its parameters and to the state it makes for them. A step reads
 * each parameter's gradient (tn_grad) and updates the parameter in place, without recording;
 * parameters that have no gradient are left out, as in PyTorch, whose formulas and defaults these
 * are. One thread at a time uses an optimizer, and nothing else reads or writes its parameters
 * during a step.
 */
#ifndef TENON_OPTIM_H
#define TENON_OPTIM_H

#include <tenon/autograd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- stochastic gradient descent --------------------------------------------------------- */

typedef struct tn_sgd tn_sgd;

typedef struct tn_sgd_options {
    uint64_t struct_size;
    double lr;           /* [1e-3] */
    double momentum;     /* [0] */
    double dampening;    /* [0] of the momentum; not of its first step */
    double weight_decay; /* [0] as an L2 penalty in the gradient */
    bool nesterov;       /* [false] needs a momentum and no dampening */
    bool maximize;       /* [false] go up the gradient */
} tn_sgd_options;

/* The defaults, to change what should be different. */
static inline tn_sgd_options tn_sgd_defaults(void) {
    tn_sgd_options o = {sizeof(tn_sgd_options), 1e-3, 0, 0, 0, false, false};
    return o;
}

/* Parameters are leaves of a floating dtype, each given once. options NULL: the defaults. NULL with
 * an error. */
TN_API tn_sgd *tn_sgd_create(tn_tensor *const *params, uint64_t n, const tn_sgd_options *options);
TN_API void tn_sgd_destroy(tn_sgd *sgd);

/* Updates every parameter that has a gradient. After an error those before the one that failed are
 * updated. */
TN_API tn_status tn_sgd_step(tn_sgd *sgd);
/* Drops the parameters' gradients: the next backward makes new ones. */
TN_API tn_status tn_sgd_zero_grad(tn_sgd *sgd);

TN_API double tn_sgd_lr(const tn_sgd *sgd);
TN_API tn_status tn_sgd_set_lr(tn_sgd *sgd, double lr);

/* The momentum buffer of parameter i, borrowed; NULL, without an error, before its first step. */
TN_API tn_tensor *tn_sgd_momentum_buffer(const tn_sgd *sgd, uint64_t i);
/* Puts back a saved one (kept; shape, dtype and device of the parameter); NULL: as before the first
 * step. */
TN_API tn_status tn_sgd_set_momentum_buffer(tn_sgd *sgd, uint64_t i, tn_tensor *buffer);

/* ---- Adam with decoupled weight decay ---------------------------------------------------- */

typedef struct tn_adamw tn_adamw;

typedef struct tn_adamw_options {
    uint64_t struct_size;
    double lr;           /* [1e-3] */
    double beta1;        /* [0.9] */
    double beta2;        /* [0.999] */
    double eps;          /* [1e-8] */
    double weight_decay; /* [1e-2] */
    bool maximize;       /* [false] */
} tn_adamw_options;

static inline tn_adamw_options tn_adamw_defaults(void) {
    tn_adamw_options o = {sizeof(tn_adamw_options), 1e-3, 0.9, 0.999, 1e-8, 1e-2, false};
    return o;
}

/* As for tn_sgd. */
TN_API tn_adamw *tn_adamw_create(tn_tensor *const *params, uint64_t n,
                                 const tn_adamw_options *options);
TN_API void tn_adamw_destroy(tn_adamw *adamw);
TN_API tn_status tn_adamw_step(tn_adamw *adamw);
TN_API tn_status tn_adamw_zero_grad(tn_adamw *adamw);
TN_API double tn_adamw_lr(const tn_adamw *adamw);
TN_API tn_status tn_adamw_set_lr(tn_adamw *adamw, double lr);

/* The state of one parameter: steps taken and, once that is not 0, the running averages of the
 * gradient and of its square. */
typedef struct tn_adamw_state {
    uint64_t struct_size;
    int64_t step;
    tn_tensor *exp_avg;
    tn_tensor *exp_avg_sq;
} tn_adamw_state;

/* Borrowed tensors into *out, whose struct_size the caller has set. */
TN_API tn_status tn_adamw_get_state(const tn_adamw *adamw, uint64_t i, tn_adamw_state *out);
/* Puts a saved state back; keeps the tensors. */
TN_API tn_status tn_adamw_set_state(tn_adamw *adamw, uint64_t i, const tn_adamw_state *state);

#ifdef __cplusplus
}
#endif

#endif /* TENON_OPTIM_H */
