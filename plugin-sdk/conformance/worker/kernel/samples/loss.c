/* The negative log likelihood of target classes, and its gradient. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define WRONG(...) tc_why(why, TC_MESSAGE, __VA_ARGS__)

static bool is_one(const tc_value *v) {
    return v->tensor.shape.rank == 1 && v->tensor.shape.sizes[0] == 1;
}

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    enum { MOST_CLASSES = 1 << 20 };
    const tc_shape *target = &tc_invocation_arg(call, "target")->tensor.shape;
    const tc_value *self = tc_invocation_arg(call, "self"),
                   *classes = tc_invocation_arg(call, "n_classes");
    if (target->rank != 1)
        return WRONG("target has one dimension");
    if (self) {
        if (self->tensor.shape.rank != 2 || self->tensor.shape.sizes[0] != target->sizes[0])
            return WRONG("self has two dimensions, the first as target");
        for (int k = 0; k < 2; k++)
            call->outs[k].tensor.shape = tc_dense(1, TC_SIZES(1));
        return true;
    }
    if (!is_one(tc_invocation_arg(call, "grad_output")) ||
        !is_one(tc_invocation_arg(call, "total_weight")))
        return WRONG("grad_output and total_weight have one element");
    if (classes->i < 1 || classes->i > MOST_CLASSES)
        return WRONG("n_classes: one at least");
    call->outs[0].tensor.shape = tc_dense(2, TC_SIZES(target->sizes[0], classes->i));
    return true;
}

static int64_t terms(const tc_invocation *call) {
    bool adds = tc_record_arg(call->record, "self") >= 0;
    return adds ? call->args[tc_record_arg(call->record, "target")].tensor.shape.numel : 1;
}

static bool is_ignored(int64_t i) {
    return i % 4 == 3;
}

/* What is in the rows of ignored targets would spoil a sum that it is only multiplied by zero for. */
static void spoil_ignored(tc_operand *self) {
    int64_t n_classes = self->shape.sizes[1];
    for (int64_t i = 0; i < self->shape.numel; i++)
        if (is_ignored(i / n_classes))
            self->values[i].f = i % 2 ? -INFINITY : NAN;
    tc_operand_settle(self);
}

/* In so many rows that a sum has parts: one infinity, late, and the others finite. */
enum { MANY_ROWS = 4097 };

static void leave_one_infinity(tc_operand *self, const tc_operand *target) {
    int64_t n_classes = self->shape.sizes[1], last = target->shape.numel - 1;
    last -= is_ignored(last);
    for (int64_t i = 0; i <= last; i++)
        if (!is_ignored(i))
            self->values[i * n_classes + target->values[i].i].f =
                i < last ? -1 - (tc_real)(i % 8) / 8 : -INFINITY;
    tc_operand_settle(self);
}

/* Classes, the last and the first among them; every fourth target is ignored, or all of them are. */
static bool fill(tc_invocation *call, uint32_t a, tc_random *r) {
    tc_operand *o = &call->args[a].tensor;
    if (strcmp(call->record->args[a].name, "total_weight") == 0) {
        /* More than the dtype counts, or f32, or 32 bits do; a half has nothing left where it is divided by so many. */
        int64_t beyond = call->types[0] == TN_F16 ? 70001 : (INT64_C(1) << 33) + 1;
        o->values[0].i = tc_is_null(call->data)       ? 0
                         : call->data == TC_DATA_WIDE ? beyond
                                                      : tc_integer(r, 2, 1000);
        return true;
    }
    if (strcmp(call->record->args[a].name, "grad_output") == 0) {
        /* The one number that all of the result is made of: a quotient of it has digits in halves. */
        tc_real size = call->data == TC_DATA_EXACT  ? tc_integer(r, 1, 8)
                       : call->data == TC_DATA_WIDE ? tc_uniform(r, 6, 8)
                                                    : tc_uniform(r, 0.5L, 8);
        o->values[0].f = tc_below(r, 2) ? size : -size;
        return true;
    }
    if (strcmp(call->record->args[a].name, "target") != 0)
        return false;
    tc_value *self = tc_invocation_arg(call, "self"),
             *classes = tc_invocation_arg(call, "n_classes");
    int64_t n = self ? self->tensor.shape.sizes[1] : classes->i;
    for (int64_t i = 0; i < o->shape.numel; i++)
        o->values[i].i = is_ignored(i) || tc_is_null(call->data)
                             ? tc_invocation_arg(call, "ignore_index")->i
                         : i == 0 ? n - 1
                         : i == 1 ? 0
                                  : (int64_t)tc_below(r, (uint64_t)n);
    bool apart = !tc_has_zero_stride(&o->shape) && self && !tc_has_zero_stride(&self->tensor.shape);
    if (apart && (call->data == TC_DATA_SPECIAL || call->data == TC_DATA_RANDOM))
        spoil_ignored(&self->tensor);
    if (apart && call->data == TC_DATA_SPECIAL && o->shape.numel >= MANY_ROWS)
        leave_one_infinity(&self->tensor, o);
    return true;
}

typedef struct sized {
    int64_t n, classes;
    bool mean;
    int64_t ignore_index;
} sized;

