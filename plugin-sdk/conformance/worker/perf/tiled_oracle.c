/* See tiled_oracle.h. */
#include "plugin-sdk/conformance/worker/perf/tiled_oracle.h"

#include "plugin-sdk/conformance/worker/oracle/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- where a call can be cut ------------------------------------------------------------- */

enum { OUT = TC_AXIS_OUT, N_SLOTS = TC_MAX_ARGS + TC_MAX_OUTS };

/* The size that an axis means in an argument or output; NULL where there is none. */
static int64_t *size_at(tc_invocation *call, const tc_axis *x, int slot) {
    int32_t d = x->along[slot] - 1;
    if (d < 0)
        return NULL;
    if (slot >= OUT)
        return &call->outs[slot - OUT].tensor.shape.sizes[d];
    tc_value *v = &call->args[slot];
    if (v->none)
        return NULL;
    return call->record->args[slot].kind == TC_ARG_INTS ? &v->ints[d] : &v->tensor.shape.sizes[d];
}

/* Does the operator work along this dimension of its first argument? */
static bool works_along(const tc_invocation *call, int32_t d) {
    int32_t dim = tc_record_arg(call->record, "dim"), rows = tc_record_arg(call->record, "n_dims");
    if (rows >= 0)
        return d >= call->args[0].tensor.shape.rank - call->args[rows].i;
    if (dim < 0)
        return !call->record->pointwise && call->record->family != &tc_family_pool;
    if (call->record->args[dim].kind == TC_ARG_INT)
        return call->args[dim].i == d;
    for (int32_t i = 0; i < call->args[dim].n_ints; i++)
        if (call->args[dim].ints[i] == d)
            return true;
    return false;
}

/* The first dimension, or the last, along which all tensors of the first one's rank are cut. */
static uint32_t plain_axis(const tc_invocation *call, tc_axis *out) {
    const tc_shape *first = &call->args[0].tensor.shape;
    int32_t d = !works_along(call, 0) ? 0 : first->rank - 1;
    if (call->record->args[0].kind != TC_ARG_TENSOR || first->rank == 0 || works_along(call, d))
        return 0;
    for (uint32_t a = 0; a < call->record->n_args; a++) {
        const tc_value *v = &call->args[a];
        bool sizes = strcmp(call->record->args[a].name, "input_size") == 0;
        if (v->none || (call->record->args[a].kind != TC_ARG_TENSOR && !sizes))
            continue;
        if ((sizes ? v->n_ints : v->tensor.shape.rank) != first->rank)
            continue;
        if ((sizes ? v->ints[d] : v->tensor.shape.sizes[d]) != first->sizes[d])
            return 0;
        out->along[a] = (uint8_t)(d + 1);
    }
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        out->along[OUT + k] = (uint8_t)(d + 1);
    return 1;
}

static uint32_t find_axes(const tc_invocation *call, tc_axis axes[TC_MAX_AXES]) {
    int32_t groups = tc_record_arg(call->record, "groups"),
            dim = tc_record_arg(call->record, "dim");
    memset(axes, 0, TC_MAX_AXES * sizeof *axes);
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
            tc_has_zero_stride(&call->args[a].tensor.shape))
            return 0; /* the part would have to be broadcast as well */
    const tc_axis *known = call->record->axes;
    if (!known[0].along[OUT] || (dim >= 0 && call->args[dim].i != 0))
        return plain_axis(call, axes);
    memcpy(axes, known, sizeof call->record->axes);
    if (groups >= 0 && call->args[groups].i != 1) /* channels belong to groups: images only */
        return axes[0].along[0] == 1 ? 1 : 0;
    uint32_t n = 0;
    while (n < TC_MAX_AXES && axes[n].along[OUT])
        n++;
    return n;
}

/* ---- how far ----------------------------------------------------------------------------- */

/* What the oracle has to do, in elements; a product takes a sixteenth of one. */
static int64_t work(const tc_invocation *call) {
    const tc_family *family = call->record->family;
    bool products = family == &tc_family_matmul || family == &tc_family_convolution;
    int64_t n = 0;
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none)
            n += call->args[a].tensor.shape.numel;
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        n += call->outs[k].tensor.shape.numel * (1 + (products ? family->terms(call) / 16 : 0));
    return n;
}

static bool is_prime(int64_t n) {
    for (int64_t d = 2; d * d <= n; d++)
        if (n % d == 0)
            return false;
    return true;
}

