/* gradient/NAME sample=N [layout=] order=1|2
 *
 * Derivatives on the subject. With f64, against finite differences (tn_gradcheck,
 * tn_gradgradcheck). A device without f64 has too few digits for differences: a central difference
 * in f32 is good to about the cube root of its precision, 5e-3. There the derivative of a weighted
 * sum of the results is compared with that of the CPU in f64, which finite differences have
 * checked. */
#include "plugin-sdk/conformance/worker/core/classes.h"
#include "plugin-sdk/conformance/worker/core/outcome.h"
#include "plugin-sdk/conformance/worker/core/device_pair.h"
#include "plugin-sdk/conformance/worker/core/lacks.h"
#include "plugin-sdk/conformance/worker/core/refuse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a derivative in f32, by the largest element of the CPU's: some hundred roundings, the second
 * derivative passing through formulas of formulas. */
#define F32_TOLERANCE 1e-4

/* ---- lists ------------------------------------------------------------------------------- */

static bool is_listed(const tc_operator *op) {
    return op->order != TC_CONSTANT && !(op->flags & TC_RANDOM) && !op->written;
}

/* Has the sample a tensor to differentiate by? */
static bool has_reals(const tc_operator *op) {
    tc_sample s = {.dtype = TN_F64, .scale = 1};
    op->make(&s);
    for (uint32_t i = 0; i < s.n_inputs; i++) {
        if (s.inputs[i].dtype == TN_F64)
            return true;
    }
    return false;
}

static void list(tc_set set, tc_sink *sink) {
    for (uint32_t i = 0; i < tc_n_operators; i++) {
        const tc_operator *op = &tc_operators[i];
        if (!is_listed(op) || !has_reals(op) || (set == TC_SMOKE && (op->index > 0 || i % 4 != 0)))
            continue;
        for (int order = 1; order <= (op->order == TC_SECOND_ORDER ? 2 : 1); order++) {
            for (int l = 0; l < TC_EXPANDED; l++) {
                bool main_layout = l == TC_DENSE || l == TC_STRIDED;
                if (l != TC_DENSE && (op->flags & TC_GEOMETRY))
                    continue;
                if ((set == TC_SMOKE && (l || order > 1)) || (set == TC_STANDARD && !main_layout))
                    continue;
                char line[TC_MAX_LINE];
                snprintf(line, sizeof line, "gradient/%s sample=%d layout=%s order=%d", op->name,
                         op->index, tc_layout_name((tc_layout)l), order);
                sink->line(sink, line);
            }
        }
    }
}

/* ---- the function under test ------------------------------------------------------------- */

typedef struct function {
    const tn_op *op;
    tc_sample *s;
    tn_cell *cells[TC_MAX_TENSORS]; /* of the differentiable inputs */
} function;

/* The operator with `inputs` in the places of the sample's, its differentiable results kept. */
static tn_status apply(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                       uint64_t *n_outputs, void *user) {
    function *f = user;
    for (uint64_t i = 0; i < n_inputs; i++)
        f->cells[i]->v.pointer = inputs[i];
    tc_sample_gather(f->s);
    tn_cell rets[8] = {{0}};
    tn_status status = tn_op_call(f->op, f->s->args, tn_op_n_args(f->op), rets);
    *n_outputs = 0;
    for (uint32_t r = 0; status == TN_OK && r < tn_op_n_rets(f->op); r++) {
        bool is_list = rets[r].tag == TN_CELL_TENSORS;
        tn_tensor **list = is_list ? rets[r].v.pointer : (tn_tensor **)&rets[r].v.pointer;
        uint64_t n = is_list ? rets[r].n : 1;
        for (uint64_t i = 0; i < n; i++) {
            tn_tensor *t = tn_give(list[i]);
            if (tn_requires_grad(t) && *n_outputs < 8)
                outputs[(*n_outputs)++] = t;
        }
        if (is_list)
            tn_free_list(&rets[r]);
    }
    return status;
}

/* Places the sample and collects what is differentiable. */
static bool make_inputs(function *f, const tc_operator *op, tn_device device, tc_place place,
                        tn_tensor **inputs, uint64_t *n) {
    *n = 0;
    if (!tc_sample_place(f->s, op, device, place))
        return false;
    for (uint32_t i = 0; i < f->s->n_inputs; i++) {
        tc_input *in = &f->s->inputs[i];
        if (in->fill == FILL_MASK || in->fill == FILL_INDEX)
            continue;
        inputs[*n] = tn_set_requires_grad(tn_detach(in->placed), true);
        f->cells[*n] = in->cell;
        if (!inputs[(*n)++])
            return false;
    }
    return true;
}

