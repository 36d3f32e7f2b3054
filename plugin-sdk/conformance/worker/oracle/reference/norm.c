/* Layer normalisation: J. Ba et al., arXiv:1607.06450. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

/* Elements of the last n_dims dimensions. */
static int64_t row_length(const tc_shape *s, int64_t n_dims) {
    int64_t n = 1;
    for (int32_t d = s->rank - (int32_t)n_dims; d < s->rank; d++)
        n *= s->sizes[d];
    return n;
}

static tc_real weight_at(const tc_value *weight, int64_t k, tc_real otherwise) {
    return weight->none ? otherwise : weight->tensor.values[k].f;
}

void tc_reference_layer_norm(tc_invocation *call) {
    const tc_operand *input = &call->args[TN_ARG_layer_norm_input].tensor;
    const tc_value *weight = &call->args[TN_ARG_layer_norm_weight],
                   *bias = &call->args[TN_ARG_layer_norm_bias];
    int64_t n = row_length(&input->shape, call->args[TN_ARG_layer_norm_n_dims].i);
    tc_real eps = call->args[TN_ARG_layer_norm_eps].f, u = tc_u(call),
            steps = tc_sum_steps(call, n) + 4;
    for (int64_t row = 0; row < input->shape.numel / n; row++) {
        const tc_number *x = input->values + row * n;
        tc_real mean = 0, variance = 0, magnitude = 0;
        for (int64_t k = 0; k < n; k++) {
            mean += x[k].f / (tc_real)n;
            magnitude += fabsl(x[k].f) / (tc_real)n;
        }
        for (int64_t k = 0; k < n; k++)
            variance += (x[k].f - mean) * (x[k].f - mean) / (tc_real)n;
        tc_real rstd = 1 / sqrtl(variance + eps);
        /* The mean is off by `off`; so the variance by 2 off sigma + off^2 and its own sum; rstd by
         * half of that, relatively. */
        tc_real off = steps * u * magnitude;
        tc_real relative =
            ((2 * off * sqrtl(variance) + off * off) / (variance + eps) + 2 * steps * u) / 2 +
            8 * u;
        tc_out(call, 1)[row].f = mean;
        call->outs[1].rounding[row] = off;
        tc_out(call, 2)[row].f = rstd;
        call->outs[2].rounding[row] = relative * rstd;
        for (int64_t k = 0; k < n; k++) {
            int64_t at = row * n + k;
            tc_real w = weight_at(weight, k, 1), b = weight_at(bias, k, 0), d = x[k].f - mean;
            tc_out(call, 0)[at].f = d * rstd * w + b;
            call->outs[0].rounding[at] = fabsl(w) * rstd *
                                             ((off + u * (fabsl(x[k].f) + fabsl(mean))) * 2 +
                                              fabsl(d) * (relative + 4 * u)) +
                                         2 * u * fabsl(b);
        }
    }
}

void tc_reference_layer_norm_backward(tc_invocation *call) {
    const tc_operand *input = &call->args[TN_ARG_layer_norm_backward_input].tensor;
    const tc_number *grad = tc_in(call, TN_ARG_layer_norm_backward_grad_output);
    const tc_number *mean = tc_in(call, TN_ARG_layer_norm_backward_mean);
    const tc_number *rstd = tc_in(call, TN_ARG_layer_norm_backward_rstd);
    const tc_value *weight = &call->args[TN_ARG_layer_norm_backward_weight];
    int64_t n = row_length(&input->shape, call->args[TN_ARG_layer_norm_backward_n_dims].i);
    tc_real u = tc_u(call), steps = tc_sum_steps(call, n) + 8;
    for (int64_t row = 0; row < input->shape.numel / n; row++) {
        tc_real sum = 0, sum_x = 0, size = 0,
                size_x = 0; /* of g and g * xhat, and of their moduli */
        for (int64_t k = 0; k < n; k++) {
            int64_t at = row * n + k;
            tc_real g = grad[at].f * weight_at(weight, k, 1);
            tc_real xhat = (input->values[at].f - mean[row].f) * rstd[row].f;
            sum += g / (tc_real)n;
            sum_x += g * xhat / (tc_real)n;
            size += fabsl(g) / (tc_real)n;
            size_x += fabsl(g) * (fabsl(input->values[at].f) + fabsl(mean[row].f)) *
                      fabsl(rstd[row].f) / (tc_real)n;
        }
        for (int64_t k = 0; k < n; k++) {
            int64_t at = row * n + k;
            tc_real g = grad[at].f * weight_at(weight, k, 1);
            tc_real x = input->values[at].f, xhat = (x - mean[row].f) * rstd[row].f;
            tc_real reach = (fabsl(x) + fabsl(mean[row].f)) * fabsl(rstd[row].f);
            tc_out(call, 0)[at].f = rstd[row].f * (g - sum - xhat * sum_x);
            call->outs[0].rounding[at] =
                u * fabsl(rstd[row].f) * (4 * fabsl(g) + steps * size + steps * reach * size_x);
        }
    }
}
