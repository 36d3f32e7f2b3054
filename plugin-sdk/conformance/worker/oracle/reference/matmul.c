/* Matrix products. The sum over K may be taken in any order: K u sum |a| |b|. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

/* out[b] (+)= factor * x[b] @ y[b], with x [.., M, K], y [.., K, N]. */
static void multiply(tc_invocation *call, const tc_operand *x, const tc_operand *y,
                     tc_number factor) {
    tc_expected *e = &call->outs[0];
    int32_t rank = x->shape.rank;
    int64_t m = x->shape.sizes[rank - 2], depth = x->shape.sizes[rank - 1];
    int64_t n = y->shape.sizes[rank - 1], batch = x->shape.numel / (m * depth);
    tc_real steps = (tc_real)(depth + 2 + (factor.f == 1 ? 0 : 2)) * tc_u(call);
    for (int64_t at = 0; at < batch * m * n; at++) {
        int64_t b = at / (m * n), row = at / n % m, column = at % n;
        tc_number sum = {0, 0};
        tc_real magnitude = 0;
        for (int64_t k = 0; k < depth; k++) {
            tc_number p = x->values[(b * m + row) * depth + k],
                      q = y->values[(b * depth + k) * n + column];
            sum.f += p.f * q.f;
            sum.i = tc_wrap_add(sum.i, tc_wrap_mul(p.i, q.i));
            magnitude += fabsl(p.f * q.f);
        }
        tc_number *r = &e->tensor.values[at];
        r->f += factor.f * sum.f;
        r->i = tc_wrap_add(r->i, tc_wrap_mul(factor.i, sum.i));
        if (isfinite(magnitude))
            e->rounding[at] += steps * fabsl(factor.f) * magnitude;
    }
}

void tc_reference_bmm(tc_invocation *call) {
    multiply(call, &call->args[TN_ARG_bmm_self].tensor, &call->args[TN_ARG_bmm_mat2].tensor,
             (tc_number){1, 1});
}

void tc_reference_addmm(tc_invocation *call) {
    const tc_value *beta = &call->args[TN_ARG_addmm_beta], *alpha = &call->args[TN_ARG_addmm_alpha];
    tc_expected *e = &call->outs[0];
    bool read =
        tc_floating(call) ? beta->f != 0 : beta->i != 0; /* with beta 0, NaN does not leak */
    for (int64_t i = 0; read && i < e->tensor.shape.numel; i++) {
        tc_number x = tc_in(call, 0)[i];
        e->tensor.values[i] = (tc_number){beta->f * x.f, tc_wrap_mul(beta->i, x.i)};
        if (isfinite(x.f))
            e->rounding[i] = 4 * tc_u(call) * fabsl(beta->f * x.f);
    }
    multiply(call, &call->args[TN_ARG_addmm_mat1].tensor, &call->args[TN_ARG_addmm_mat2].tensor,
             (tc_number){alpha->f, alpha->i});
}
