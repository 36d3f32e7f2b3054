/* The negative log likelihood of target classes, and its gradient. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

void tc_reference_nll_loss(tc_invocation *call) {
    const tc_operand *self = &call->args[TN_ARG_nll_loss_self].tensor;
    const tc_operand *target = &call->args[TN_ARG_nll_loss_target].tensor;
    int64_t n = self->shape.sizes[0], n_classes = self->shape.sizes[1], counted = 0;
    tc_real sum = 0, magnitude = 0, u = tc_u(call);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = target->values[i].i;
        if (k == call->args[TN_ARG_nll_loss_ignore_index].i)
            continue;
        tc_real x = self->values[i * n_classes + k].f;
        sum -= x;
        magnitude += isfinite(x) ? fabsl(x) : 0;
        counted++;
    }
    bool mean = call->args[TN_ARG_nll_loss_mean].boolean;
    tc_real by = mean ? (tc_real)counted : 1;
    tc_expected *e = &call->outs[0];
    e->tensor.values[0].f = sum / by;
    e->rounding[0] = tc_sum_steps(call, counted) * u * magnitude / by;
    if (mean && isfinite(sum)) /* the quotient, and the number of targets in f32 */
        e->error[0] = 4 * u * fabsl(sum) / by;
    tc_out(call, 1)[0].i = counted;
}

void tc_reference_nll_loss_backward(tc_invocation *call) {
    const tc_operand *target = &call->args[TN_ARG_nll_loss_backward_target].tensor;
    int64_t n_classes = call->args[TN_ARG_nll_loss_backward_n_classes].i;
    bool mean = call->args[TN_ARG_nll_loss_backward_mean].boolean;
    tc_real share = -tc_in(call, TN_ARG_nll_loss_backward_grad_output)[0].f;
    if (mean)
        share /= (tc_real)tc_in(call, TN_ARG_nll_loss_backward_total_weight)[0].i;
    for (int64_t i = 0; i < target->shape.numel; i++) {
        int64_t k = target->values[i].i;
        if (k == call->args[TN_ARG_nll_loss_backward_ignore_index].i)
            continue;
        tc_out(call, 0)[i * n_classes + k].f = share;
        call->outs[0].error[i * n_classes + k] =
            mean && isfinite(share) ? 4 * tc_u(call) * fabsl(share) : 0;
    }
}
