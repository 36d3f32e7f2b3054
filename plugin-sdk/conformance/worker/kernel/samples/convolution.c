/* Convolution in two dimensions and its derivatives. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <stdio.h>
#include <string.h>

static const int64_t *sizes_of(tc_invocation *call, const char *tensor, const char *list,
                               char why[TC_MESSAGE]) {
    tc_value *t = tc_invocation_arg(call, tensor);
    if (!t)
        t = tc_invocation_arg(call, list);
    int32_t rank = t->n_ints ? t->n_ints : t->tensor.shape.rank;
    if (rank != 4) {
        snprintf(why, TC_MESSAGE, "%s has four dimensions", tensor);
        return NULL;
    }
    return t->n_ints ? t->ints : t->tensor.shape.sizes;
}

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    const int64_t *x = sizes_of(call, "input", "input_size", why),
                  *w = sizes_of(call, "weight", "weight_size", why);
    const tc_value *stride = tc_invocation_arg(call, "stride"),
                   *padding = tc_invocation_arg(call, "padding"),
                   *dilation = tc_invocation_arg(call, "dilation");
    int64_t groups = tc_invocation_arg(call, "groups")->i;
    if (!x || !w)
        return false;
    bool ok = stride->n_ints == 2 && padding->n_ints == 2 && dilation->n_ints == 2 && groups > 0 &&
              x[1] % groups == 0 && w[0] % groups == 0 && w[1] == x[1] / groups;
    int64_t y[4] = {x[0], w[0]};
    for (int d = 0; ok && d < 2; d++) {
        int64_t room = x[2 + d] + 2 * padding->ints[d] - dilation->ints[d] * (w[2 + d] - 1) - 1;
        ok = stride->ints[d] > 0 && dilation->ints[d] > 0 && room >= 0;
        y[2 + d] = ok ? room / stride->ints[d] + 1 : 0;
    }
    const tc_value *grad = tc_invocation_arg(call, "grad_output"),
                   *bias = tc_invocation_arg(call, "bias");
    tc_shape out = tc_dense(4, y);
    ok = ok && (!grad || tc_same_sizes(&grad->tensor.shape, &out)) &&
         (!bias || bias->none ||
          (bias->tensor.shape.rank == 1 && bias->tensor.shape.sizes[0] == w[0]));
    if (!ok)
        return tc_why(why, TC_MESSAGE, "the sizes of a convolution do not fit each other");
    call->outs[0].tensor.shape =
        !grad ? out : tc_dense(4, tc_invocation_arg(call, "input_size") ? x : w);
    return true;
}

static int64_t terms(const tc_invocation *call) {
    const tc_shape *out = &call->outs[0].tensor.shape;
    int64_t products = 1; /* of all outputs together */
    const tc_value *v = call->args;
    if (tc_record_arg(call->record, "grad_output") < 0)
        return v[1].tensor.shape.numel / v[1].tensor.shape.sizes[0];
    const int64_t *y = v[0].tensor.shape.sizes;
    products = tc_record_arg(call->record, "weight_size") >= 0
                   ? y[0] * y[2] * y[3]
                   : v[1].tensor.shape.numel / v[1].tensor.shape.sizes[1];
    return products > 0 ? products : out->numel;
}

/* May the argument have infinities? Padding may be zeros that are multiplied, or nothing, as may what
 * lies between the elements of a gradient: only where both give the same. */
static bool may_be_special(tc_invocation *call, uint32_t a) {
    const char *name = call->record->args[a].name;
    const int64_t *padding = tc_invocation_arg(call, "padding")->ints,
                  *stride = tc_invocation_arg(call, "stride")->ints;
    bool padded = padding[0] > 0 || padding[1] > 0;
    if (strcmp(name, "input") == 0 || tc_is_null(call->data))
        return strcmp(name, "input") == 0;
    if (tc_record_arg(call->record, "input_size") < 0)
        return strcmp(name, "bias") == 0 || !padded;
    const int64_t *kernel = tc_invocation_arg(call, "weight")->tensor.shape.sizes + 2;
    return strcmp(name, "grad_output") == 0 ||
           (!padded && kernel[0] * kernel[1] * stride[0] * stride[1] == 1);
}

