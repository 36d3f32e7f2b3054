/* What all optimizers share: the list of parameters, their state, and steps, called and captured. An
 * optimizer itself is its options, the names of its state and two functions.
 */
#ifndef TNI_CORE_OPTIM_OPTIMIZER_H
#define TNI_CORE_OPTIM_OPTIMIZER_H

#include "base/error.h"
#include "core/graph/graph.h"
#include "core/ops/update.h"

#include <tenon/optim.h>

enum { TNI_OPTIMIZER_STATES = 3, TNI_OPTIMIZER_FACTORS = 3 };

/* The state of one parameter. */
typedef struct tni_param_state {
    tn_tensor *tensors[TNI_OPTIMIZER_STATES]; /* owned, as named; NULL before the first step */
    int64_t steps;                            /* taken */
} tni_param_state;

/* One parameter's part of a step. */
typedef struct tni_param_step {
    tn_tensor *param, *grad;
    tn_tensor *const *states;
    bool is_first;    /* the states were made for this step */
    int64_t number;   /* from 1; 0 where the step is captured */
    tn_tensor *later; /* of what `factors` gives, where the step is captured; else NULL */
    double now[TNI_OPTIMIZER_FACTORS];
} tni_param_step;

typedef struct tni_algorithm {
    /* Numbers that change from step to step, in f64: at most TNI_OPTIMIZER_FACTORS. */
    uint32_t n_factors;
    void (*factors)(const tn_optimizer *optimizer, int64_t number, double *out);
    /* Called without a scope and with gradients off. */
    tn_status (*update)(const tn_optimizer *optimizer, const tni_param_step *step);
} tni_algorithm;

struct tn_optimizer {
    const tni_algorithm *algorithm;
    uint64_t n;
    tn_tensor **params; /* owned references */
    tni_param_state *states;
    double lr;
    _Atomic uint32_t refs; /* the program's, and of graphs that captured a step */
    /* Set by the constructor: */
    uint32_t n_states;
    const char *names[TNI_OPTIMIZER_STATES];
    double initial; /* of every element of the state */
    union {
        struct {
            uint64_t struct_size;
            double lr;
        } any; /* what each begins with */
        tn_sgd_options sgd;
        tn_adam_options adam;
        tn_rmsprop_options rmsprop;
        tn_adagrad_options adagrad;
        tn_lion_options lion;
    } options; /* the rate is `lr` above */
};

/* An optimizer without state, with the options of the given size; `call` names the function in
 * messages. */
tn_optimizer *tni_optimizer_create(const char *call, const tni_algorithm *algorithm,
                                   tn_tensor *const *params, uint64_t n, const void *options,
                                   size_t size);
static inline void tni_optimizer_add_state(tn_optimizer *o, const char *name) {
    o->names[o->n_states++] = name;
}

/* The factor i of the step. */
tni_factor tni_step_factor(tni_temps *temps, const tni_param_step *step, int64_t i);
/* Begins the arithmetic of a step: t[0] parameter, t[1] gradient, then the states. */
void tni_step_begin(tni_update *u, tni_temps *temps, const tn_optimizer *o,
                    const tni_param_step *step);

/* The parameter's state as a step wants it: there, or made. */
tn_status tni_states_ready(tn_optimizer *o, uint64_t i, bool *out_made);
void tni_states_drop(const tn_optimizer *o, tni_param_state *state);

/* A step while the thread captures. */
tn_status tni_optimizer_capture(tn_optimizer *o);

/* ---- options ----------------------------------------------------------------------------- */

typedef struct tni_option {
    const char *name;
    size_t offset, size;
    enum {
        TNI_OPTION_ANY,
        TNI_OPTION_AT_LEAST_ZERO, /* a double, and finite */
        TNI_OPTION_SHARE,         /* in [0, 1] */
        TNI_OPTION_BETA           /* in [0, 1) */
    } range;
} tni_option;

#define TNI_OPTION(type, member, range_) \
    { #member, offsetof(type, member), TN_SIZEOF_MEMBER(type, member), TNI_OPTION_##range_ }

/* Copies the members that the caller's struct has (NULL: none) over the defaults in `out`, and checks
 * them in the order of the table, which {0} ends. */
tn_status tni_options_read(const char *call, const tni_option *table, const void *given, void *out);
/* One number that must be at least 0 and finite. */
tn_status tni_option_at_least_zero(const char *call, const char *name, double value);

#endif
