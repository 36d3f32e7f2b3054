/* layer_norm and its derivative. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <stdio.h>
#include <string.h>

static bool wrong(char why[TC_MESSAGE]) {
    snprintf(why, TC_MESSAGE,
             "weight and bias have the last n_dims sizes of input, mean and rstd size 1 there, "
             "grad_output input's sizes");
    return false;
}

static bool shapes(tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_shape *in = &tc_invocation_arg(call, "input")->tensor.shape;
    int64_t n_dims = tc_invocation_arg(call, "n_dims")->i;
    if (n_dims < 1 || n_dims > in->rank)
        return wrong(why);
    int64_t sizes[TC_MAX_RANK];
    memcpy(sizes, in->sizes, sizeof sizes);
    for (int32_t d = in->rank - (int32_t)n_dims; d < in->rank; d++)
        sizes[d] = 1;
    tc_shape row = tc_dense((int32_t)n_dims, in->sizes + in->rank - n_dims),
             one = tc_dense(in->rank, sizes);
    static const char *const rows[] = {"weight", "bias"}, *const ones[] = {"mean", "rstd"};
    for (int k = 0; k < 2; k++) {
        const tc_value *w = tc_invocation_arg(call, rows[k]), *m = tc_invocation_arg(call, ones[k]);
        if ((w && !w->none && !tc_same_sizes(&w->tensor.shape, &row)) ||
            (m && !tc_same_sizes(&m->tensor.shape, &one)))
            return wrong(why);
    }
    const tc_value *grad = tc_invocation_arg(call, "grad_output");
    if (grad && !tc_same_sizes(&grad->tensor.shape, in))
        return wrong(why);
    call->outs[0].tensor.shape = tc_dense(in->rank, in->sizes);
    call->outs[1].tensor.shape = call->outs[2].tensor.shape = one;
    return true;
}

static int64_t terms(const tc_invocation *call) {
    (void)call;
    return 1000; /* nothing here is exact */
}

static const struct sized {
    int32_t rank;
    int64_t sizes[TC_MAX_RANK];
    int n_dims;
} sized[] = {
    {2, {5, 9}, 1},       {3, {2, 3, 5}, 2}, {3, {4, 3, 8}, 1}, {2, {3, 64}, 1},
    {2, {2, 1000}, 1},    {2, {5, 33}, 1},   {3, {2, 3, 4}, 3}, {2, {7, 31}, 1},
    {4, {2, 2, 3, 5}, 2}, {2, {40, 16}, 1},  {2, {1, 257}, 1},  {2, {2, 1}, 1},
};

static tc_line call_line(const tc_sampler *m, const struct sized *s, int with, const char *odd,
                         tc_layout layout) {
    int64_t ones[TC_MAX_RANK];
    memcpy(ones, s->sizes, sizeof ones);
    for (int32_t d = s->rank - s->n_dims; d < s->rank; d++)
        ones[d] = 1;
    tc_line l = tc_line_start(m);
    for (uint32_t a = 0; a < m->record->n_args; a++) {
        const char *name = m->record->args[a].name;
        tc_layout lies = !odd || strcmp(odd, name) == 0 ? layout : TC_LAYOUT_DENSE;
        bool weight = strcmp(name, "weight") == 0, bias = strcmp(name, "bias") == 0;
        if (strcmp(name, "n_dims") == 0)
            tc_line_add(&l, "n_dims=%d", s->n_dims);
        else if (strcmp(name, "eps") == 0)
            tc_line_add(&l, "eps=%s", s->n_dims == 2 ? "0.5" : "1e-5");
        else if (weight || bias)
            with &(weight ? 1 : 2)
                ? tc_line_tensor(&l, name, s->n_dims, s->sizes + s->rank - s->n_dims, lies)
                : tc_line_add(&l, "%s=none", name);
        else
            tc_line_tensor(&l, name, s->rank,
                           strcmp(name, "mean") != 0 && strcmp(name, "rstd") != 0 ? s->sizes : ones,
                           lies);
    }
    return l;
}

static void list_timed(const tc_sampler *m) {
    static const struct sized timed[] = {{2, {4096, 1024}, 1}, {2, {64, 128}, 1}};
    for (int k = 0; k < (tc_has_large(m) ? TC_LENGTH(timed) : 1); k++)
        tc_emit(m, call_line(m, &timed[k], 3, NULL, TC_LAYOUT_DENSE));
}

/* In every dtype rows longer than what is made f32 at once; and rows of one number, which are told from one
 * another by what NaNs and infinities make of them. */
