/* operator/NAME sample=N T=DTYPE [layout= form= data= scale= how=decomposed | invalid=]
 *
 * A sample of an operator on the subject, against the same operator on the CPU in f64 (i64 for
 * integers) with the same values. Which lines there are is asked of the device `meta`, which knows
 * what operators take and has no kernels. */
#include "plugin-sdk/conformance/worker/core/classes.h"
#include "plugin-sdk/conformance/worker/core/outcome.h"
#include "plugin-sdk/conformance/worker/core/device_pair.h"
#include "plugin-sdk/conformance/worker/core/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a line says. */
typedef struct plan {
    const tc_operator *op;
    tn_dtype dtype;
    tc_layout layout;
    tc_form form;
    bool whole, decomposed, invalid;
    int64_t scale;
    tc_mutation mutation;
} plan;

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
    bool asks = strcmp(op->name, "view") == 0 || strcmp(op->name, "as_strided") == 0;
    return layout == TC_DENSE || !asks;
}

/* Does the operator need its elements to tell the result's shape? `meta` refuses it then. */
static bool needs_data(const tc_operator *op) {
    return strcmp(op->name, "nonzero") == 0 || strcmp(op->name, "masked_select") == 0;
}

/* The call on `meta`. */
static void call_shapes(const plan *p, tc_outcome *out) {
    TN_SCOPE;
    tc_sample s = {.dtype = p->dtype, .scale = p->scale, .layout = p->layout};
    tn_device meta = tn_device_parse("meta");
    memset(out, 0, sizeof *out);
    out->status = TN_INTERNAL;
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

static bool is_taken(const plan *p) {
    tc_outcome o;
    if (needs_data(p->op))
        return true;
    call_shapes(p, &o);
    tc_outcome_finish(&o);
    return o.status == TN_OK;
}

static void emit(const plan *p, tc_sink *sink) {
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

static void list_invalid(const plan *base, tc_sink *sink) {
    for (int m = 0; m < TC_N_MUTATIONS; m++) {
        TN_SCOPE;
        plan p = *base;
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
                          strncmp(p.op->name, "copy_", 5) != 0;
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

/* The lines of one sample and dtype. */
static void list_plans(const tc_operator *op, tn_dtype dtype, tc_set set, bool decomposes,
                       tc_sink *sink) {
    plan p = {.op = op, .dtype = dtype, .scale = 1};
    if (!is_taken(&p))
        return;
    emit(&p, sink);
    if (set == TC_SMOKE)
        return;
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
    /* Backward operators are called by derivatives only, with what those made. */
    bool is_public = !strstr(op->name, "backward") && !needs_data(op);
    if (dtype == TN_F32 && is_public && (first || all))
        list_invalid(&p, sink);
}

static void list(tc_set set, tc_sink *sink) {
    for (uint32_t i = 0; i < tc_n_operators; i++) {
        const tc_operator *op = &tc_operators[i];
        bool decomposes = false;
        if (set == TC_SMOKE && op->index > 0)
            continue;
        tn_op_describe(op->name, note_decomposition, &decomposes);
        for (int d = 0; d < N_DTYPES; d++) {
            /* A smoke test takes f32, and i64 where the operator is about integers. */
            if (set == TC_SMOKE && dtypes[d] != TN_F32 && dtypes[d] != TN_I64)
                continue;
            if (set == TC_SMOKE && dtypes[d] == TN_I64 && op->tolerance != TC_TOLERANCE_EXACT)
                continue;
            list_plans(op, dtypes[d], set, decomposes, sink);
        }
    }
}

/* ---- reading a line ---------------------------------------------------------------------- */

static bool read_plan(const tc_case *c, plan *p, tc_verdict *out) {
    const char *word;
    char why[TC_MESSAGE] = "";
    int64_t sample = 0;
    *p = (plan){.dtype = TN_F32, .scale = 1};
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
    tc_verdict_set(out, TC_ERROR, TNP_NONE, "%s", why);
    return false;
}

/* ---- running ----------------------------------------------------------------------------- */

typedef struct run {
    const plan *plan;
    const tc_device_pair *pair;
    tc_sample sample;
    uint64_t seed;
    tc_outcome shape, reference, magnitude, got, dense;
    bool has_shape;
    tc_verdict *out;
} run;

static void suite_error(run *r, const char *what) {
    tc_verdict_set(r->out, TC_ERROR, TNP_NONE, "%s: %s", what,
                   r->sample.failed ? "no memory" : tn_error_message());
    tn_error_clear();
}

static tc_place reference_place(const run *r) {
    const plan *p = r->plan;
    uint64_t bit = TN_DTYPE_BIT(p->dtype);
    if ((p->op->flags & TC_RANDOM) || (bit & TN_DTYPE_BIT(TN_BOOL)))
        return TC_PLACE_DENSE;
    if (bit & TN_DTYPES_FLOAT)
        return TC_PLACE_WIDE;
    bool gives_reals = r->has_shape && r->shape.n > 0 &&
                       (TN_DTYPES_FLOAT & TN_DTYPE_BIT(r->shape.results[0].dtype));
    return gives_reals ? TC_PLACE_WIDE : TC_PLACE_WHOLE;
}

static void rewind_generators(const run *r) {
    tn_generator_set(r->pair->subject, r->seed, 0);
    tn_generator_set(r->pair->cpu, r->seed, 0);
}

/* What the CPU says; false with the verdict set. */
static bool make_reference(run *r) {
    const plan *p = r->plan;
    tn_device cpu = r->pair->cpu;
    TN_SCOPE;
    rewind_generators(r);
    if (!tc_sample_place(&r->sample, p->op, cpu, reference_place(r))) {
        suite_error(r, "the reference's arguments");
        return false;
    }
    tc_call(p->op, TC_FUNCTIONAL, &r->sample, cpu, cpu, NULL, &r->reference);
    if (r->reference.status || r->reference.no_memory) {
        tc_verdict_set(r->out, TC_ERROR, TNP_NONE, "the reference: %s", r->reference.message);
        return false;
    }
    bool varies = (TN_DTYPES_FLOAT & TN_DTYPE_BIT(p->dtype)) && !(p->op->flags & TC_RANDOM);
    for (int i = 0; varies && i < 3 && tc_is_sensitive(p->op); i++) {
        tc_outcome moved = {0};
        if (tc_sample_place(&r->sample, p->op, cpu, TC_PLACE_DISTURBED))
            tc_call(p->op, TC_FUNCTIONAL, &r->sample, cpu, cpu, NULL, &moved);
        tc_add_sensitivity(&r->reference, &moved, &r->magnitude);
        tc_outcome_finish(&moved);
    }
    bool has_magnitude = varies && p->op->tolerance != TC_TOLERANCE_COMPOSITE;
    if (has_magnitude && tc_sample_place(&r->sample, p->op, cpu, TC_PLACE_ABSOLUTE))
        tc_call(p->op, TC_FUNCTIONAL, &r->sample, cpu, cpu, NULL, &r->magnitude);
    tn_error_clear();
    return true;
}

/* Reads the inputs back; what the call does not write must be as it was, gaps included. */
static void check_inputs(run *r) {
    const plan *p = r->plan;
    uint32_t written = p->form == TC_INPLACE ? 1 : p->form == TC_OUT ? 0 : p->op->written;
    for (uint32_t i = 0; i < r->sample.n_inputs; i++) {
        tc_input *in = &r->sample.inputs[i];
        if (written & 1u << in->arg)
            continue;
        uint8_t *now = malloc((size_t)in->image_bytes);
        if (!now || tn_to_host(in->flat, now, (uint64_t)in->image_bytes) != TN_OK)
            suite_error(r, "reading the inputs back");
        else if (memcmp(now, in->image, (size_t)in->image_bytes) != 0)
            tc_verdict_set(r->out, TC_FAIL, TNP_NONE,
                           "%s(%s): changes the memory of its argument %u", p->op->name,
                           p->op->text, in->arg);
        free(now);
    }
}

static void call_subject(run *r, tc_place place, tc_outcome *o) {
    const plan *p = r->plan;
    tn_device subject = r->pair->subject;
    TN_SCOPE;
    rewind_generators(r);
    if (!tc_sample_place(&r->sample, p->op, subject, place)) {
        memset(o, 0, sizeof *o);
        o->status = tn_error_status() ? tn_error_status() : TN_OUT_OF_MEMORY;
        snprintf(o->message, sizeof o->message, "%s", tn_error_message());
        tn_error_clear();
        return;
    }
    if (p->invalid && !tc_mutate(&r->sample, subject, r->pair->cpu, p->mutation)) {
        suite_error(r, "the mutation does not apply");
        return;
    }
    tc_call(p->op, p->form, &r->sample, subject, r->pair->cpu, &r->shape, o);
    if (place == TC_PLACE_CASE && o->status == TN_OK && !p->invalid)
        check_inputs(r);
}

/* Looks for a kernel of the subject that takes the case's dtype. */
typedef struct kernel_search {
    const char *device;
    tn_dtype dtype;
    bool found;
} kernel_search;

static void look_at_kernel(const tn_kernel_info *info, void *user) {
    kernel_search *k = user;
    k->found |= strcmp(info->device, k->device) == 0 && (info->dtypes & TN_DTYPE_BIT(k->dtype));
}

/* Is the operator made of others on this device, for want of a kernel? */
static bool is_done_in_steps(const run *r) {
    const plan *p = r->plan;
    kernel_search k = {.device = r->pair->name, .dtype = p->dtype};
    if (p->op->flags & (TC_COMPOSITE | TC_VIEW))
        return false; /* known without asking */
    /* Integers are computed in the dtype of the result. */
    if (r->has_shape && r->shape.n && !(TN_DTYPES_FLOAT & TN_DTYPE_BIT(p->dtype)))
        k.dtype = r->shape.results[0].dtype;
    tn_op_kernels(p->op->name, look_at_kernel, &k);
    return !k.found;
}

static void judge_failure(run *r, const tc_outcome *o) {
    bool clean = tc_is_clean_lack(o, r->pair->name);
    tc_verdict_set(r->out, clean ? TC_UNSUPPORTED : TC_FAIL, TNP_NONE, "%s: %s",
                   tn_status_name(o->status), o->message);
}

static void judge_invalid(run *r) {
    static const tn_status right[] = {
        TN_SHAPE, TN_DTYPE, TN_DEVICE, TN_INVALID_ARGUMENT, TN_INDEX_OUT_OF_RANGE, TN_UNSUPPORTED};
    const tc_outcome *o = &r->got;
    bool is_right = false;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        is_right |= o->status == right[i];
    if (o->status == TN_OK)
        tc_verdict_set(r->out, TC_FAIL, TNP_NONE, "%s(%s): an invalid call is not refused",
                       r->plan->op->name, r->plan->op->text);
    else if (!is_right || !o->message[0])
        tc_verdict_set(r->out, TC_FAIL, TNP_NONE,
                       "refused with %s: '%s'; expected SHAPE, DTYPE, DEVICE, "
                       "INDEX, INVALID_ARGUMENT or UNSUPPORTED, and why",
                       tn_status_name(o->status), o->message);
}

static void judge(run *r) {
    const plan *p = r->plan;
    if (r->got.no_memory) {
        tc_verdict_set(r->out, TC_ERROR, TNP_NONE, "no memory for the results");
        return;
    }
    if (p->invalid) {
        judge_invalid(r);
        return;
    }
    if (r->got.status) {
        judge_failure(r, &r->got);
        return;
    }
    bool random = (p->op->flags & TC_RANDOM) != 0;
    r->got.in_steps = is_done_in_steps(r);
    tc_compare(p->op, &r->sample, &r->got, r->has_shape && !random ? &r->shape : NULL,
               &r->reference, &r->magnitude, r->out);
    /* Layouts must not change bits where nothing is summed in an order of the kernel's choice. */
    bool fixed = p->op->flags & (TC_POINTWISE | TC_VIEW) ||
                 (p->op->tolerance == TC_TOLERANCE_EXACT && !(p->op->flags & TC_COMPOSITE));
    if (p->layout == TC_DENSE || !fixed || r->out->status != TC_PASS)
        return;
    call_subject(r, TC_PLACE_DENSE, &r->dense);
    uint32_t result;
    int64_t element;
    if (r->dense.status)
        judge_failure(r, &r->dense);
    else if (!tc_same_bits(&r->got, &r->dense, &result, &element))
        tc_verdict_set(r->out, TC_FAIL, TNP_NONE,
                       "%s(%s): output %u, element %lld: other bits than with dense inputs",
                       p->op->name, p->op->text, result, (long long)element);
}

static void run_plan(run *r, const tc_options *options) {
    const plan *p = r->plan;
    r->pair =
        tc_device_pair_open(options, p->decomposed ? TC_MODE_DECOMPOSED : TC_MODE_NATIVE, r->out);
    if (!r->pair)
        return;
    if (p->invalid && p->mutation == TC_MUTATE_DEVICE &&
        tn_device_equal(r->pair->subject, r->pair->cpu)) {
        tc_verdict_set(r->out, TC_UNSUPPORTED, TNP_NONE,
                       "the subject is the CPU: there is no second device");
        return;
    }
    if (!tc_sample_init(&r->sample, p->op, r->pair->cpu)) {
        suite_error(r, "the case's values");
        return;
    }
    if (!needs_data(p->op)) {
        call_shapes(p, &r->shape);
        r->has_shape = r->shape.status == TN_OK;
    }
    if (!p->invalid && !r->has_shape && !needs_data(p->op)) {
        tc_verdict_set(r->out, TC_ERROR, TNP_NONE, "the operator does not take this: %s",
                       r->shape.message);
        return;
    }
    if (!p->invalid && !make_reference(r))
        return;
    uint64_t fallbacks = tn_fallback_count();
    call_subject(r, TC_PLACE_CASE, &r->got);
    judge(r);
    if (tn_fallback_count() != fallbacks)
        tc_verdict_set(r->out, TC_FAIL, TNP_NONE, "%s: ran on the CPU", p->op->name);
    if ((r->got.status || r->out->status == TC_FAIL) && !tc_device_pair_is_usable(r->pair)) {
        r->out->status = TC_PASS; /* this is worse than what was found before */
        tc_verdict_set(r->out, TC_FAIL, TNP_NONE, "the device does not add after this failed: %s",
                       r->got.message);
    }
}

static void run_case(const tc_case *c, const tc_options *options, tc_verdict *out) {
    plan p;
    if (!read_plan(c, &p, out))
        return;
    run *r = calloc(1, sizeof *r);
    if (!r) {
        tc_verdict_set(out, TC_ERROR, TNP_NONE, "no memory");
        return;
    }
    *r = (run){.plan = &p, .out = out, .seed = c->seed >> 1};
    r->sample = (tc_sample){
        .dtype = p.dtype, .layout = p.layout, .scale = p.scale, .whole = p.whole, .state = c->seed};
    run_plan(r, options);
    tc_sample_finish(&r->sample);
    tc_outcome *all[] = {&r->shape, &r->reference, &r->magnitude, &r->got, &r->dense};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tc_outcome_finish(all[i]);
    free(r);
}

const tc_class tc_operator_class = {.name = "operator", .list = list, .run = run_case};
