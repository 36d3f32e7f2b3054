/* Steps of optimizers that find their factors in memory. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <string.h>

/* The argument that is read as a whole: of the second type variable. */
static bool is_factors(const tc_record *record, uint32_t a) {
    return record->args[a].kind == TC_ARG_TENSOR && record->arg_types[a] == 1;
}

static int64_t n_factors(const tc_record *record, uint32_t a) {
    return strcmp(record->args[a].name, "lr") == 0 ? 1 : 3;
}

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_record *record = call->record;
    const tc_shape *self = &call->args[0].tensor.shape;
    for (uint32_t a = 1; a < record->n_args; a++) {
        const tc_shape *s = &call->args[a].tensor.shape;
        if (record->args[a].kind != TC_ARG_TENSOR)
            continue;
        if (is_factors(record, a) && (s->rank != 1 || s->numel != n_factors(record, a)))
            return tc_why(why, TC_MESSAGE, "%s has the shape [%d]", record->args[a].name,
                          (int)n_factors(record, a));
        if (is_factors(record, a) && call->in_place >= 0 &&
            tc_owner(call, a) == tc_owner(call, (uint32_t)call->in_place))
            return tc_why(why, TC_MESSAGE, "%s shares no memory with an output",
                          record->args[a].name);
        if (!is_factors(record, a) && !tc_same_sizes(s, self))
            return tc_why(why, TC_MESSAGE, "%s: all tensors but %s have the same sizes", record->op,
                          n_factors(record, a) == 1 ? "lr" : "factors");
    }
    for (uint32_t k = 0; k < record->n_outs; k++)
        call->outs[k].tensor.shape = tc_dense(self->rank, self->sizes);
    return true;
}

static int64_t terms(const tc_invocation *call) {
    (void)call;
    return 1;
}

/* What follows from learning rates and steps: no two of them alike, and none so large that the rest
 * of the formula is lost in it. Whole numbers stay whole by it. */
static bool fill(tc_invocation *call, uint32_t a, tc_random *r) {
    tc_operand *o = &call->args[a].tensor;
    if (!is_factors(call->record, a))
        return false;
    static const double low[] = {0.75, 0.125, 1}, high[] = {1, 0.5, 4};
    for (int64_t i = 0; i < o->shape.numel; i++) {
        int64_t k = o->shape.numel == 1 ? 1 : i;
        o->values[i].f = call->whole ? 0.25 : tc_uniform(r, low[k], high[k]);
    }
    return true;
}

/* A call in which argument `odd` (-1: each of the large ones) lies in `layout`. */
static tc_line call_line(const tc_sampler *m, const char *attrs, int32_t rank, const int64_t *sizes,
                         int32_t odd, tc_layout layout) {
    tc_line l = tc_line_start(m);
    for (uint32_t a = 0; a < m->record->n_args; a++) {
        tc_layout lies =
            odd == (int32_t)a || (odd < 0 && !is_factors(m->record, a)) ? layout : TC_LAYOUT_DENSE;
        int64_t n = n_factors(m->record, a);
        if (m->record->args[a].kind == TC_ARG_TENSOR && is_factors(m->record, a))
            tc_line_tensor(&l, m->record->args[a].name, 1, &n, lies);
        else if (m->record->args[a].kind == TC_ARG_TENSOR)
            tc_line_tensor(&l, m->record->args[a].name, rank, sizes, lies);
    }
    tc_line_add(&l, "%s", attrs);
    return l;
}

static void list_timed(const tc_sampler *m) {
    const char *attrs = m->record->attributes[0];
    tc_emit(m, call_line(m, attrs, 1, TC_SIZES(1 << 22), -1, TC_LAYOUT_DENSE));
    if (tc_has_large(m))
        tc_emit(m, call_line(m, attrs, 1, TC_SIZES(64), -1, TC_LAYOUT_DENSE));
}

static void list(const tc_sampler *m) {
    static const int64_t lengths[] = {1, 3, 5, 17, 64, 65, 1000, 4099};
    const char *const *attrs = m->record->attributes;
    for (int k = 0; k < TC_MAX_ATTRIBUTES && attrs[k]; k++) {
        tc_line l = call_line(m, attrs[k], 1, TC_SIZES(331), -1, TC_LAYOUT_DENSE);
        tc_emit_data(m, &l, 0);
        if (m->set == TC_SMOKE)
            return;
    }
    for (int k = 0; k < TC_LENGTH(lengths); k++)
        tc_emit(m, call_line(m, attrs[k % 2], 1, &lengths[k], -1, TC_LAYOUT_DENSE));
    tc_emit(m, call_line(m, attrs[0], 1, TC_SIZES(tc_split(m)), -1, TC_LAYOUT_DENSE));
    tc_emit(m, call_line(m, attrs[0], 3, TC_SIZES(2, 3, 4), -1, TC_LAYOUT_DENSE));
    for (int layout = TC_LAYOUT_SHIFTED; layout < TC_N_OUT_LAYOUTS; layout++) {
        tc_emit(m, call_line(m, attrs[0], 2, TC_SIZES(7, 9), -1, (tc_layout)layout));
        for (uint32_t a = 0; a < m->record->n_args; a++)
            if (m->record->args[a].kind == TC_ARG_TENSOR)
                tc_emit(m,
                        call_line(m, attrs[1], 2, TC_SIZES(7, 9), (int32_t)a, (tc_layout)layout));
        for (uint32_t k = 0; k < m->record->n_outs; k++) {
            tc_line l = call_line(m, attrs[0], 2, TC_SIZES(7, 9), -1, TC_LAYOUT_DENSE);
            tc_line_out(&l, m, k, 2, TC_SIZES(7, 9), (tc_layout)layout);
            tc_emit(m, l);
        }
    }
}

const tc_family tc_family_step = {"step", shapes, terms, fill, list, list_timed};
