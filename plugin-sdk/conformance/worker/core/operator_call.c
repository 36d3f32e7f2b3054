/* See operator_call.h. The device `meta` is asked which calls are valid. */
#include "plugin-sdk/conformance/worker/core/operator_call.h"

#include <stdio.h>
#include <string.h>

static const char *const form_names[] = {"functional", "inplace", "out"};

/* ---- lists ------------------------------------------------------------------------------- */

static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I32, TN_I64, TN_U8, TN_BOOL};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes, GROWN = 13 };

/* What can be said of a sample without values: tensors of the shapes and dtypes. */
static bool place_shapes(tc_sample *s, const tc_operator *op, tn_device meta) {
    for (uint32_t i = 0; i < s->n_inputs; i++) {
        tc_input *in = &s->inputs[i];
        in->placed = tn_empty(tn_ints_of(in->sizes, in->rank), in->dtype, meta);
        if (!in->placed)
            return false;
        *in->cell = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = in->placed};
    }
    tc_sample_gather(s);
    if (s->n_inputs == 0 && op->device_arg >= 0)
        s->args[op->device_arg] = (tn_cell){.tag = TN_CELL_I64, .v.i64 = tn_device_pack(meta)};
    if (s->n_inputs == 0 && op->dtype_arg >= 0)
        s->args[op->dtype_arg] = (tn_cell){.tag = TN_CELL_I64, .v.i64 = s->dtype};
    return true;
}

/* May the inputs lie so? Results that share memory cannot be written, and some views ask how their
 * argument lies. */
static bool may_lie(const tc_operator *op, tc_layout layout) {
    if (layout == TC_EXPANDED && op->written)
        return false;
    return layout == TC_DENSE || !(op->flags & TC_GEOMETRY);
}

void tc_operator_call_shapes(const tc_operator_call *p, tc_outcome *out) {
    TN_SCOPE;
    tc_sample s = {.dtype = p->dtype, .scale = p->scale, .layout = p->layout};
    tn_device meta = tn_device_parse("meta");
    memset(out, 0, sizeof *out);
    out->status = TN_ERR_INTERNAL;
    p->op->make(&s);
    if (meta.type && !s.failed && place_shapes(&s, p->op, meta)) {
        tc_outcome functional = {0};
        if (p->form == TC_OUT)
            tc_call(p->op, TC_FUNCTIONAL, &s, meta, meta, NULL, &functional);
        if (functional.status == TN_OK)
            tc_call(p->op, p->form, &s, meta, meta, &functional, out);
        tc_outcome_finish(&functional);
    }
    tn_error_clear();
}

/* Where all tensors of a sample are masks or indices, no case's dtype changes it: it is one of the
 * dtype of the first, or, without tensors, of the result. */
static bool is_of(const tc_operator_call *p, const tc_outcome *shapes) {
    tc_sample s = {.dtype = p->dtype, .scale = 1};
    p->op->make(&s);
    for (uint32_t i = 0; i < s.n_inputs; i++)
        if (s.inputs[i].fill != FILL_MASK && s.inputs[i].fill != FILL_INDEX)
            return true;
    if (s.n_inputs > 0)
        return s.inputs[0].dtype == p->dtype;
    return p->op->dtype_arg >= 0 || shapes->n == 0 || shapes->results[0].dtype == p->dtype;
}

static bool is_taken(const tc_operator_call *p) {
    tc_outcome o = {.status = TN_OK};
    if (!(p->op->flags & TC_DATA))
        tc_operator_call_shapes(p, &o);
    bool taken = o.status == TN_OK && is_of(p, &o);
    tc_outcome_finish(&o);
    return taken;
}

static void emit(const tc_operator_call *p, tc_sink *sink) {
    char line[TC_MAX_LINE];
    int n = snprintf(line, sizeof line, "operator/%s sample=%d T=%s", p->op->name, p->op->index,
                     tn_dtype_name(p->dtype));
    size_t at = (size_t)n;
#define ADD(condition, ...) \
    if (condition) \
    at += (size_t)snprintf(line + at, sizeof line - at, __VA_ARGS__)
    ADD(p->layout != TC_DENSE, " layout=%s", tc_layout_name(p->layout));
    ADD(p->form != TC_FUNCTIONAL, " form=%s", form_names[p->form]);
    ADD(p->whole, " data=whole");
    ADD(p->scale != 1, " scale=%lld", (long long)p->scale);
    ADD(p->decomposed, " how=decomposed");
    ADD(p->invalid, " invalid=%s", tc_mutation_name(p->mutation));
#undef ADD
    sink->line(sink, line);
}

static void note_decomposition(const tn_op_info *info, void *user) {
    *(bool *)user = info->has_decomposition && *info->kernel;
}

static void list_invalid(const tc_operator_call *base, tc_sink *sink) {
    for (int m = 0; m < TC_N_MUTATIONS; m++) {
        TN_SCOPE;
        tc_operator_call p = *base;
        p.invalid = true;
        p.mutation = (tc_mutation)m;
        tc_sample s = {.dtype = p.dtype, .scale = 1};
        p.op->make(&s);
        tn_device meta = tn_device_parse("meta");
        bool refused = false;
        if (place_shapes(&s, p.op, meta)) {
            if (m == TC_MUTATE_DEVICE) {
                /* An operator of two or more tensors refuses two devices; copies do not. */
                refused = s.n_inputs > 1 && s.inputs[s.n_inputs - 1].rank > 0 &&
                          !(p.op->flags & TC_CROSS_DEVICE);
            } else if (tc_mutate(&s, meta, meta, p.mutation)) {
                tc_outcome o;
                tc_call(p.op, TC_FUNCTIONAL, &s, meta, meta, NULL, &o);
                refused = o.status != TN_OK;
                tc_outcome_finish(&o);
            }
        }
        tn_error_clear();
        if (refused)
            emit(&p, sink);
    }
}