static bool fill(tc_invocation *call, uint32_t a, tc_random *r) {
    if ((call->data != TC_DATA_SPECIAL && !tc_is_null(call->data)) || may_be_special(call, a))
        return false;
    const tc_arg *arg = &call->record->args[a];
    for (int64_t i = 0; i < call->args[a].tensor.shape.numel; i++)
        call->args[a].tensor.values[i].f = tc_uniform(r, arg->low, arg->high);
    return true;
}

static const struct geometry {
    int64_t n, c, h, w, o, kernel[2], stride[2], padding[2], dilation[2], groups;
} geometries[] = {
    {2, 3, 8, 9, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    {2, 4, 7, 6, 6, {3, 2}, {2, 1}, {0, 1}, {1, 2}, 2},
    {3, 4, 9, 9, 4, {3, 3}, {3, 2}, {2, 2}, {2, 1}, 4}, /* depthwise, outputs in the padding */
    {1, 1, 1, 1, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {2, 5, 6, 7, 3, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},  /* one tap */
    {1, 2, 5, 5, 3, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1},  /* one pixel comes out */
    {1, 2, 3, 4, 2, {3, 4}, {2, 3}, {4, 5}, {1, 1}, 1},  /* taps that see padding alone */
    {1, 1, 1, 40, 1, {1, 7}, {1, 1}, {0, 3}, {1, 1}, 1}, /* one row */
    {20, 3, 5, 5, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}, /* many images */
    {1, 24, 12, 30, 3, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 1},
    {1, 70, 9, 11, 2, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2}, /* many channels */
    {2, 3, 10, 10, 33, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1},
    {2, 2, 12, 13, 3, {3, 3}, {2, 2}, {1, 2}, {3, 3}, 1}, /* taps further apart than outputs */
    {2, 4, 13, 9, 4, {2, 3}, {3, 2}, {4, 3}, {4, 3}, 2},
    {2, 4, 1, 2, 6, {3, 3}, {2, 3}, {1, 1}, {1, 1}, 2}, /* strides beyond the input */
};

static void output_sizes(const struct geometry *g, int64_t y[4]) {
    y[0] = g->n;
    y[1] = g->o;
    y[2] = (g->h + 2 * g->padding[0] - g->dilation[0] * (g->kernel[0] - 1) - 1) / g->stride[0] + 1;
    y[3] = (g->w + 2 * g->padding[1] - g->dilation[1] * (g->kernel[1] - 1) - 1) / g->stride[1] + 1;
}

static tc_line call_line(const tc_sampler *m, const struct geometry *g, bool bias, const char *odd,
                         tc_layout layout) {
    const int64_t x[4] = {g->n, g->c, g->h, g->w},
                  w[4] = {g->o, g->c / g->groups, g->kernel[0], g->kernel[1]};
    int64_t y[4];
    output_sizes(g, y);
    tc_line l = tc_line_start(m);
    for (uint32_t a = 0; a < m->record->n_args; a++) {
        const char *name = m->record->args[a].name;
        tc_layout lies = !odd || strcmp(odd, name) == 0 ? layout : TC_LAYOUT_DENSE;
        if (strcmp(name, "input") == 0)
            tc_line_tensor(&l, name, 4, x, lies);
        else if (strcmp(name, "weight") == 0)
            tc_line_tensor(&l, name, 4, w, lies);
        else if (strcmp(name, "grad_output") == 0)
            tc_line_tensor(&l, name, 4, y, lies);
        else if (strcmp(name, "input_size") == 0)
            tc_line_ints(&l, name, 4, x);
        else if (strcmp(name, "weight_size") == 0)
            tc_line_ints(&l, name, 4, w);
        else if (strcmp(name, "bias") == 0)
            bias ? tc_line_tensor(&l, name, 1, &g->o, lies) : tc_line_add(&l, "bias=none");
        else if (strcmp(name, "groups") == 0)
            tc_line_add(&l, "groups=%d", (int)g->groups);
        else
            tc_line_ints(&l, name, 2,
                         name[0] == 's'   ? g->stride
                         : name[0] == 'p' ? g->padding
                                          : g->dilation);
    }
    return l;
}

/* The layers of a network that reads digits, one of a residual network, one that is depthwise. */
static void list_timed(const tc_sampler *m) {
    static const struct geometry timed[] = {
        {64, 32, 26, 26, 64, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
        {64, 1, 28, 28, 32, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
        {8, 64, 28, 28, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
        {8, 64, 28, 28, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 64},
        {1, 4, 8, 8, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
    };
    for (int k = 0; k < (tc_has_large(m) ? TC_LENGTH(timed) : 1); k++) {
        tc_line l = call_line(m, &timed[k], true, NULL, TC_LAYOUT_DENSE);
        if (tc_record_arg(m->record, "weight_size") >= 0) /* rounding has room in sums of so many */
            tc_line_add(&l, "data=exact");
        tc_emit(m, l);
    }
}

/* Every stride with every dilation and padding, along either dimension, of one tap and of more: with and without a
 * common divisor, and padding of which only the first part is read. */
static void list_crossed(const tc_sampler *m) {
    for (int at = 0; at < 3 * 4 * 4 * 3; at++) {
        int64_t kernel = 1 + at % 3, stride = 1 + at / 3 % 4, dilation = 1 + at / 12 % 4;
        int64_t padding = at / 48, size = 12 + (stride * dilation + padding + kernel) % 2;
        struct geometry high = {
            1, 2, size, 3, 3, {kernel, 1}, {stride, 1}, {padding, 0}, {dilation, 1}, 1};
        struct geometry wide = {
            1, 2, 3, size, 3, {1, kernel}, {1, stride}, {0, padding}, {1, dilation}, 1};
        tc_emit(m, call_line(m, &high, at % 3 == 0, NULL, TC_LAYOUT_DENSE));
        tc_emit(m, call_line(m, &wide, at % 3 == 0, NULL, TC_LAYOUT_DENSE));
    }
    /* and inputs of a few pixels, of which a stride passes the end, with taps that see none, or none at all */
    for (int at = 0; at < 4 * 5 * 2 * 2; at++) {
        int64_t size = 1 + at % 4, stride = 1 + at / 4 % 5, padding = 1 + at / 20 % 2;
        int64_t kernel = at < 40 ? 3 : 1;
        struct geometry high = {2,           2,           size,         3,      3,
                                {kernel, 1}, {stride, 1}, {padding, 0}, {1, 1}, 1};
        struct geometry wide = {2,      2, 3, size, 3, {1, kernel}, {1, stride}, {0, padding},
                                {1, 1}, 1};
        tc_line lines[] = {call_line(m, &high, kernel == 1 || at % 3 == 0, NULL, TC_LAYOUT_DENSE),
                           call_line(m, &wide, kernel == 1 || at % 3 == 0, NULL, TC_LAYOUT_DENSE)};
        for (int k = 0; k < 2; k++) {
            if (kernel == 1)
                tc_line_add(&lines[k], "drawn=outside"); /* all zeros prove little */
            tc_emit(m, lines[k]);
        }
    }
}

/* The usual windows, of three taps each way and of one, with one number of one dimension changed: forms for these must
 * look at all of them. */
static void list_one_changed(const tc_sampler *m) {
    for (int at = 0; at < 2 * 2 * 4; at++) {
        int64_t kernel = 3 - at % 2 * 2, padding = kernel / 2;
        struct geometry g = {2,      4, 9, 10, 5, {kernel, kernel}, {1, 1}, {padding, padding},
                             {1, 1}, 1};
        int64_t *const numbers[] = {g.kernel, g.stride, g.padding, g.dilation};
        numbers[at / 4][at / 2 % 2]++;
        tc_line l = call_line(m, &g, at % 2, NULL, TC_LAYOUT_DENSE);
        tc_line_add(&l, "seed=1"); /* for this class alone */
        tc_emit(m, l);
    }
}

/* Groups of one channel and of several, to which one and several of the output belong: what is made
 * for one channel each must not take the others. Strides, padding and dilation go through all pairs. */
static void list_groups(const tc_sampler *m) {
    for (int at = 0; at < 2 * 3 * 3; at++) {
        int64_t groups = 2 + at % 2, in = 1 + at / 2 % 3, outs = 1 + at / 6;
        struct geometry g = {2,
                             groups * in,
                             8,
                             9,
                             groups * outs,
                             {3, 2 + at % 2},
                             {1 + at % 3 / 2, 1 + at / 3 % 2},
                             {at % 3, at / 2 % 2},
                             {1 + at / 4 % 2, 1 + at % 5 / 4},
                             groups};
        tc_emit(m, call_line(m, &g, at % 2, NULL, TC_LAYOUT_DENSE));
    }
}

/* Channels round the numbers that are taken at once, in rows as long, shorter and longer, with every stride. */
static void list_blocks(const tc_sampler *m) {
    static const int64_t counts[] = {15, 17, 33, 20};
    for (int at = 0; at < 12; at++) {
        struct geometry g = {1,
                             counts[at % 4],
                             5,
                             3 + at * 5 % 16,
                             counts[(at / 4 + at) % 4],
                             {3, 2 + at % 2},
                             {1 + at % 2, 1 + at % 3},
                             {at / 2 % 2, 1},
                             {1, 1},
                             1};
        tc_emit(m, call_line(m, &g, at % 2, NULL, TC_LAYOUT_DENSE));
    }
    /* more than a few such numbers, on one side */
    static const int64_t many[] = {75, 530};
    for (int at = 0; at < 4; at++) {
        int64_t in = at % 2 ? 2 : many[at / 2], outs = at % 2 ? many[at / 2] : 2;
        int64_t taps = many[at / 2] < 100 ? 2 : 1;
        struct geometry g = {taps, in, 3, 3, outs, {taps, taps}, {1, taps}, {0, 1}, {1, 1}, 1};
        tc_emit(m, call_line(m, &g, true, NULL, TC_LAYOUT_DENSE));
    }
    /* and groups whose channels are fewer than such a number where those of all are not, on either side */
    static const int64_t ins[] = {2, 8, 1, 17}, outs[] = {8, 16, 16, 5};
    for (int at = 0; at < 8; at++) {
        int64_t groups = 2 + at % 3;
        struct geometry g = {2,
                             groups * ins[at % 4],
                             6,
                             7,
                             groups * outs[(at / 4 + at) % 4],
                             {3 - at % 3, 1 + at % 3},
                             {1 + at % 2, 1},
                             {at / 2 % 2, at % 2},
                             {1, 1},
                             groups};
        tc_emit(m, call_line(m, &g, at % 2, NULL, TC_LAYOUT_DENSE));
    }
}

static void list(const tc_sampler *m) {
    static const struct geometry large[] = {
        {3, 16, 24, 24, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
        {40, 1, 14, 14, 32, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
        {2, 32, 30, 31, 32, {3, 3}, {2, 1}, {1, 1}, {1, 1}, 32},
        {65541, 1, 1, 2, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
        {1, 65541, 1, 2, 65541, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 65541},
        {1, 1, 65541, 2, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
        {1, 65541, 1, 1, 2, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
        {1, 1, 2, 65541, 1, {2, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
        {16, 3, 28, 28, 8, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1},
        {2, 3, 57, 61, 8, {3, 2}, {2, 3}, {1, 0}, {1, 1}, 1},
        /* windows that do not touch, in images whose rows are shared among threads */
        {3, 32, 40, 41, 32, {1, 1}, {2, 2}, {0, 0}, {1, 1}, 1},
        {3, 32, 40, 41, 24, {3, 2}, {4, 3}, {1, 1}, {1, 1}, 1},
    };
    /* So many that the sums over them in the gradient prove something only where they are exact. */
    static const struct geometry outs = {1, 2, 1, 3, 65541, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1};
    /* What a weight has may be anything, too. */
    static const struct geometry unpadded = {4, 4, 11, 10, 8, {3, 2}, {1, 2}, {0, 0}, {1, 1}, 2};
    /* As many products as are worth several threads. */
    static const struct geometry split = {5, 8, 20, 21, 12, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1};
    if (m->set != TC_SMOKE)
        tc_emit(m, call_line(m, &split, true, NULL, TC_LAYOUT_DENSE));
    if (m->set != TC_SMOKE) {
        list_groups(m);
        list_blocks(m);
    }
    tc_line special = call_line(m, &unpadded, true, NULL, TC_LAYOUT_DENSE);
    tc_line_add(&special, "data=special");
    if (m->set != TC_SMOKE)
        tc_emit(m, special);
    for (int k = 0; k < 3 && m->set != TC_SMOKE && tc_is_float(m->types[0]); k++) {
        struct geometry g = {2, 6 + k, 9, 8, 7, {3, 3}, {1, 1}, {k % 2, 1}, {1, 1}, 1};
        tc_line faint = call_line(m, &g, true, NULL, TC_LAYOUT_DENSE), ties = faint;
        tc_line_add(&ties, "data=ties"); /* sums halfway between two halves */
        if (k == 0 && tc_dtype_bytes(m->types[0]) == 2)
            tc_emit(m, ties);
        tc_line_add(&faint, "data=faint drawn=faint"); /* few numbers may prove little */
        tc_emit(m, faint);
    }
    if (tc_has_large(m)) {
        tc_line exact = call_line(m, &outs, true, NULL, TC_LAYOUT_DENSE);
        tc_line_add(&exact, "data=exact");
        tc_emit(m, exact);
        list_crossed(m);
    }
    for (int k = 0; tc_has_large(m) && k < TC_LENGTH(large); k++)
        tc_emit(m, call_line(m, &large[k], k % 2, NULL, TC_LAYOUT_DENSE));
    for (int k = 0; k < (m->set == TC_SMOKE ? 2 : TC_LENGTH(geometries)); k++) {
        const struct geometry *g = &geometries[k];
        tc_line l = call_line(m, g, k % 2, NULL, TC_LAYOUT_DENSE);
        tc_emit_data(m, &l, 0);
        for (int layout = 1; k < 2 && m->set != TC_SMOKE && layout < TC_LAYOUT_ZERO_ALL; layout++) {
            tc_emit(m, call_line(m, g, true, NULL, (tc_layout)layout));
            for (uint32_t a = 0; a < m->record->n_args; a++)
                if (m->record->args[a].kind == TC_ARG_TENSOR)
                    tc_emit(m, call_line(m, g, true, m->record->args[a].name, (tc_layout)layout));
            const int64_t x[4] = {g->n, g->c, g->h, g->w},
                          w[4] = {g->o, g->c / g->groups, g->kernel[0], g->kernel[1]};
            int64_t y[4];
            output_sizes(g, y);
            tc_line out = call_line(m, g, true, "none", TC_LAYOUT_DENSE);
            tc_line_tensor(&out, "out", 4,
                           tc_record_arg(m->record, "input_size") >= 0    ? x
                           : tc_record_arg(m->record, "weight_size") >= 0 ? w
                                                                          : y,
                           (tc_layout)layout);
            if (layout < TC_N_OUT_LAYOUTS)
                tc_emit(m, out);
        }
    }
    if (tc_has_large(m))
        list_one_changed(m);
}

const tc_family tc_family_convolution = {"convolution", shapes, terms, fill, list, list_timed};