/* ---- without f64 ------------------------------------------------------------------------- */

/* Weights that differ from element to element, the same on every device. */
static tn_tensor *weighted_sum(tn_tensor *const *terms, uint64_t n) {
    tn_tensor *sum = NULL;
    for (uint64_t i = 0; i < n; i++) {
        if (!terms[i])
            continue;
        double weights[4096];
        int64_t numel = tn_numel(terms[i]);
        if (numel > 4096)
            return NULL;
        for (int64_t e = 0; e < numel; e++)
            weights[e] = 0.5 + (double)(e * 5 % 7) / 8;
        tn_tensor *w = tn_from_data(weights, tn_sizes(terms[i]), TN_F64, tn_device_parse("cpu:0"));
        w = tn_to_device(tn_to_dtype(w, tn_dtype_of(terms[i])), tn_device_of(terms[i]));
        tn_tensor *part = tn_sum(tn_mul(terms[i], w));
        sum = sum ? tn_add(sum, part) : part;
    }
    return sum;
}

/* Derivatives of the weighted sum, of that order, into grads. */
static bool derive(function *f, tn_tensor *const *inputs, uint64_t n, int64_t order,
                   tn_tensor **grads) {
    tn_tensor *outputs[8];
    uint64_t n_outputs = 0;
    if (apply(inputs, n, outputs, &n_outputs, f) != TN_OK)
        return false;
    tn_tensor *root = weighted_sum(outputs, n_outputs);
    if (!root || tn_gradients(&root, NULL, 1, inputs, n, order == 2, order == 2, true, grads))
        return false;
    if (order == 1)
        return true;
    tn_tensor *second = weighted_sum(grads, n);
    for (uint64_t i = 0; i < n; i++)
        grads[i] = NULL;
    return second && (!tn_requires_grad(second) || tn_gradients(&second, NULL, 1, inputs, n, false,
                                                                false, true, grads) == TN_OK);
}

static bool read_grad(tn_tensor *t, tn_device cpu, double *out, int64_t n) {
    memset(out, 0, (size_t)n * sizeof *out);
    return !t || tn_to_host(tn_to_dtype(tn_to_device(t, cpu), TN_F64), out,
                            (uint64_t)n * sizeof *out) == TN_OK;
}

/* Why a derivative was not to be had: something is missing, or wrong. */
static void judge_failure(const tc_operator *op, const tc_device_pair *pair, tc_verdict *out) {
    tc_outcome failure = {.status = tn_error_status()};
    snprintf(failure.message, sizeof failure.message, "%s", tn_error_message());
    tc_verdict_set(out, tc_is_clean_lack(&failure, pair->name) ? TC_UNSUPPORTED : TC_FAIL, TNP_NONE,
                   "%s(%s): %s", op->name, op->text, failure.message);
}

static void compare_with_cpu(const tc_operator *op, tc_sample *s, function *f, int64_t order,
                             const tc_device_pair *pair, tc_verdict *out) {
    tn_tensor *a[TC_MAX_TENSORS], *b[TC_MAX_TENSORS], *ga[TC_MAX_TENSORS] = {0},
                                                      *gb[TC_MAX_TENSORS] = {0};
    uint64_t n, m;
    if (!make_inputs(f, op, pair->cpu, TC_PLACE_WIDE, b, &m) || !derive(f, b, m, order, gb)) {
        TC_CASE_ERROR(out, "the reference: %s", tn_error_message());
        return;
    }
    if (!make_inputs(f, op, pair->subject, TC_PLACE_CASE, a, &n) || !derive(f, a, n, order, ga)) {
        judge_failure(op, pair, out);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        double x[4096], y[4096], largest = 1;
        int64_t numel = tn_numel(a[i]);
        if (numel > 4096 || !read_grad(ga[i], pair->cpu, x, numel) ||
            !read_grad(gb[i], pair->cpu, y, numel)) {
            tc_verdict_set(out, TC_FAIL, TNP_NONE, "reading a gradient: %s", tn_error_message());
            return;
        }
        for (int64_t e = 0; e < numel; e++)
            largest = fmax(largest, fabs(y[e]));
        for (int64_t e = 0; e < numel; e++) {
            double share = fabs(x[e] - y[e]) / (F32_TOLERANCE * largest);
            if (share > out->share || !out->measured) {
                out->measured = true;
                out->share = share;
                out->worst = e;
            }
            if (!(share <= 1))
                tc_verdict_set(out, TC_FAIL, TNP_NONE,
                               "%s(%s): derivative by input %llu, element %lld: %.9g, the CPU %.9g",
                               op->name, op->text, (unsigned long long)i, (long long)e, x[e], y[e]);
        }
    }
}