static void list_lengths(const tc_sampler *m) {
    tc_emit(m, call_line(m, &(struct sized){2, {3, 5003}, 1}, 3, NULL, TC_LAYOUT_DENSE));
    tc_line ones = call_line(m, &(struct sized){2, {48, 1}, 1}, 0, NULL, TC_LAYOUT_DENSE);
    tc_line_add(&ones, "data=special drawn=special");
    tc_emit(m, ones);
}

/* Rows of whole blocks, and of one element more. */
static void list_blocks(const tc_sampler *m) {
    static const int64_t blocks[] = {128, 512, 513, 1024, 1025, 2048, 2049};
    for (int k = 0; k < TC_LENGTH(blocks); k++) {
        tc_line l = call_line(m, &(struct sized){2, {3, blocks[k]}, 1}, 3, NULL, TC_LAYOUT_DENSE);
        tc_line_add(&l, "seed=1"); /* for this class alone */
        tc_emit(m, l);
    }
}

static void list(const tc_sampler *m) {
    static const struct sized large[] = {{2, {600, 200}, 1},
                                         {3, {70, 40, 30}, 2},
                                         {2, {65541, 2}, 1},
                                         {2, {2, 33003}, 1},
                                         {2, {2, 131075}, 1}};
    static const struct sized split = {2, {303, 133}, 1};
    struct sized ranks = {0, {2, 3, 2, 2, 3, 2, 3, 1, 2, 1, 2, 2}, 0};
    for (int k = 0; tc_has_large(m) && k < TC_LENGTH(large); k++)
        tc_emit(m, call_line(m, &large[k], 3, NULL, TC_LAYOUT_DENSE));
    if (m->set != TC_SMOKE) {
        list_lengths(m);
        tc_emit(m, call_line(m, &split, 3, NULL, TC_LAYOUT_DENSE));
        tc_line far = call_line(m, &(struct sized){2, {7, 4099}, 1}, 3, NULL, TC_LAYOUT_DENSE);
        tc_line_add(&far, "data=outlier");
        if (tc_record_arg(m->record, "eps") >= 0) { /* which finds the mean itself */
            tc_line biased =
                call_line(m, &(struct sized){2, {7, 4099}, 1}, 3, NULL, TC_LAYOUT_DENSE);
            tc_line_add(&biased, "data=biased");
            tc_emit(m, far);
            if (m->types[0] != TN_BF16) /* whose means are all alike there */
                tc_emit(m, biased);
        }
    }
    while (tc_has_large(m) && ranks.rank++ < TC_MAX_RANK) {
        ranks.n_dims = (ranks.rank + 1) / 2;
        tc_emit(m, call_line(m, &ranks, 3, NULL, TC_LAYOUT_REVERSED));
    }
    for (int k = 0; k < (m->set == TC_SMOKE ? 2 : TC_LENGTH(sized)); k++) {
        /* Pairs that cancel have no mean; one NaN spoils a row, so that there must be several. */
        uint32_t without = TC_DATA_BIT(TC_DATA_CANCEL) |
                           (k == 0 || k == 2 || k == 9 ? 0 : TC_DATA_BIT(TC_DATA_SPECIAL));
        for (int with = 0; with < 4; with++) {
            tc_line l = call_line(m, &sized[k], with, NULL, TC_LAYOUT_DENSE);
            if (with == 3)
                tc_emit_data(m, &l, without);
            else if (with < 2 || m->record->n_outs == 3)
                tc_emit(m, l);
        }
        for (int layout = 1; k < 3 && m->set != TC_SMOKE && layout < TC_LAYOUT_ZERO_ALL; layout++) {
            tc_emit(m, call_line(m, &sized[k], 3, NULL, (tc_layout)layout));
            for (uint32_t a = 0; a < m->record->n_args; a++)
                if (m->record->args[a].kind == TC_ARG_TENSOR)
                    tc_emit(m,
                            call_line(m, &sized[k], 3, m->record->args[a].name, (tc_layout)layout));
            if (layout >= TC_N_OUT_LAYOUTS)
                continue;
            tc_line out = call_line(m, &sized[k], 3, "none", TC_LAYOUT_DENSE);
            tc_line_out(&out, m, 0, sized[k].rank, sized[k].sizes, (tc_layout)layout);
            tc_emit(m, out);
        }
    }
    if (m->set != TC_SMOKE)
        list_blocks(m);
}

const tc_family tc_family_norm = {"norm", shapes, terms, NULL, list, list_timed};
