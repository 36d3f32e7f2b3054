/* What every network does with its parameters. */
#include "model.h"

#include <math.h>

tn_status model_add(model *m, tn_ints shape, int64_t fan_in, tn_device device) {
    TN_SCOPE;
    double bound = 1 / sqrt((double)fan_in);
    tn_tensor *weights = tn_uniform_(tn_empty(shape, TN_F32, device), -bound, bound);
    if (!tn_set_requires_grad(weights, true))
        return tn_error_status();
    m->parameters[m->n_parameters++] = tn_keep(weights);
    return TN_OK;
}

int64_t model_n_weights(const model *m) {
    int64_t n = 0;
    for (int i = 0; i < m->n_parameters; i++)
        n += tn_numel(m->parameters[i]);
    return n;
}

void model_finish(model *m) {
    for (int i = 0; i < m->n_parameters; i++)
        tn_drop(m->parameters[i]);
    m->n_parameters = 0;
}
