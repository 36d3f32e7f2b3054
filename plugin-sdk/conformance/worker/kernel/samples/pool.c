/* Pooling in two dimensions and its derivatives. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Windows along one dimension. In ceil mode the last one starts inside the input or before it. */
static int64_t windows(int64_t n, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                       bool ceil) {
    int64_t room = n + 2 * padding - dilation * (kernel - 1) - 1;
    if (room < 0)
        return 0;
    int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    return ceil && (count - 1) * stride >= n + padding ? count - 1 : count;
}

/* Does every window have an element? One that begins in the padding may step over a short input. */
static bool all_meet(int64_t n, int64_t count, int64_t stride, int64_t padding, int64_t dilation) {
    for (int64_t k = 0; k < count && k * stride < padding; k++) {
        int64_t at = k * stride - padding;
        while (at < 0)
            at += dilation;
        if (at >= n)
            return false;
    }
    return true;
}

static bool wrong(char why[TC_MESSAGE]) {
    return tc_why(why, TC_MESSAGE, "the sizes of a pooling do not fit each other");
}

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_value *size = tc_invocation_arg(call, "input_size"),
                   *kernel = tc_invocation_arg(call, "kernel_size");
    const tc_shape *first = &call->args[0].tensor.shape;
    if (first->rank != 4 || (size && size->n_ints != 4))
        return wrong(why);
    const int64_t *in = size ? size->ints : first->sizes;
    if (!kernel) { /* max_pool2d_backward */
        if (!tc_same_sizes(first, &call->args[1].tensor.shape) || in[0] != first->sizes[0] ||
            in[1] != first->sizes[1])
            return wrong(why);
        call->outs[0].tensor.shape = tc_dense(4, in);
        return true;
    }
    const tc_value *stride = tc_invocation_arg(call, "stride"),
                   *padding = tc_invocation_arg(call, "padding"),
                   *dilation = tc_invocation_arg(call, "dilation");
    bool ceil = tc_invocation_arg(call, "ceil_mode")->boolean;
    int64_t out[4] = {in[0], in[1]};
    for (int d = 0; d < 2; d++) {
        if (stride->ints[d] < 1 || kernel->ints[d] < 1 || 2 * padding->ints[d] > kernel->ints[d])
            return wrong(why);
        int64_t step = dilation ? dilation->ints[d] : 1;
        out[2 + d] =
            windows(in[2 + d], kernel->ints[d], stride->ints[d], padding->ints[d], step, ceil);
        if (!all_meet(in[2 + d], out[2 + d], stride->ints[d], padding->ints[d], step))
            return wrong(why);
    }
    tc_shape y = tc_dense(4, out);
    if (y.numel == 0 || (size && !tc_same_sizes(first, &y)))
        return wrong(why);
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        call->outs[k].tensor.shape = size ? tc_dense(4, in) : y;
    return true;
}

static int64_t terms(const tc_invocation *call) {
    int32_t k = tc_record_arg(call->record, "kernel_size");
    return k < 0 ? 16 : call->args[k].ints[0] * call->args[k].ints[1];
}

/* A third of all is NaN, so that many a window has several, of which the first counts. Where nothing is added, some
 * planes have nothing but the infinity that all else comes before, or the finite number next to it: where a kernel
 * begins tells, and what it takes for the padding. */
static bool fill_nans(tc_invocation *call, uint32_t a, tc_random *r) {
    const tc_arg *arg = &call->record->args[a];
    tc_operand *o = &call->args[a].tensor;
    int64_t of_plane = o->shape.sizes[2] * o->shape.sizes[3];
    for (int64_t i = 0; i < o->shape.numel; i++) {
        int64_t plane = call->record->adds ? 0 : i / of_plane % 4;
        o->values[i].f = plane == 1       ? -INFINITY
                         : plane == 2     ? -tc_largest(o->dtype)
                         : tc_below(r, 3) ? tc_uniform(r, arg->low, arg->high)
                                          : NAN;
    }
    return true;
}

/* Of windows that do not meet, or hardly, every other has a special value, each in the place
 * behind that of the one before. */
