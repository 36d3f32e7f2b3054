/* Operators with an index tensor: gather, scatter_add, index_select, index_add. */
#include "plugin-sdk/conformance/worker/oracle/reference/reference.h"

#include <math.h>

/* Row-major place in `to` of element i of a tensor shaped `from`, its index along dim replaced. */
static int64_t moved(const tc_shape *from, int64_t i, const tc_shape *to, int64_t dim,
                     int64_t index) {
    int64_t at = 0, stride = 1;
    for (int32_t d = from->rank - 1; d >= 0; d--) {
        at += (d == dim ? index : i % from->sizes[d]) * stride;
        i /= from->sizes[d];
        stride *= to->sizes[d];
    }
    return at;
}

void tc_reference_gather(tc_invocation *call) {
    const tc_operand *self = &call->args[TN_ARG_gather_self].tensor;
    const tc_operand *index = &call->args[TN_ARG_gather_index].tensor;
    int64_t dim = call->args[TN_ARG_gather_dim].i;
    for (int64_t i = 0; i < index->shape.numel; i++)
        tc_out(call, 0)[i] =
            self->values[moved(&index->shape, i, &self->shape, dim, index->values[i].i)];
}

/* out = self, to which terms are added one by one. */
static void start(tc_invocation *call) {
    for (int64_t i = 0; i < call->outs[0].tensor.shape.numel; i++)
        tc_out(call, 0)[i] = tc_in(call, 0)[i];
}

/* How often each place was added to is in error until finish. */
static void add(tc_invocation *call, int64_t at, tc_number x) {
    tc_expected *e = &call->outs[0];
    tc_number *r = &e->tensor.values[at];
    r->f += x.f;
    r->i = call->types[0] == TN_BOOL ? r->i || x.i : tc_wrap_add(r->i, x.i);
    e->error[at] += 1;
    e->rounding[at] += isfinite(x.f) ? fabsl(x.f) : 0;
}

/* Is each sum on the way exact: whole numbers, as far as floats have all of them? */
static bool counts(const tc_invocation *call, tc_real sum) {
    int32_t alpha = tc_record_arg(call->record, "alpha");
    bool whole = call->data == TC_DATA_ONES &&
                 (alpha < 0 || floor(call->args[alpha].f) == call->args[alpha].f);
    return whole && sum <= 1 / tc_u(call);
}

static void finish(tc_invocation *call) {
    tc_expected *e = &call->outs[0];
    for (int64_t i = 0; i < e->tensor.shape.numel; i++) {
        tc_real self = fabsl(tc_in(call, 0)[i].f);
        tc_real sum = e->rounding[i] + (isfinite(self) ? self : 0);
        bool exact = call->data == TC_DATA_ORDERED || counts(call, sum);
        if (exact || e->error[i] > 0)
            e->rounding[i] = exact ? 0 : (e->error[i] + 2) * tc_u(call) * sum;
        e->error[i] = 0;
    }
}

void tc_reference_scatter_add(tc_invocation *call) {
    const tc_operand *index = &call->args[TN_ARG_scatter_add_index].tensor;
    const tc_operand *src = &call->args[TN_ARG_scatter_add_src].tensor;
    int64_t dim = call->args[TN_ARG_scatter_add_dim].i;
    start(call);
    for (int64_t i = 0; i < index->shape.numel; i++) {
        int64_t rest = i, at = 0, stride = 1; /* the same place in src, which may be larger */
        for (int32_t d = index->shape.rank - 1; d >= 0; d--) {
            at += rest % index->shape.sizes[d] * stride;
            rest /= index->shape.sizes[d];
            stride *= src->shape.sizes[d];
        }
        add(call, moved(&index->shape, i, &call->outs[0].tensor.shape, dim, index->values[i].i),
            src->values[at]);
    }
    finish(call);
}

void tc_reference_index_select(tc_invocation *call) {
    const tc_operand *self = &call->args[TN_ARG_index_select_self].tensor;
    const tc_operand *index = &call->args[TN_ARG_index_select_index].tensor;
    int64_t dim = call->args[TN_ARG_index_select_dim].i;
    const tc_shape *out = &call->outs[0].tensor.shape;
    tc_lines l = tc_lines_of(out, dim);
    for (int64_t i = 0; i < out->numel; i++)
        tc_out(call, 0)[i] =
            self->values[moved(out, i, &self->shape, dim, index->values[i / l.after % l.n].i)];
}

void tc_reference_index_add(tc_invocation *call) {
    const tc_operand *index = &call->args[TN_ARG_index_add_index].tensor;
    const tc_operand *source = &call->args[TN_ARG_index_add_source].tensor;
    const tc_value *alpha = &call->args[TN_ARG_index_add_alpha];
    int64_t dim = call->args[TN_ARG_index_add_dim].i;
    tc_lines l = tc_lines_of(&source->shape, dim);
    start(call);
    for (int64_t i = 0; i < source->shape.numel; i++) {
        tc_number x = source->values[i];
        add(call,
            moved(&source->shape, i, &call->outs[0].tensor.shape, dim,
                  index->values[i / l.after % l.n].i),
            (tc_number){alpha->f * x.f, tc_wrap_mul(alpha->i, x.i)});
    }
    finish(call);
}
