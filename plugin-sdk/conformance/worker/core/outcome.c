/* Calls an operator and reads its results back. */
#include "plugin-sdk/conformance/worker/core/outcome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tc_outcome_finish(tc_outcome *o) {
    for (uint32_t i = 0; i < o->n; i++) {
        free(o->results[i].bytes);
        free(o->results[i].reals);
        free(o->results[i].wholes);
    }
    o->n = 0;
}

static void take_error(tc_outcome *o) {
    o->status = tn_error_status() ? tn_error_status() : TN_ERR_INTERNAL;
    snprintf(o->message, sizeof o->message, "%s", tn_error_message());
    tn_error_clear();
}

/* Reads a tensor; false with an error, or with no_memory set. */
static bool read_result(tc_outcome *o, tn_tensor *t, tn_device cpu, bool has_data) {
    if (o->n == TC_MAX_RESULTS)
        return tn_fail(TN_ERR_INTERNAL, "more than %d results", TC_MAX_RESULTS) == TN_OK;
    tc_result *r = &o->results[o->n++];
    *r = (tc_result){.dtype = tn_dtype_of(t), .rank = (int32_t)tn_rank(t), .numel = tn_numel(t)};
    tn_ints sizes = tn_sizes(t);
    memcpy(r->sizes, sizes.data, (size_t)sizes.n * sizeof *r->sizes);
    if (!has_data)
        return true;
    size_t n = (size_t)r->numel, bytes = n * (size_t)tn_dtype_size(r->dtype);
    r->bytes = malloc(bytes + 1);
    r->reals = malloc((n + 1) * sizeof *r->reals);
    r->wholes = malloc((n + 1) * sizeof *r->wholes);
    if (!r->bytes || !r->reals || !r->wholes) {
        o->no_memory = true;
        return false;
    }
    if (tn_to_host(t, r->bytes, bytes) != TN_OK)
        return false;
    tn_tensor *here = tn_from_data(r->bytes, sizes, r->dtype, cpu);
    if (tn_to_host(tn_to_dtype(here, TN_F64), r->reals, n * sizeof *r->reals) != TN_OK)
        return false;
    if (TN_DTYPES_FLOAT & TN_DTYPE_BIT(r->dtype)) {
        memset(r->wholes, 0, n * sizeof *r->wholes);
        return true;
    }
    return tn_to_host(tn_to_dtype(here, TN_I64), r->wholes, n * sizeof *r->wholes) == TN_OK;
}

/* Gives what the call returned to the scope. */
static uint32_t collect(const tn_op *op, tn_cell *rets, tn_tensor **out) {
    uint32_t n = 0;
    for (uint32_t r = 0; r < tn_op_n_rets(op); r++) {
        if (rets[r].tag == TN_CELL_TENSORS) {
            tn_tensor **list = rets[r].v.pointer;
            for (uint32_t i = 0; i < rets[r].n; i++) {
                tn_give(list[i]);
                if (n < TC_MAX_RESULTS)
                    out[n++] = list[i];
            }
            tn_free_list(&rets[r]);
        } else if (rets[r].tag == TN_CELL_TENSOR && n < TC_MAX_RESULTS) {
            out[n++] = tn_give(rets[r].v.pointer);
        }
    }
    return n;
}

/* A tensor for results, with a gap after each row and column where inputs have them. */
static tn_tensor *make_out(const tc_sample *s, const tc_outcome *shape, tn_device device) {
    const tc_result *r = &shape->results[0];
    int64_t strides[TN_MAX_RANK], offset;
    tc_layout layout = s->layout == TC_EXPANDED ? TC_DENSE : s->layout;
    int64_t extent = tc_layout_strides(layout, r->rank, r->sizes, strides, &offset);
    tn_tensor *flat = tn_empty(TN_SHAPE(extent), r->dtype, device);
    return tn_as_strided(flat, tn_ints_of(r->sizes, r->rank), tn_ints_of(strides, r->rank), offset);
}

static bool call(const tc_operator *op, tc_form form, tc_sample *s, tn_device device, tn_device cpu,
                 const tc_outcome *shape, tc_outcome *o) {
    const char *name = form == TC_INPLACE ? op->inplace : form == TC_OUT ? op->out : op->name;
    const tn_op *found = tn_op_find(name);
    if (!found)
        return false;
    tn_cell args[TC_MAX_ARGS + 1], rets[8] = {{0}};
    uint32_t n_args = tn_op_n_args(found);
    memcpy(args, s->args, sizeof s->args);
    if (form == TC_OUT) {
        tn_tensor *t = make_out(s, shape, device);
        if (!t)
            return false;
        args[n_args - 1] = (tn_cell){.tag = TN_CELL_TENSOR, .v.pointer = t};
    }
    if (tn_op_call(found, args, n_args, rets) != TN_OK)
        return false;
    tn_tensor *results[TC_MAX_RESULTS + 8];
    uint32_t n = collect(found, rets, results);
    const void *into = form == TC_INPLACE ? args[0].v.pointer
                       : form == TC_OUT   ? args[n_args - 1].v.pointer
                                          : NULL;
    if (into && (n != 1 || results[0] != into))
        return tn_fail(TN_ERR_INTERNAL, "%s does not return the tensor it writes", name) == TN_OK;
    for (uint32_t a = 0; form == TC_FUNCTIONAL && a < 8; a++) {
        if (op->written & 1u << a)
            results[n++] = args[a].v.pointer;
    }
    char device_name[64];
    bool has_data =
        strncmp(tn_device_name(device, device_name, sizeof device_name), "meta", 4) != 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!tn_device_equal(tn_device_of(results[i]), device))
            return tn_fail(TN_ERR_DEVICE, "%s: result %u is on another device", name, i) == TN_OK;
        if (!read_result(o, results[i], cpu, has_data))
            return false;
    }
    return true;
}

void tc_call(const tc_operator *op, tc_form form, tc_sample *s, tn_device device, tn_device cpu,
             const tc_outcome *shape, tc_outcome *out) {
    TN_SCOPE;
    memset(out, 0, sizeof *out);
    tn_error_clear();
    if (!call(op, form, s, device, cpu, shape, out) && !out->no_memory)
        take_error(out);
}

static bool may_be_zero(double x, tn_dtype dtype, uint64_t flushes) {
    return (flushes & TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype)) &&
           fabs(x) < ldexp(1, tc_least_exponent(dtype));
}

bool tc_same_bits(const tc_outcome *a, const tc_outcome *b, uint64_t flushes, uint32_t *out_result,
                  int64_t *out_element) {
    *out_result = 0;
    *out_element = 0;
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const tc_result *x = &a->results[i], *y = &b->results[i];
        *out_result = i;
        if (x->dtype != y->dtype || x->numel != y->numel)
            return false;
        size_t size = (size_t)tn_dtype_size(x->dtype);
        for (int64_t e = 0; e < x->numel; e++) {
            *out_element = e;
            bool may_differ = may_be_zero(x->reals[e], x->dtype, flushes) &&
                              may_be_zero(y->reals[e], y->dtype, flushes);
            if (!may_differ &&
                memcmp(x->bytes + (size_t)e * size, y->bytes + (size_t)e * size, size) != 0)
                return false;
        }
    }
    return true;
}
