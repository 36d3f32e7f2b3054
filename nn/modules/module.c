/* What the modules share; see module.h. */
#include "nn/modules/module.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

tn_tensor *tnn_uniform(tn_ints shape, double bound, tn_device device, tn_dtype dtype) {
    TN_SCOPE;
    return tn_nn_parameter(tn_uniform_(tn_empty(shape, dtype, device), -bound, bound));
}

tn_tensor *tnn_constant(tn_ints shape, double value, tn_device device, tn_dtype dtype) {
    TN_SCOPE;
    return tn_nn_parameter(tn_full(shape, tn_float(value), dtype, device));
}

double tnn_fan_in_bound(double fan_in) {
    return 1 / sqrt(fan_in);
}

const char *tnn_name(const tn_nn_module *module) {
    return module->name[0] ? module->name : "a module without a name";
}

tnn_text tnn_shape(const tn_tensor *t) {
    tnn_text out = {"["};
    tn_ints sizes = tn_sizes(t);
    size_t at = 1;
    for (int64_t i = 0; i < sizes.n && at < sizeof out.text; i++)
        at += (size_t)snprintf(out.text + at, sizeof out.text - at, "%s%" PRId64, i ? ", " : "",
                               sizes.data[i]);
    if (at < sizeof out.text)
        snprintf(out.text + at, sizeof out.text - at, "]");
    return out;
}

bool tnn_ready(const char *call, const tn_nn_module *module, bool has_weight, const tn_tensor *x) {
    if (!x)
        return false;
    if (!module)
        tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: the module is NULL", call);
    else if (!has_weight || x == TN_NONE)
        tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s: %s", call, tnn_name(module),
                has_weight ? "the input is TN_NONE" : "it has no weight; initialise it before");
    return module && has_weight && x != TN_NONE;
}

bool tnn_error_is_clear(void) {
    return tn_error_status() == TN_OK;
}

tn_tensor *tnn_named(const tn_nn_module *module, bool was_clear, tn_tensor *result) {
    if (result || !was_clear || tn_error_status() == TN_OK)
        return result;
    /* The message is gone with the next failure. */
    char message[1024];
    snprintf(message, sizeof message, "%s", tn_error_message());
    tn_status status = tn_error_status();
    tn_error_clear();
    tn_fail(status, "%s: %s", tnn_name(module), message);
    return NULL;
}
