/* What the modules share: parameters with their first values, and errors that name the module. */
#ifndef TNI_NN_MODULES_MODULE_H
#define TNI_NN_MODULES_MODULE_H

#include "nn/visitor.h"

#include <tenon/ops.h>

/* ---- first values ------------------------------------------------------------------------ */

/* New parameters, kept; NULL with an error. */
tn_tensor *tnn_uniform(tn_ints shape, double bound, tn_device device, tn_dtype dtype);
tn_tensor *tnn_constant(tn_ints shape, double value, tn_device device, tn_dtype dtype);

/* The bound of torch.nn's layers: He et al., 2015, kaiming_uniform with a = sqrt(5), where
 * bound = gain * sqrt(3 / fan_in) and gain = sqrt(2 / (1 + a^2)), is 1 / sqrt(fan_in). */
double tnn_fan_in_bound(double fan_in);

/* ---- errors ------------------------------------------------------------------------------ */

/* "linear1", or where no visitor was there the call's own name for it. */
const char *tnn_name(const tn_nn_module *module);

/* "[2, 3]" */
typedef struct tnn_text {
    char text[128];
} tnn_text;
tnn_text tnn_shape(const tn_tensor *t);

/* Can the module compute x? false without an error where x is NULL; with one where the module is,
 * or has no weight. */
#define TNN_READY(call, m, has_weight, x) \
    tnn_ready(call, (m) ? &(m)->module : NULL, (m) && (has_weight), x)
bool tnn_ready(const char *call, const tn_nn_module *module, bool has_weight, const tn_tensor *x);

/* x, to be tried as the input of operators, whose error is to name the module: after a failure
 * tnn_named puts the name before the message, unless an older error stands. */
bool tnn_error_is_clear(void);
tn_tensor *tnn_named(const tn_nn_module *module, bool was_clear, tn_tensor *result);

#endif
