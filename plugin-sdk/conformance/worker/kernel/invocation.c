/* See invocation.h. Filling is in fill.c. */
#include "plugin-sdk/conformance/worker/kernel/invocation.h"

#include "plugin-sdk/conformance/worker/kernel/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WRONG(...) tc_why(why, TC_MESSAGE, __VA_ARGS__)

static const char *const data_names[TC_N_DATA] = {
    "exact",      "random", "wide",     "cancel", "biased",      "special",     "carry",
    "exponents",  "near",   "ones",     "null",   "null-first",  "rising",      "falling",
    "outlier",    "every",  "infinite", "faint",  "faint-first", "faint-added", "faint-lone",
    "faint-left", "ties",   "digits",   "ordered"};

const char *tc_data_name(tc_data data) {
    return data_names[data];
}

static bool read_data(const tc_case *c, tc_data *out, char why[TC_MESSAGE]) {
    const char *text = tc_case_get(c, "data");
    *out = TC_DATA_RANDOM;
    if (!text)
        return true;
    for (int k = 0; k < TC_N_DATA; k++)
        if (strcmp(text, data_names[k]) == 0) {
            *out = (tc_data)k;
            return true;
        }
    char names[256] = "";
    for (size_t k = 0, n = 0; k < TC_N_DATA && n < sizeof names; k++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", k ? ", " : "", data_names[k]);
    return WRONG("data=%s: one of %s", text, names);
}

static bool read_types(const tc_case *c, tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_record *r = call->record;
    for (uint32_t t = 0; t < r->n_types; t++) {
        const char *text = tc_case_get(c, r->type_names[t]);
        if (!text)
            return WRONG("%s needs %s=DTYPE", r->op, r->type_names[t]);
        if (!tc_read_dtype(text, &call->types[t], why))
            return false;
        if (!(r->dtypes[t] & TN_DTYPE_BIT(call->types[t])))
            return WRONG("%s=%s: no dtype of %s", r->type_names[t], text, r->op);
    }
    return true;
}

/* A number that is whole only, where the first type variable is no floating one. */
static bool read_scalar(const char *text, bool floating, tc_value *v, char why[TC_MESSAGE]) {
    if (!floating) {
        if (!tc_read_int(text, &v->i, why))
            return false;
        v->f = (double)v->i;
        return true;
    }
    if (!tc_read_number(text, &v->f, why))
        return false;
    v->i = fabs(v->f) < 0x1p62 ? (int64_t)v->f : 0;
    return true;
}

static bool read_arg(const tc_invocation *call, uint32_t a, const char *text, tc_value *v,
                     char why[TC_MESSAGE]) {
    const tc_arg *arg = &call->record->args[a];
    v->none = arg->optional && strcmp(text, "none") == 0;
    if (v->none)
        return true;
    switch (arg->kind) {
    case TC_ARG_TENSOR:
        v->tensor.dtype = tc_dtype_of(call->record->arg_types[a], call->types);
        if (!tc_read_shape(text, &v->tensor.shape, why))
            return false;
        return v->tensor.shape.numel > 0
                   ? true
                   : WRONG("%s=%s: kernels are called with elements only", arg->name, text);
    case TC_ARG_SCALAR:
        return read_scalar(text, tc_is_float(call->types[0]), v, why);
    case TC_ARG_FLOAT:
        return tc_read_number(text, &v->f, why);
    case TC_ARG_INT:
        return tc_read_int(text, &v->i, why);
    case TC_ARG_BOOL:
        return tc_read_bool(text, &v->boolean, why);
    case TC_ARG_INTS:
        return tc_read_ints(text, v->ints, &v->n_ints, why);
    case TC_ARG_STRING:
        v->string = text;
        return true;
    }
    return false;
}

static bool read_args(const tc_case *c, tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_record *r = call->record;
    for (uint32_t a = 0; a < r->n_args; a++) {
        const char *text = tc_case_get(c, r->args[a].name);
        if (!text)
            return WRONG("%s needs %s=…: %s", r->op, r->args[a].name, r->schema);
        if (!read_arg(call, a, text, &call->args[a], why))
            return false;
    }
    return true;
}

/* Which argument `name` names, or -1 where the parameter was not given. */
static bool read_arg_name(const tc_case *c, const char *name, const tc_invocation *call,
                          int32_t *out, char why[TC_MESSAGE]) {
    const char *text = tc_case_get(c, name);
    *out = text ? tc_record_arg(call->record, text) : -1;
    if (text &&
        (*out < 0 || call->record->args[*out].kind != TC_ARG_TENSOR || call->args[*out].none))
        return WRONG("%s=%s: %s has no such tensor", name, text, call->record->op);
    return true;
}

static bool has_memory(const tc_invocation *call, uint32_t a) {
    return call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
           call->scalar != (int32_t)a;
}

/* Indices stay apart: what is in range is for them alone to say. */
static bool may_share(const tc_invocation *call, uint32_t a) {
    return has_memory(call, a) && !tc_holds_indices(&call->record->args[a]);
}

/* May what one argument holds be looked at as another? Indices are numbers like others. */
static bool may_lie(const tc_invocation *call, uint32_t a, uint32_t within) {
    const tc_arg *arg = &call->record->args[a], *of = &call->record->args[within];
    return a != within && may_share(call, a) &&
           (call->record->pointwise || tc_holds_indices(of) ||
            (arg->low <= of->low && of->high <= arg->high));
}

static bool share(tc_invocation *call, char why[TC_MESSAGE]) {
    if (call->shared < 0)
        return true;
    const tc_operand *of = &call->args[call->shared].tensor;
    for (uint32_t a = 0; a < call->record->n_args && may_share(call, (uint32_t)call->shared); a++) {
        tc_operand *o = &call->args[a].tensor;
        if (a == (uint32_t)call->shared || !may_share(call, a) || o->dtype != of->dtype ||
            !tc_same_sizes(&o->shape, &of->shape))
            continue;
        o->shape = of->shape;
        call->sharing |= 1u << a;
    }
    return call->sharing ? true : WRONG("shared: no other argument has its dtype and sizes");
}

/* All places of `of` are its elements', and what it gets behind them (fill.c) is as good: whoever lies there finds
 * numbers. */
static bool lie_within(tc_invocation *call, char why[TC_MESSAGE]) {
    if (call->within < 0)
        return true;
    tc_operand *of = &call->args[call->within].tensor;
    int64_t extent = of->shape.extent;
    if (call->in_place >= 0 || call->shared >= 0 || call->scalar >= 0 || !tc_is_dense(&of->shape))
        return WRONG("within: a dense argument, of a call that has no other form");
    for (uint32_t a = 0; a < call->record->n_args && has_memory(call, (uint32_t)call->within);
         a++) {
        const tc_operand *o = &call->args[a].tensor;
        if (may_lie(call, a, (uint32_t)call->within) && o->dtype == of->dtype &&
            o->shape.offset >= of->shape.offset && o->shape.offset < extent) {
            call->inner |= 1u << a;
            if (o->shape.extent > of->shape.extent)
                of->shape.extent = o->shape.extent;
        }
    }
    return call->inner ? true : WRONG("within: no other argument has its dtype and lies there");
}

static bool read_only(const tc_case *c, tc_invocation *call, char why[TC_MESSAGE]) {
    const char *text = tc_case_get(c, "only");
    call->only = -1;
    if (!text)
        return true;
    if (!tc_read_int(text, &call->only, why))
        return false;
    return call->only >= 0 ? true : WRONG("only=%s: an element's row-major index", text);
}

static bool read_memory(const tc_case *c, tc_invocation *call, char why[TC_MESSAGE]) {
    static const char *const names[] = {NULL, "apart", "one", "fenced", "fenced-before"};
    const char *text = tc_case_get(c, "memory");
    for (int i = 1; text && i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(text, names[i]) == 0)
            call->memory = (tc_memory)i;
    return !text || call->memory ? true
                                 : WRONG("memory=%s: apart, one, fenced or fenced-before", text);
}

/* The parameter of an output is "out", or "out0" and so on where there are several. */
static bool read_outs(const tc_case *c, tc_invocation *call, char why[TC_MESSAGE]) {
    const tc_record *r = call->record;
    for (uint32_t o = 0; o < r->n_outs; o++) {
        tc_operand *out = &call->outs[o].tensor;
        out->dtype = tc_dtype_of(r->out_types[o], call->types);
        char room[TC_OUT_NAME];
        const char *name = tc_record_out(r, o, room), *text = tc_case_get(c, name);
        if (!text)
            continue;
        tc_shape given;
        if (!tc_read_shape(text, &given, why))
            return false;
        if (r->family == &tc_family_factory)
            out->shape = given; /* what a factory makes, nothing but the output tells */
        if (r->rank && given.rank != r->rank)
            return WRONG("%s=%s: the output has %d dimension(s)", name, text, r->rank);
        if (!tc_same_sizes(&given, &out->shape)) {
            char expected[TC_MESSAGE / 2];
            return WRONG("%s=%.64s: the output is %.100s", name, text,
                         tc_write_shape(&out->shape, expected, sizeof expected));
        }
        out->shape = given;
        if (tc_has_zero_stride(&given))
            return WRONG("%s=%s: elements of an output have places of their own", name, text);
    }
    for (uint32_t o = 0; o < r->n_outs; o++)
        if (call->outs[o].tensor.shape.numel < 1)
            return WRONG("%s: the output has no elements, or no shape was given (out=SHAPE)",
                         r->op);
    return true;
}

static bool known_parameters(const tc_case *c, const tc_record *r, char why[TC_MESSAGE]) {
    static const char *const common[] = {"data", "in-place", "shared", "scalar", "seed",  "how",
                                         "bad",  "at",       "salt",   "out",    "out0",  "out1",
                                         "out2", "only",     "drawn",  "memory", "within"};
    for (uint32_t i = 0; i < c->n_params; i++) {
        const char *name = c->params[i].name;
        bool known = tc_record_arg(r, name) >= 0;
        for (uint32_t t = 0; t < r->n_types && !known; t++)
            known = tc_same_word(name, r->type_names[t]);
        for (size_t k = 0; k < sizeof common / sizeof *common && !known; k++)
            known = tc_same_word(name, common[k]);
        if (!known)
            return WRONG("'%s' is no parameter of %s: %s", name, r->op, r->schema);
    }
    return true;
}

bool tc_invocation_parse(const tc_case *c, tc_arena *arena, tc_invocation *call,
                         char why[TC_MESSAGE]) {
    memset(call, 0, sizeof *call);
    call->arena = arena;
    call->seed = c->seed;
    call->record = tc_record_find(c->subject);
    if (!call->record)
        return WRONG("'%s' is no kernel operator", c->subject);
    if (!known_parameters(c, call->record, why) || !read_data(c, &call->data, why) ||
        !read_types(c, call, why) || !read_args(c, call, why) ||
        !read_arg_name(c, "in-place", call, &call->in_place, why) ||
        !read_arg_name(c, "shared", call, &call->shared, why) ||
        !read_arg_name(c, "scalar", call, &call->scalar, why) ||
        !read_arg_name(c, "within", call, &call->within, why) || !read_only(c, call, why) ||
        !read_memory(c, call, why) || !share(call, why) || !lie_within(call, why) ||
        !call->record->family->shapes(call, why) || !read_outs(c, call, why))
        return false;
    if (call->in_place >= 0) {
        const tc_operand *in = &call->args[call->in_place].tensor;
        if (!tc_same_sizes(&in->shape, &call->outs[0].tensor.shape) ||
            in->dtype != call->outs[0].tensor.dtype || tc_has_zero_stride(&in->shape))
            return WRONG("in-place: that argument has not the output's sizes, dtype and places");
        call->outs[0].tensor.shape = in->shape;
    }
    return true;
}

/* Lines come operator by operator: the last answer first. */
const tc_record *tc_record_find(const char *op) {
    static _Atomic uint32_t last;
    uint32_t start = last;
    for (uint32_t k = 0; k < tc_n_records; k++) {
        uint32_t i = start + k < tc_n_records ? start + k : start + k - tc_n_records;
        if (strcmp(tc_records[i].op, op) == 0) {
            last = i;
            return &tc_records[i];
        }
    }
    return NULL;
}

const char *tc_record_out(const tc_record *record, uint32_t k, char name[TC_OUT_NAME]) {
    if (record->n_outs > 1)
        snprintf(name, TC_OUT_NAME, "out%u", k);
    return record->n_outs > 1 ? name : "out";
}

int32_t tc_record_arg(const tc_record *record, const char *name) {
    for (uint32_t a = 0; a < record->n_args; a++)
        if (tc_same_word(record->args[a].name, name))
            return (int32_t)a;
    return -1;
}

bool tc_holds_indices(const tc_arg *arg) {
    static const char *const names[] = {"index", "indices", "target"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(arg->name, names[i]) == 0)
            return true;
    return false;
}

tc_value *tc_invocation_arg(tc_invocation *call, const char *name) {
    int32_t a = tc_record_arg(call->record, name);
    return a < 0 ? NULL : &call->args[a];
}

static bool is_far(const tc_operand *o) {
    return o->shape.extent >= (INT64_C(1) << 30) / (int64_t)tc_dtype_bytes(o->dtype);
}

bool tc_reaches_far(const tc_invocation *call) {
    bool far = false;
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        far |= is_far(&call->outs[k].tensor);
    for (uint32_t a = 0; a < call->record->n_args; a++)
        far |= call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
               is_far(&call->args[a].tensor);
    return far;
}

bool tc_is_extra(const tc_case *c, const tc_invocation *call) {
    return tc_case_get(c, "drawn") || call->memory == TC_MEMORY_ONE || call->within >= 0 ||
           tc_reaches_far(call) ||
           (tc_case_get(c, "seed") && tc_record_arg(call->record, "seed") < 0);
}