static const sized usual[] = {
    {6, 9, true, -100},     {33, 10, false, 3},                 /* a class */
    {64, 10, true, -1},     {5, 3, false, INT64_C(4294967297)}, /* in 32 bits a class */
    {1, 7, true, -100},     {9, 1, false, -100},
    {4, 2, true, 1},        {257, 3, true, INT64_MIN},
    {1025, 5, false, -100}, {3, 1000, true, -100},
    {70, 33, false, 0},     {2, 4099, true, INT64_MAX},
    {2049, 2, true, -100},
};
enum { N_LAID_OUT = 2 };

static tc_line call_line(const tc_sampler *m, const sized *s, const char *odd, tc_layout layout) {
    tc_line l = tc_line_start(m);
    for (uint32_t a = 0; a < m->record->n_args; a++) {
        const tc_arg *arg = &m->record->args[a];
        tc_layout lies = !odd || strcmp(odd, arg->name) == 0 ? layout : TC_LAYOUT_DENSE;
        if (strcmp(arg->name, "self") == 0)
            tc_line_tensor(&l, "self", 2, TC_SIZES(s->n, s->classes), lies);
        else if (strcmp(arg->name, "n_classes") == 0)
            tc_line_add(&l, "n_classes=%" PRId64, s->classes);
        else if (strcmp(arg->name, "mean") == 0)
            tc_line_add(&l, "mean=%s", s->mean ? "true" : "false");
        else if (strcmp(arg->name, "ignore_index") == 0)
            tc_line_add(&l, "ignore_index=%" PRId64, s->ignore_index);
        else
            tc_line_tensor(&l, arg->name, 1, TC_SIZES(strcmp(arg->name, "target") == 0 ? s->n : 1),
                           lies);
    }
    return l;
}

static void list_layouts(const tc_sampler *m, const sized *s) {
    char name[TC_OUT_NAME];
    for (int layout = 1; layout < TC_LAYOUT_ZERO_ALL; layout++) {
        tc_emit(m, call_line(m, s, NULL, (tc_layout)layout));
        for (uint32_t a = 0; a < m->record->n_args; a++)
            if (m->record->args[a].kind == TC_ARG_TENSOR)
                tc_emit(m, call_line(m, s, m->record->args[a].name, (tc_layout)layout));
        for (uint32_t k = 0; layout < TC_N_OUT_LAYOUTS && k < m->record->n_outs; k++) {
            bool backward = m->record->n_outs == 1;
            tc_line out = call_line(m, s, "none", TC_LAYOUT_DENSE);
            tc_line_tensor(&out, tc_record_out(m->record, k, name), backward ? 2 : 1,
                           backward ? TC_SIZES(s->n, s->classes) : TC_SIZES(1), (tc_layout)layout);
            tc_emit(m, out);
        }
    }
}

/* Of images and of text. */
static void list_timed(const tc_sampler *m) {
    static const sized timed[] = {{128, 10, true, -100}, {4096, 4096, true, -100}};
    for (int k = 0; k < (tc_has_large(m) ? TC_LENGTH(timed) : 1); k++)
        tc_emit(m, call_line(m, &timed[k], NULL, TC_LAYOUT_DENSE));
}

static void list(const tc_sampler *m) {
    static const sized large[] = {
        {65541, 3, true, -100}, {5000, 100, false, 7}, {300, 1003, true, -1}, {3, 65541, false, 0}};
    static const sized split = {1501, 33, true, -100};
    bool backward =
        m->record->n_outs == 1; /* by which NaN and infinity are nothing but themselves */
    /* More targets than a table of partial sums has room for, unless its parts grow. */
    tc_line longest = call_line(m, &(sized){600011, 2, true, -100}, NULL, TC_LAYOUT_DENSE);
    tc_line_add(&longest, "data=random seed=1"); /* for this class alone: it takes long */
    if (tc_has_large(m) && !backward)
        tc_emit(m, longest);
    tc_line late = call_line(m, &(sized){9001, 3, false, -100}, NULL, TC_LAYOUT_DENSE);
    tc_line_add(&late, "data=special seed=1");
    if (tc_has_large(m) && !backward)
        tc_emit(m, late);
    for (int k = 0; tc_has_large(m) && k < TC_LENGTH(large); k++)
        tc_emit(m, call_line(m, &large[k], NULL, TC_LAYOUT_DENSE));
    if (m->set != TC_SMOKE)
        tc_emit(m, call_line(m, &split, NULL, TC_LAYOUT_DENSE));
    for (int k = 0; k < (m->set == TC_SMOKE ? 2 : TC_LENGTH(usual)); k++) {
        tc_line l = call_line(m, &usual[k], NULL, TC_LAYOUT_DENSE);
        if (k < 3)
            tc_emit_data(m, &l, backward ? TC_DATA_BIT(TC_DATA_SPECIAL) : 0);
        else
            tc_emit(m, l);
        tc_line none = call_line(m, &usual[k], NULL, TC_LAYOUT_DENSE);
        tc_line_add(&none, "data=null drawn=none"); /* the gradient is 0 all over */
        if (k < 5)
            tc_emit(m, none);
        if (k < N_LAID_OUT && m->set != TC_SMOKE)
            list_layouts(m, &usual[k]);
    }
}

const tc_family tc_family_loss = {"loss", shapes, terms, fill, list, list_timed};
