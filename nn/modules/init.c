/* First values that a program chooses instead of the modules' own. */
#include "nn/modules/module.h"

#include <math.h>
#include <tenon/autograd.h>

/* gain / sqrt(fan); negative with an error, or for NULL without one. */
static double deviation(const char *call, const tn_tensor *weight, tn_nn_fan fan, double gain) {
    if (!weight)
        return -1;
    tn_status status = TN_OK;
    if (weight == TN_NONE)
        status = tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: the weight is TN_NONE", call);
    else if (fan != TN_NN_FAN_IN && fan != TN_NN_FAN_OUT)
        status = tn_fail(TN_ERR_INVALID_ARGUMENT,
                         "%s: fan is %d; it must be TN_NN_FAN_IN or TN_NN_FAN_OUT", call, (int)fan);
    else if (!isfinite(gain) || gain < 0)
        status = tn_fail(TN_ERR_INVALID_ARGUMENT,
                         "%s: gain is %g; it must be finite and at least 0", call, gain);
    else if (tn_rank(weight) < 2)
        status = tn_fail(TN_ERR_SHAPE, "%s: the weight is %s; it must be [out, in, sizes ...]",
                         call, tnn_shape(weight).text);
    if (status != TN_OK)
        return -1;
    double n = (double)tn_size(weight, fan == TN_NN_FAN_OUT ? 0 : 1);
    for (int64_t i = 2; i < tn_rank(weight); i++)
        n *= (double)tn_size(weight, i);
    return n > 0 ? gain / sqrt(n) : 0; /* no elements, none to fill */
}

tn_tensor *tn_nn_kaiming_normal_(tn_tensor *weight, tn_nn_fan fan, double gain) {
    TN_NO_GRAD;
    double s = deviation("tn_nn_kaiming_normal_", weight, fan, gain);
    return s < 0 ? NULL : tn_normal_(weight, 0, s);
}

tn_tensor *tn_nn_kaiming_uniform_(tn_tensor *weight, tn_nn_fan fan, double gain) {
    TN_NO_GRAD;
    double s = deviation("tn_nn_kaiming_uniform_", weight, fan, gain) * sqrt(3);
    return s < 0 ? NULL : tn_uniform_(weight, -s, s);
}