static void set_size(tc_invocation *part, const tc_axis *x, int64_t size) {
    for (int slot = 0; slot < N_SLOTS; slot++) {
        int64_t *at = size_at(part, x, slot);
        if (!at)
            continue;
        *at = size;
        tc_shape *s = slot >= OUT ? &part->outs[slot - OUT].tensor.shape
                      : part->record->args[slot].kind == TC_ARG_TENSOR
                          ? &part->args[slot].tensor.shape
                          : NULL;
        if (s)
            *s = tc_dense(s->rank, s->sizes);
    }
}

/* Takes off the longest axis until the oracle can do the rest in a few hundredths of a second. */
static void shrink(tc_invocation *part) {
    enum { ENOUGH = 50000 };
    tc_axis axes[TC_MAX_AXES];
    uint32_t n = find_axes(part, axes);
    while (work(part) > ENOUGH) {
        const tc_axis *longest = NULL;
        int64_t most = 2, size;
        for (uint32_t i = 0; i < n; i++)
            if (*size_at(part, &axes[i], OUT) > most) {
                longest = &axes[i];
                most = *size_at(part, longest, OUT);
            }
        if (!longest)
            return;
        for (size = most - 1 - most / 4; !is_prime(size); size--)
            ;
        set_size(part, longest, size);
    }
}

/* ---- elements ---------------------------------------------------------------------------- */

/* Elements that lie one behind the other along the last dimension, in the whole and in the part. */
typedef struct stretch {
    int64_t part, part_step, whole, whole_step; /* places */
    int64_t n;
} stretch;

/* The stretch that begins with row-major element i of the whole. */
static stretch stretch_at(const tc_shape *part, const tc_shape *whole, int64_t i) {
    stretch r = {part->offset, 1, whole->offset, 1, 1};
    for (int32_t d = whole->rank - 1; d >= 0; d--) {
        int64_t at = i % whole->sizes[d], in_part = at % part->sizes[d];
        i /= whole->sizes[d];
        r.part += in_part * part->strides[d];
        r.whole += at * whole->strides[d];
        if (d == whole->rank - 1) {
            int64_t rest = whole->sizes[d] - at;
            r.n = part->sizes[d] - in_part < rest ? part->sizes[d] - in_part : rest;
            r.part_step = part->strides[d];
            r.whole_step = whole->strides[d];
        }
    }
    return r;
}

/* Fills the image of the whole with the part's elements. */
static void spread(const tc_operand *part, tc_operand *whole) {
    uint64_t size = tc_dtype_bytes(whole->dtype);
    stretch r;
    for (int64_t i = 0; i < whole->shape.numel; i += r.n) {
        r = stretch_at(&part->shape, &whole->shape, i);
        unsigned char *to = whole->image + (uint64_t)r.whole * size;
        const unsigned char *from = part->image + (uint64_t)r.part * size;
        if (r.part_step == 1 && r.whole_step == 1)
            memcpy(to, from, (uint64_t)r.n * size);
        else
            for (int64_t k = 0; k < r.n; k++)
                memcpy(to + (uint64_t)(k * r.whole_step) * size,
                       from + (uint64_t)(k * r.part_step) * size, size);
    }
}

static bool make_images(tc_invocation *call, tc_arena *arena) {
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
            !tc_operand_image(arena, call->seed + a, &call->args[a].tensor))
            return false;
    for (uint32_t k = 0; k < call->record->n_outs; k++)
        if (!tc_operand_image(arena, call->seed + 100 + k, &call->outs[k].tensor))
            return false;
    return true;
}

bool tc_tiled_make(const tc_case *c, tc_arena *arena, tc_invocation *part, tc_invocation *whole,
                   char why[TC_MESSAGE]) {
    if (!tc_invocation_parse(c, arena, part, why) || !tc_invocation_parse(c, arena, whole, why))
        return false;
    if (whole->in_place >= 0)
        return tc_why(why, TC_MESSAGE, "in-place: each call would change what the next one reads");
    shrink(part);
    if (!tc_invocation_fill(part, part->seed ^ 0x5eed, why))
        return false;
    if (!make_images(whole, arena))
        return tc_why(why, TC_MESSAGE, "the host has no memory for a case of this size");
    for (uint32_t a = 0; a < whole->record->n_args; a++) {
        if (whole->record->args[a].kind != TC_ARG_TENSOR || whole->args[a].none)
            continue;
        whole->args[a].tensor.values =
            part->args[a].tensor.values; /* for a scalar: its one value */
        spread(&part->args[a].tensor, &whole->args[a].tensor);
    }
    return true;
}