static bool fill_windows(tc_invocation *call, uint32_t a, tc_random *r) {
    const tc_real values[] = {NAN, INFINITY, copysignl(NAN, -1), -INFINITY};
    tc_value *v = call->args;
    const tc_shape *x = &v[a].tensor.shape, *y = &call->outs[0].tensor.shape;
    const int64_t *kernel = tc_invocation_arg(call, "kernel_size")->ints,
                  *stride = tc_invocation_arg(call, "stride")->ints,
                  *padding = tc_invocation_arg(call, "padding")->ints;
    const tc_value *dilation = tc_invocation_arg(call, "dilation");
    for (int64_t i = 0; i < x->numel; i++)
        v[a].tensor.values[i].f =
            tc_uniform(r, call->record->args[a].low, call->record->args[a].high);
    int64_t meet = ((kernel[0] - 1) / stride[0] + 1) * ((kernel[1] - 1) / stride[1] + 1);
    for (int64_t at = 0, n = 0; at < y->numel; at += 2 * meet + 1, n++) {
        int64_t plane = at / (y->sizes[2] * y->sizes[3]), k = n % (kernel[0] * kernel[1]);
        int64_t h = at / y->sizes[3] % y->sizes[2] * stride[0] - padding[0] +
                    k / kernel[1] * (dilation ? dilation->ints[0] : 1);
        int64_t w = at % y->sizes[3] * stride[1] - padding[1] +
                    k % kernel[1] * (dilation ? dilation->ints[1] : 1);
        if (h >= 0 && w >= 0 && h < x->sizes[2] && w < x->sizes[3])
            v[a].tensor.values[(plane * x->sizes[2] + h) * x->sizes[3] + w].f =
                values[n / (kernel[0] * kernel[1]) % 4];
    }
    return true;
}

/* Places within an image's plane. */
static bool fill(tc_invocation *call, uint32_t a, tc_random *r) {
    bool self =
        strcmp(call->record->args[a].name, "self") == 0 && tc_is_float(call->args[a].tensor.dtype);
    if (self && call->data == TC_DATA_SPECIAL)
        return fill_windows(call, a, r);
    if (self && call->data == TC_DATA_NULL)
        return fill_nans(call, a, r);
    if (strcmp(call->record->args[a].name, "indices") != 0)
        return false;
    const int64_t *in = tc_invocation_arg(call, "input_size")->ints;
    for (int64_t i = 0; i < call->args[a].tensor.shape.numel; i++)
        call->args[a].tensor.values[i].i =
            i == 0 ? in[2] * in[3] - 1 : (int64_t)tc_below(r, (uint64_t)(in[2] * in[3]));
    return true;
}

static const struct geometry {
    int64_t n, c, h, w, kernel[2], stride[2], padding[2], dilation[2];
    bool ceil, include;
} geometries[] = {
    {2, 3, 8, 9, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, true},
    {2, 2, 7, 8, {3, 2}, {2, 1}, {1, 1}, {1, 1}, false, false},
    {1, 3, 9, 7, {3, 3}, {2, 2}, {1, 1}, {2, 1}, true, true},
    {1, 1, 1, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, false, true},
    {3, 2, 6, 6, {6, 6}, {6, 6}, {0, 0}, {1, 1}, false, true},
    {1, 2, 5, 11, {2, 3}, {3, 3}, {1, 0}, {1, 1}, true, false},
    {1, 4, 10, 10, {3, 3}, {1, 1}, {1, 1}, {1, 1}, false, false},
    {2, 1, 12, 33, {2, 2}, {2, 2}, {1, 1}, {1, 1}, true, true},
    {1, 2, 9, 40, {1, 5}, {1, 2}, {0, 2}, {1, 1}, false, true},
    /* The last windows reach beyond even the padding. */
    {1, 2, 8, 10, {3, 3}, {2, 2}, {1, 1}, {1, 2}, true, true},
    /* More windows meet in an element than have it at an edge. */
    {1, 2, 13, 15, {7, 7}, {1, 1}, {3, 3}, {1, 1}, false, false},
    {1, 2, 14, 16, {7, 6}, {1, 1}, {3, 2}, {1, 1}, true, false},
    {1, 2, 18, 17, {8, 8}, {2, 3}, {4, 4}, {1, 1}, true, false},
};