/* ---- one case ---------------------------------------------------------------------------- */

static const tc_operator *find(const char *name, int64_t index) {
    for (uint32_t i = 0; i < tc_n_operators; i++) {
        if (strcmp(tc_operators[i].name, name) == 0 && tc_operators[i].index == index)
            return &tc_operators[i];
    }
    return NULL;
}

static void run_sample(const tc_operator *op, tc_sample *s, int64_t order,
                       const tc_device_pair *pair, tc_verdict *out) {
    TN_SCOPE;
    function f = {.op = tn_op_find(op->name), .s = s};
    if (!f.op || !tc_sample_init(s, op, pair->cpu)) {
        TC_CASE_ERROR(out, "the case's values: %s", s->failed ? "no memory" : tn_error_message());
        return;
    }
    if (s->dtype != TN_F64) {
        compare_with_cpu(op, s, &f, order, pair, out);
        return;
    }
    tn_tensor *inputs[TC_MAX_TENSORS];
    uint64_t n;
    tn_status status =
        make_inputs(&f, op, pair->subject, TC_PLACE_CASE, inputs, &n)
            ? (order == 2 ? tn_gradgradcheck : tn_gradcheck)(apply, &f, inputs, n, NULL)
            : tn_error_status();
    if (status != TN_OK)
        judge_failure(op, pair, out);
}

/* In f64 where the device has all it takes for that, else in f32. */
static void run_widest(const tc_operator *op, const tc_sample *blank, tc_sample *s, int64_t order,
                       const tc_device_pair *pair, tc_verdict *out) {
    char lacks[TC_LACKS_TEXT];
    for (tn_dtype dtype = TN_F64;; dtype = TN_F32) {
        if (dtype == TN_F64 && !tn_device_has_dtype(pair->subject, TN_F64))
            continue;
        *s = *blank;
        s->dtype = dtype;
        *out = (tc_verdict){.status = TC_PASS};
        tn_fallback_reset();
        tn_error_clear();
        run_sample(op, s, order, pair, out);
        tn_error_clear();
        tc_sample_finish(s);
        if (out->status == TC_PASS && tn_fallback_count() > 0)
            tc_verdict_set(out, TC_UNSUPPORTED, TNP_NONE, "%s; it went through the host",
                           tc_lacks_text(pair, 0, lacks));
        if (out->status != TC_UNSUPPORTED || dtype == TN_F32)
            return;
    }
}

static void run_case(const tc_case *c, const tc_options *options, tc_verdict *out) {
    int64_t sample = 0, order = 1;
    char why[TC_MESSAGE] = "";
    const char *word;
    tc_layout layout = TC_DENSE;
    bool good = (!(word = tc_case_get(c, "sample")) || tc_read_int(word, &sample, why)) &&
                (!(word = tc_case_get(c, "order")) || tc_read_int(word, &order, why));
    const tc_operator *op = find(c->subject, sample);
    word = tc_case_get(c, "layout");
    if (!good || !op || order < 1 || order > 2 ||
        (word && (!tc_layout_find(word, &layout) || layout == TC_EXPANDED))) {
        TC_CASE_ERROR(out, "%s",
                      *why ? why : "sample= or layout= names none, or order= is not 1 or 2");
        return;
    }
    const tc_device_pair *pair = tc_device_pair_open(options, TC_MODE_NATIVE, out);
    if (!pair)
        return;
    tc_sample *samples = calloc(2, sizeof *samples);
    if (!samples) {
        TC_CASE_ERROR(out, "no memory");
        return;
    }
    samples[0] = (tc_sample){.layout = layout, .scale = 1, .state = c->seed};
    run_widest(op, &samples[0], &samples[1], order, pair, out);
    if (out->status == TC_FAIL && !tc_device_pair_is_usable(pair))
        tc_verdict_set(out, TC_FAIL, TNP_NONE, "the device does not add afterwards");
    free(samples);
}

const tc_class tc_gradient_class = {.name = "gradient", .list = list, .run = run_case};