/* ---- checking ---------------------------------------------------------------------------- */

/* The elements of the part's size that come first in the whole, placed as the part's are. */
static unsigned char *first_part(const tc_operand *part, const tc_operand *whole,
                                 const unsigned char *image, tc_arena *arena) {
    uint64_t size = tc_dtype_bytes(part->dtype);
    unsigned char *out = tc_arena_array(arena, part->bytes, 1);
    int64_t index[TC_MAX_RANK] = {0};
    for (int64_t i = 0; out && i < part->shape.numel; i++) {
        int64_t at = whole->shape.offset;
        for (int32_t d = 0; d < whole->shape.rank; d++)
            at += index[d] * whole->shape.strides[d];
        memcpy(out + (uint64_t)tc_place(&part->shape, i) * size, image + (uint64_t)at * size, size);
        for (int32_t d = part->shape.rank - 1; d >= 0 && ++index[d] == part->shape.sizes[d]; d--)
            index[d] = 0;
    }
    return out;
}

/* Row-major number of the part's element at a place: what tc_place undoes. */
static int64_t number_at(const tc_shape *part, const tc_shape *whole, int64_t i) {
    int64_t number = 0, stride = 1;
    for (int32_t d = whole->rank - 1; d >= 0; d--) {
        number += i % whole->sizes[d] % part->sizes[d] * stride;
        stride *= part->sizes[d];
        i /= whole->sizes[d];
    }
    return number;
}

/* An element that the part's bounds do not accept, the i-th of the whole output: said as tc_compare
 * says it. */
static void fail_with(const tc_invocation *part, uint32_t k, const unsigned char *good,
                      const unsigned char *element, int64_t number, int64_t i, uint64_t flushes,
                      tc_verdict *out) {
    const tc_operand *o = &part->outs[k].tensor;
    uint64_t size = tc_dtype_bytes(o->dtype);
    unsigned char *image = tc_arena_array(part->arena, o->bytes, 1);
    if (!image) {
        TC_CASE_ERROR(out, "the host has no memory for a case of this size");
        return;
    }
    memcpy(image, good, o->bytes);
    memcpy(image + (uint64_t)tc_place(&o->shape, number) * size, element, size);
    tc_compare(part, k, image, flushes, out);
    size_t n = strlen(out->message);
    snprintf(out->message + n, sizeof out->message - n,
             "; it is element %" PRId64 " of the whole output, which repeats these", i);
}

static void check_output(const tc_invocation *part, const tc_invocation *whole, uint32_t k,
                         const unsigned char *image, const unsigned char *good, uint64_t flushes,
                         tc_verdict *out) {
    const tc_operand *p = &part->outs[k].tensor, *w = &whole->outs[k].tensor;
    uint64_t size = tc_dtype_bytes(w->dtype);
    stretch r;
    for (int64_t i = 0; i < w->shape.numel; i += r.n) {
        r = stretch_at(&p->shape, &w->shape, i);
        const unsigned char *is = image + (uint64_t)r.whole * size,
                            *was = good + (uint64_t)r.part * size;
        if (r.part_step == 1 && r.whole_step == 1 && memcmp(is, was, (uint64_t)r.n * size) == 0)
            continue;
        for (int64_t m = 0; m < r.n; m++) {
            const unsigned char *element = is + (uint64_t)(m * r.whole_step) * size;
            if (memcmp(element, was + (uint64_t)(m * r.part_step) * size, size) == 0)
                continue;
            int64_t number = number_at(&p->shape, &w->shape, i + m);
            if (tc_accepts(part, k, number, tc_load(w->dtype, element, 0), flushes))
                continue;
            fail_with(part, k, good, element, number, i + m, flushes, out);
            return;
        }
    }
}

void tc_tiled_check(const tc_invocation *part, const tc_invocation *whole, const tc_result *result,
                    const tc_subject *s, unsigned char *good[TC_MAX_OUTS], tc_verdict *out) {
    for (uint32_t k = 0; k < part->record->n_outs && out->status == TC_PASS; k++) {
        if (!good[k]) {
            good[k] = first_part(&part->outs[k].tensor, &whole->outs[k].tensor, result->outs[k],
                                 part->arena);
            if (good[k])
                tc_compare(part, k, good[k], s->flushes, out);
            else
                TC_CASE_ERROR(out, "the host has no memory for a case of this size");
        }
        if (out->status == TC_PASS)
            check_output(part, whole, k, result->outs[k], good[k], s->flushes, out);
    }
}