static tc_line call_line(const tc_sampler *m, const struct geometry *g, const char *odd,
                         tc_layout layout, tc_layout out) {
    bool dilated = tc_record_arg(m->record, "count_include_pad") < 0; /* averages are not */
    const int64_t x[4] = {g->n, g->c, g->h, g->w};
    int64_t y[4] = {g->n, g->c};
    for (int d = 0; d < 2; d++)
        y[2 + d] = windows(x[2 + d], g->kernel[d], g->stride[d], g->padding[d],
                           dilated ? g->dilation[d] : 1, g->ceil);
    bool backward = tc_record_arg(m->record, "input_size") >= 0;
    tc_line l = tc_line_start(m);
    for (uint32_t a = 0; a < m->record->n_args; a++) {
        const char *name = m->record->args[a].name;
        tc_layout lies = !odd || strcmp(odd, name) == 0 ? layout : TC_LAYOUT_DENSE;
        if (m->record->args[a].kind == TC_ARG_TENSOR)
            tc_line_tensor(&l, name, 4, backward ? y : x, lies);
        else if (strcmp(name, "input_size") == 0)
            tc_line_ints(&l, name, 4, x);
        else if (strcmp(name, "ceil_mode") == 0)
            tc_line_add(&l, "ceil_mode=%s", g->ceil ? "true" : "false");
        else if (strcmp(name, "count_include_pad") == 0)
            tc_line_add(&l, "count_include_pad=%s", g->include ? "true" : "false");
        else
            tc_line_ints(&l, name, 2,
                         name[0] == 'k'   ? g->kernel
                         : name[0] == 's' ? g->stride
                         : name[0] == 'p' ? g->padding
                                          : g->dilation);
    }
    for (uint32_t k = 0; out != TC_LAYOUT_DENSE && k < m->record->n_outs; k++)
        tc_line_out(&l, m, k, 4, backward ? x : y, out);
    return l;
}

