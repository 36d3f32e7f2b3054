/* The list of parameters of an optimizer, and the checks that all optimizers share.
 */
#ifndef TNI_CORE_OPTIM_PARAMS_H
#define TNI_CORE_OPTIM_PARAMS_H

#include "base/error.h"
#include "core/graph/graph.h"
#include "core/ops/operators.h"

#include <tenon/optim.h>

typedef struct tni_params {
    tn_tensor **items; /* owned references */
    uint64_t n;
    void *states; /* n of the optimizer's own, zero at first */
    size_t state_bytes;
} tni_params;

/* `call` names the function in messages. What it made before it failed is finished as the rest. */
tn_status tni_params_init(tni_params *p, const char *call, tn_tensor *const *tensors, uint64_t n,
                          size_t state_bytes);
void tni_params_finish(tni_params *p);

/* Calls `step` for every parameter that has a gradient, without recording, until one fails. */
typedef tn_status (*tni_step_fn)(void *optimizer, tn_tensor *param, tn_tensor *grad, void *state);
tn_status tni_params_step(const tni_params *p, tni_step_fn step, void *optimizer);
/* Drops every gradient. */
void tni_params_zero_grad(tni_params *p);

/* A captured step: for each parameter that takes part, what its kernels read when they run. It keeps
 * the optimizer. */
typedef struct tni_captured_item {
    void *state; /* the parameter's */
    void *host;  /* where the values of the next launch go */
    bool is_f64;
    int64_t ahead; /* steps of the parameter within the graph, up to this one */
} tni_captured_item;

typedef struct tni_captured_step {
    tni_graph_source source; /* fill and launched are the optimizer's */
    void *optimizer;
    void (*drop)(void *optimizer);
    uint64_t n;
    tni_captured_item items[];
} tni_captured_step;

/* The same as tni_params_step while the thread captures: `step` finds the new step in *place, of
 * the optimizer's, and `source` has the functions of its source. Takes over a reference to the
 * optimizer. */
tn_status tni_params_capture(const tni_params *p, tni_step_fn step, void *optimizer,
                             void (*drop)(void *optimizer), const tni_graph_source *source,
                             tni_captured_step **place);
/* Adds an item with `n` values for a parameter; the tensor of them, owned. */
tn_tensor *tni_captured_values(tni_captured_step *step, const tn_tensor *param, void *state,
                               int64_t n);
/* Writes them, in the tensor's dtype. */
void tni_captured_write(const tni_captured_item *item, const double *values, int64_t n);
/* Zeros like the parameter that replays do not write again: made now, beside the capture. */
tn_tensor *tni_captured_zeros(tn_tensor *param);

/* The number must be at least 0 (and finite). */
tn_status tni_option_at_least_zero(const char *call, const char *name, double value);

/* A tensor of saved state must look like its parameter. */
tn_status tni_check_state(const char *call, const char *name, const tn_tensor *param,
                          const tn_tensor *state);

#endif