/* The lines of one sample and dtype; false where there are none. */
static bool list_calls(const tc_operator *op, tn_dtype dtype, tc_set set, bool decomposes,
                       tc_sink *sink) {
    tc_operator_call p = {.op = op, .dtype = dtype, .scale = 1};
    if (!is_taken(&p))
        return false;
    emit(&p, sink);
    if (set == TC_SMOKE)
        return true;
    bool first = op->index == 0, all = set == TC_EXHAUSTIVE;
    for (int l = 1; l < TC_N_LAYOUTS; l++) {
        p.layout = (tc_layout)l;
        if ((first || all || l == TC_TRANSPOSED) && may_lie(op, p.layout) && op->text[0] != '(' &&
            is_taken(&p))
            emit(&p, sink);
    }
    p.layout = TC_DENSE;
    for (int f = TC_INPLACE; f <= TC_OUT; f++) {
        p.form = (tc_form)f;
        if (!(f == TC_INPLACE ? op->inplace : op->out) || !(first || all) || !is_taken(&p))
            continue;
        emit(&p, sink);
        p.layout = TC_STRIDED;
        emit(&p, sink);
        p.layout = TC_DENSE;
    }
    p.form = TC_FUNCTIONAL;
    if (op->flags & TC_GROWS) {
        p.scale = GROWN;
        if (is_taken(&p)) {
            emit(&p, sink);
            p.layout = TC_TRANSPOSED;
            if (all)
                emit(&p, sink);
            p.layout = TC_DENSE;
        }
        p.scale = 1;
    }
    if (all && (TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype))) {
        p.whole = true;
        emit(&p, sink);
        p.whole = false;
    }
    if (decomposes && (first || all) && (dtype == TN_F32 || all)) {
        p.decomposed = true;
        emit(&p, sink);
        p.decomposed = false;
    }
    bool is_public = !(op->flags & (TC_DERIVATIVE | TC_DATA));
    if (dtype == TN_F32 && is_public && (first || all))
        list_invalid(&p, sink);
    return true;
}

/* f32; i64 too where the operator is about integers; bool where it takes neither. */
static bool is_smoke(const tc_operator *op, tn_dtype dtype, bool taken) {
    return op->index == 0 &&
           (dtype == TN_F32 ||
            (dtype == TN_I64 && (op->tolerance == TC_TOLERANCE_EXACT || !taken)) ||
            (dtype == TN_BOOL && !taken));
}

void tc_operator_list(tc_set set, tc_sink *sink) {
    for (uint32_t i = 0; i < tc_n_operators; i++) {
        const tc_operator *op = &tc_operators[i];
        bool decomposes = false, taken = false;
        tn_op_describe(op->name, note_decomposition, &decomposes);
        for (int d = 0; d < N_DTYPES; d++)
            if (set != TC_SMOKE || is_smoke(op, dtypes[d], taken))
                taken |= list_calls(op, dtypes[d], set, decomposes, sink);
    }
}

/* ---- reading a line ---------------------------------------------------------------------- */

bool tc_operator_call_read(const tc_case *c, tc_operator_call *p, tc_verdict *out) {
    const char *word;
    char why[TC_MESSAGE] = "";
    int64_t sample = 0;
    *p = (tc_operator_call){.dtype = TN_F32, .scale = 1};
    if ((word = tc_case_get(c, "sample")) && !tc_read_int(word, &sample, why))
        goto bad;
    for (uint32_t i = 0; i < tc_n_operators && !p->op; i++) {
        if (strcmp(tc_operators[i].name, c->subject) == 0 && tc_operators[i].index == sample)
            p->op = &tc_operators[i];
    }
    if (!p->op) {
        snprintf(why, sizeof why, "%s has no sample %lld", c->subject, (long long)sample);
        goto bad;
    }
    if ((word = tc_case_get(c, "T")) && !tc_read_dtype(word, &p->dtype, why))
        goto bad;
    if ((word = tc_case_get(c, "scale")) &&
        (!tc_read_int(word, &p->scale, why) || p->scale < 1 || p->scale > 64)) {
        snprintf(why, sizeof why, "scale=%s: a number from 1 to 64", word);
        goto bad;
    }
    if ((word = tc_case_get(c, "layout")) && !tc_layout_find(word, &p->layout)) {
        snprintf(why, sizeof why, "layout=%s is none", word);
        goto bad;
    }
    if ((word = tc_case_get(c, "form"))) {
        while (p->form < TC_OUT && strcmp(word, form_names[p->form]) != 0)
            p->form++;
        if (strcmp(word, form_names[p->form]) != 0 || (p->form == TC_INPLACE && !p->op->inplace) ||
            (p->form == TC_OUT && !p->op->out)) {
            snprintf(why, sizeof why, "form=%s: the operator has no such form", word);
            goto bad;
        }
    }
    if ((word = tc_case_get(c, "data")))
        p->whole = strcmp(word, "whole") == 0;
    if ((word = tc_case_get(c, "how")))
        p->decomposed = strcmp(word, "decomposed") == 0;
    if ((word = tc_case_get(c, "invalid"))) {
        p->invalid = true;
        if (!tc_mutation_find(word, &p->mutation)) {
            snprintf(why, sizeof why, "invalid=%s is none", word);
            goto bad;
        }
    }
    return true;
bad:
    return TC_CASE_ERROR(out, "%s", why);
}