static void list_timed(const tc_sampler *m) {
    static const struct geometry timed[] = {
        {64, 32, 24, 24, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, true},
        {1, 4, 8, 8, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, true}};
    for (int k = 0; k < TC_LENGTH(timed); k++)
        tc_emit(m, call_line(m, &timed[k], NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
}

/* Each stride with each padding and dilation: forms for some of them must not take the others. */
static void list_crossed(const tc_sampler *m) {
    for (int way = 0; way < 32; way++) {
        int64_t kernel = 2 + (way & 1), stride = 1 + (way >> 1 & 1), padding = way >> 2 & 1,
                dilation = 1 + (way >> 3 & 1);
        struct geometry g = {1,
                             2,
                             9,
                             10,
                             {kernel, kernel},
                             {stride, stride},
                             {padding, padding},
                             {dilation, dilation},
                             way >> 4 & 1,
                             way & 1};
        tc_emit(m, call_line(m, &g, NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
    }
    /* and inputs of a few pixels, of which a stride passes the end */
    for (int at = 0; at < 4 * 5; at++) {
        int64_t size = 1 + at % 4, stride = 1 + at / 4;
        struct geometry g = {2,      2,      size,   5 - size, {3, 3}, {stride, 6 - stride},
                             {1, 1}, {1, 1}, at % 2, at % 3};
        tc_emit(m, call_line(m, &g, NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
    }
}

/* The usual windows with one number of one dimension changed: forms for these must look at all of them. */
static void list_one_changed(const tc_sampler *m) {
    for (int at = 0; at < 2 * 2 * 2 * 5; at++) {
        int64_t kernel = 2 + at % 2, padding = kernel - 2;
        int d = at / 2 % 2;
        struct geometry g = {1,
                             2,
                             8 + at / 4 % 2,
                             10 - at / 4 % 2,
                             {kernel, kernel},
                             {2, 2},
                             {padding, padding},
                             {1, 1},
                             at / 4 % 2,
                             at / 4 % 2};
        int64_t *const numbers[] = {&g.kernel[d], &g.stride[d], &g.padding[d], &g.dilation[d],
                                    d ? &g.w : &g.h},
                       *changed = numbers[at / 8];
        *changed += changed == &g.padding[d] && padding ? -1 : 1;
        tc_line l = call_line(m, &g, NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
        tc_line_add(&l, "seed=1"); /* for this class alone */
        tc_emit(m, l);
    }
}

/* Many windows meet in an element, and are more than one element apart, each way by another number. */
static void list_meeting(const tc_sampler *m) {
    for (int at = 0; at < 6; at++) {
        struct geometry g = {1,
                             2,
                             24 + at,
                             27,
                             {17, 19},
                             {1 + at % 3, 1 + (at + 1 + at / 3) % 3},
                             {at % 2 * 8, at / 2 * 4},
                             {1, 1},
                             at % 2,
                             at / 3};
        tc_emit(m, call_line(m, &g, NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
    }
}

static void list(const tc_sampler *m) {
    static const struct geometry large[] = {
        {65541, 1, 2, 2, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, true},
        {1, 65541, 2, 2, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, true},
        {1, 1, 65541, 2, {1, 2}, {1, 2}, {0, 0}, {1, 1}, false, true},
        {1, 1, 2, 65541, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, true},
    };
    /* So many planes that several threads have some, in every dtype. Halves may be converted for them,
     * and where threads share what is for one of them it takes a while until they meet. */
    bool half = tc_is_float(m->types[0]) && tc_dtype_bytes(m->types[0]) == 2;
    struct geometry split = {half ? 8 : 4, half ? 16 : 9, 60,     61,    {3, 2},
                             {2, 2},       {1, 1},        {1, 1}, false, true};
    if (m->set != TC_SMOKE)
        tc_emit(m, call_line(m, &split, NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
    /* One plane with its output is more than a stack has, as f32 for halves. */
    static const struct geometry plane = {1,      1,      530,    520,   {2, 2},
                                          {2, 2}, {0, 0}, {1, 1}, false, true};
    tc_line whole = call_line(m, &plane, NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&whole, "seed=1"); /* once is enough */
    if (tc_has_large(m) || (m->set != TC_SMOKE && m->types[0] == TN_F16))
        tc_emit(m, whole);
    if (tc_has_large(m))
        list_crossed(m);
    /* So many windows meet in one element that rounding adds up. */
    static const struct geometry meet = {1,      2,      83,     79,    {40, 37},
                                         {1, 1}, {0, 0}, {1, 1}, false, true};
    tc_line added = call_line(m, &meet, NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
    tc_line_add(&added, "data=biased");
    bool averages = tc_record_arg(m->record, "count_include_pad") >= 0,
         is_gradient = tc_record_arg(m->record, "input_size") >= 0;
    if (averages && is_gradient && m->set != TC_SMOKE) {
        tc_emit(m, added);
        list_meeting(m);
    }
    /* and so many elements in one window: all of a plane, and all but its edge */
    static const struct geometry global[] = {
        {1, 2, 270, 280, {270, 280}, {1, 1}, {0, 0}, {1, 1}, false, true},
        {1, 2, 181, 190, {180, 189}, {2, 2}, {0, 0}, {1, 1}, false, true}};
    for (int k = 0; averages && !is_gradient && m->set != TC_SMOKE && k < TC_LENGTH(global); k++) {
        tc_line l = call_line(m, &global[k], NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
        tc_line_add(&l, "data=biased seed=1");
        tc_emit(m, l);
    }
    for (int k = 0; tc_has_large(m) && k < TC_LENGTH(large); k++)
        tc_emit(m, call_line(m, &large[k], NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE));
    for (int k = 0; k < (m->set == TC_SMOKE ? 2 : TC_LENGTH(geometries)); k++) {
        const struct geometry *g = &geometries[k];
        tc_line l = call_line(m, g, NULL, TC_LAYOUT_DENSE, TC_LAYOUT_DENSE);
        /* The extremes, and sums that cancel, of many whole windows are all the same. */
        uint32_t alike = TC_DATA_BIT(TC_DATA_EXACT) | TC_DATA_BIT(TC_DATA_CANCEL);
        tc_emit_data(m, &l, g->kernel[0] > 5 ? alike : 0);
        tc_line_add(&l, "data=null");
        if (m->record->n_outs == 2 && tc_is_float(m->types[0]) && m->set != TC_SMOKE)
            tc_emit(m, l); /* places of maxima */
        for (int layout = 1; k < 2 && m->set != TC_SMOKE && layout < TC_LAYOUT_ZERO_ALL; layout++) {
            tc_emit(m, call_line(m, g, NULL, (tc_layout)layout, TC_LAYOUT_DENSE));
            if (layout < TC_N_OUT_LAYOUTS)
                tc_emit(m, call_line(m, g, "none", TC_LAYOUT_DENSE, (tc_layout)layout));
        }
    }
    if (tc_has_large(m))
        list_one_changed(m);
}

const tc_family tc_family_pool = {"pool", shapes, terms, fill, list, list_timed};
