/* operator/NAME sample=N T=DTYPE [layout= form= data= scale= how=decomposed | invalid=]
 *
 * A sample of an operator on the subject, against the same operator on the CPU in f64 (i64 for
 * integers) with the same values. operator_call.c has which lines there are. */
#include "plugin-sdk/conformance/worker/core/classes.h"
#include "plugin-sdk/conformance/worker/core/device_pair.h"
#include "plugin-sdk/conformance/worker/core/lacks.h"
#include "plugin-sdk/conformance/worker/core/operator_call.h"

#include <stdlib.h>
#include <string.h>

typedef struct run {
    const tc_operator_call *call;
    const tc_device_pair *pair;
    tc_sample sample;
    uint64_t seed;
    tc_outcome shape, reference, magnitude, got, dense;
    bool has_shape;
    tc_verdict *out;
} run;

static void suite_error(run *r, const char *what) {
    TC_CASE_ERROR(r->out, "%s: %s", what, r->sample.failed ? "no memory" : tn_error_message());
    tn_error_clear();
}

static tc_place reference_place(const run *r) {
    const tc_operator_call *p = r->call;
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

/* Tensors of integers are compared with what a scalar is in their dtype. The reference has the
 * tensors in i64, so it gets the scalar as that. */
static void call_reference(run *r) {
    const tc_operator_call *p = r->call;
    tn_device cpu = r->pair->cpu;
    tn_cell args[TC_MAX_ARGS];
    memcpy(args, r->sample.args, sizeof args);
    bool compares = r->has_shape && (p->op->flags & TC_POINTWISE) &&
                    r->shape.results[0].dtype == TN_BOOL &&
                    (TN_DTYPES_INT & TN_DTYPE_BIT(p->dtype));
    for (uint32_t i = 0; compares && i < TC_MAX_ARGS; i++)
        if (args[i].tag == TN_CELL_I64)
            r->sample.args[i].v.i64 = tc_wrap(args[i].v.i64, p->dtype);
    tc_call(p->op, TC_FUNCTIONAL, &r->sample, cpu, cpu, NULL, &r->reference);
    memcpy(r->sample.args, args, sizeof args);
}

/* What the CPU says; false with the verdict set. */
static bool make_reference(run *r) {
    const tc_operator_call *p = r->call;
    tn_device cpu = r->pair->cpu;
    TN_SCOPE;
    rewind_generators(r);
    if (!tc_sample_place(&r->sample, p->op, cpu, reference_place(r))) {
        suite_error(r, "the reference's arguments");
        return false;
    }
    call_reference(r);
    if (r->reference.status || r->reference.no_memory)
        return TC_CASE_ERROR(r->out, "the reference: %s", r->reference.message);
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
    const tc_operator_call *p = r->call;
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
    const tc_operator_call *p = r->call;
    tn_device subject = r->pair->subject;
    TN_SCOPE;
    rewind_generators(r);
    if (!tc_sample_place(&r->sample, p->op, subject, place)) {
        memset(o, 0, sizeof *o);
        o->status = tn_error_status() ? tn_error_status() : TN_ERR_OUT_OF_MEMORY;
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

bool tc_has_kernel(const char *op, const char *device, tn_dtype dtype) {
    kernel_search k = {.device = device, .dtype = dtype};
    tn_op_kernels(op, look_at_kernel, &k);
    return k.found;
}

/* Is the operator made of others on this device, for want of a kernel? */
static bool is_done_in_steps(const run *r) {
    const tc_operator_call *p = r->call;
    tn_dtype dtype = p->dtype;
    if (p->op->flags & (TC_COMPOSITE | TC_VIEW))
        return false; /* known without asking */
    /* Integers are computed in the dtype of the result. */
    if (r->has_shape && r->shape.n && !(TN_DTYPES_FLOAT & TN_DTYPE_BIT(p->dtype)))
        dtype = r->shape.results[0].dtype;
    return !tc_has_kernel(p->op->name, r->pair->name, dtype);
}

/* The dtypes of tensors that go into the call and come out of it. */
static uint64_t dtypes_of(const run *r) {
    uint64_t mask = 0;
    for (uint32_t i = 0; i < r->sample.n_inputs; i++)
        mask |= TN_DTYPE_BIT(r->sample.inputs[i].dtype);
    for (uint32_t i = 0; r->has_shape && i < r->shape.n; i++)
        mask |= TN_DTYPE_BIT(r->shape.results[i].dtype);
    return mask;
}

/* All that the call lacks, by one more with the CPU standing in. */
static const char *find_lacks(run *r, char text[TC_LACKS_TEXT]) {
    tc_verdict so_far = *r->out;
    tc_outcome again;
    tc_lacks_begin();
    call_subject(r, TC_PLACE_CASE, &again);
    tc_lacks_end();
    tc_outcome_finish(&again);
    *r->out = so_far;
    return tc_lacks_text(r->pair, dtypes_of(r), text);
}

static void check_failure(run *r, const tc_outcome *o) {
    char lacks[TC_LACKS_TEXT] = "";
    bool clean = tc_is_clean_lack(o, r->pair->name);
    if (clean)
        find_lacks(r, lacks);
    tc_verdict_set(r->out, clean ? TC_UNSUPPORTED : TC_FAIL, TNP_NONE, "%s%s%s: %.300s", lacks,
                   *lacks ? "; " : "", tn_status_name(o->status), o->message);
}

/* The result is right, but the host had a part in it. */
static void check_copies(run *r) {
    char lacks[TC_LACKS_TEXT];
    if (tn_fallback_count() == 0 || r->out->status != TC_PASS)
        return;
    tc_verdict_set(r->out, TC_UNSUPPORTED, TNP_NONE, "%s; it went through the host",
                   tc_lacks_text(r->pair, 0, lacks));
}

static void check_refusal(run *r) {
    static const tn_status right[] = {TN_ERR_SHAPE,
                                      TN_ERR_DTYPE,
                                      TN_ERR_DEVICE,
                                      TN_ERR_INVALID_ARGUMENT,
                                      TN_ERR_INDEX_OUT_OF_RANGE,
                                      TN_ERR_UNSUPPORTED};
    const tc_outcome *o = &r->got;
    bool is_right = false;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        is_right |= o->status == right[i];
    if (o->status == TN_OK)
        tc_verdict_set(r->out, TC_FAIL, TNP_NONE, "%s(%s): an invalid call is not refused",
                       r->call->op->name, r->call->op->text);
    else if (!is_right || !o->message[0])
        tc_verdict_set(r->out, TC_FAIL, TNP_NONE,
                       "refused with %s: '%s'; expected SHAPE, DTYPE, DEVICE, "
                       "INDEX, INVALID_ARGUMENT or UNSUPPORTED, and why",
                       tn_status_name(o->status), o->message);
}

static void check(run *r) {
    const tc_operator_call *p = r->call;
    if (r->got.no_memory) {
        TC_CASE_ERROR(r->out, "no memory for the results");
        return;
    }
    if (p->invalid) {
        check_refusal(r);
        return;
    }
    if (r->got.status) {
        check_failure(r, &r->got);
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
        check_failure(r, &r->dense);
    else if (!tc_same_bits(&r->got, &r->dense, r->sample.flushes, &result, &element))
        tc_verdict_set(r->out, TC_FAIL, TNP_NONE,
                       "%s(%s): output %u, element %lld: other bits than with dense inputs",
                       p->op->name, p->op->text, result, (long long)element);
}

static void run_call(run *r, const tc_options *options) {
    const tc_operator_call *p = r->call;
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
    for (tn_dtype d = 0; d < TN_DTYPE_COUNT; d++)
        if (tn_device_flushes_subnormals(r->pair->subject, d))
            r->sample.flushes |= TN_DTYPE_BIT(d);
    if (!tc_sample_init(&r->sample, p->op, r->pair->cpu)) {
        suite_error(r, "the case's values");
        return;
    }
    if (!(p->op->flags & TC_DATA)) {
        tc_operator_call_shapes(p, &r->shape);
        r->has_shape = r->shape.status == TN_OK;
    }
    if (!p->invalid && !r->has_shape && !(p->op->flags & TC_DATA)) {
        TC_CASE_ERROR(r->out, "the operator does not take this: %s", r->shape.message);
        return;
    }
    if (!p->invalid && !make_reference(r))
        return;
    tn_fallback_reset();
    call_subject(r, TC_PLACE_CASE, &r->got);
    check(r);
    check_copies(r);
    if ((r->got.status || r->out->status == TC_FAIL) && !tc_device_pair_is_usable(r->pair)) {
        r->out->status = TC_PASS; /* this is worse than what was found before */
        tc_verdict_set(r->out, TC_FAIL, TNP_NONE, "the device does not add after this failed: %s",
                       r->got.message);
    }
}

static void run_case(const tc_case *c, const tc_options *options, tc_verdict *out) {
    tc_operator_call p;
    if (!tc_operator_call_read(c, &p, out))
        return;
    run *r = calloc(1, sizeof *r);
    if (!r) {
        TC_CASE_ERROR(out, "no memory");
        return;
    }
    *r = (run){.call = &p, .out = out, .seed = c->seed >> 1};
    r->sample = (tc_sample){
        .dtype = p.dtype, .layout = p.layout, .scale = p.scale, .whole = p.whole, .state = c->seed};
    run_call(r, options);
    tc_sample_finish(&r->sample);
    tc_outcome *all[] = {&r->shape, &r->reference, &r->magnitude, &r->got, &r->dense};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tc_outcome_finish(all[i]);
    free(r);
}

const tc_class tc_operator_class = {.name = "operator", .list = tc_operator_list, .run = run_case};
