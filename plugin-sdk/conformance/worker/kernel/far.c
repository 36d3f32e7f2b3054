/* Lines in which one tensor reaches over more than 2^31 elements, a few of which are its own: for
 * kernels that multiply an index by a stride in 32 bits. Of dtypes of one byte, where the operator
 * takes any, else of two: the gigabytes between the elements are written, read and compared. */
#include "plugin-sdk/conformance/worker/kernel/draw.h"

#include "plugin-sdk/conformance/worker/kernel/draft.h"
#include "plugin-sdk/conformance/worker/kernel/invocation.h"

#include <stdio.h>
#include <string.h>

static const uint64_t of_one_byte =
    TN_DTYPE_BIT(TN_I8) | TN_DTYPE_BIT(TN_U8) | TN_DTYPE_BIT(TN_BOOL);

/* The smallest dtype of each choice: the first of one byte, or of two. */
static bool are_smallest(const tc_record *record, const tn_dtype *types) {
    for (uint32_t t = 0; t < record->n_types; t++) {
        uint64_t of_one = record->dtypes[t] & of_one_byte,
                 of_two = record->dtypes[t] & (TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_I16));
        uint64_t some = of_one ? of_one : of_two;
        if (!some || types[t] != (tn_dtype)__builtin_ctzll(some))
            return false;
    }
    return true;
}

/* Dense, but for the first dimension in which there is a second element: its last lies behind 2^31. */
static bool stretch(const tc_operand *o, tc_shape *out) {
    int32_t d = 0;
    *out = tc_dense(o->shape.rank, o->shape.sizes);
    while (d < out->rank && out->sizes[d] < 2)
        d++;
    if (out->numel == 0 || d == out->rank)
        return false;
    out->strides[d] = (INT64_C(1) << 31) / (out->sizes[d] - 1) + 7;
    out->placed = true;
    return true;
}

static bool emit(const char *line, const char *name, const tc_shape *shape, tc_sink *to) {
    tc_draft d;
    char far[TC_MAX_LINE], why[TC_MESSAGE];
    if (!tc_draft_read(line, &d, why))
        return false;
    if (tc_draft_find(&d, name) < 0)
        tc_draft_set(&d, name, "[]");
    tc_draft_put_shape(&d, tc_draft_find(&d, name), shape);
    if (!tc_draft_line(&d, far))
        return false;
    to->line(to, far);
    return true;
}

/* Argument a, or output k where a is that many behind the arguments, of the first line that will do. */
static void stretch_one(const tc_urn *urn, uint32_t a, tc_sink *to) {
    const tc_record *record = urn->record;
    uint32_t k = a - record->n_args;
    char name[TC_DRAFT_NAME] = "out", why[TC_MESSAGE];
    if (a < record->n_args)
        snprintf(name, sizeof name, "%s", record->args[a].name);
    else if (record->n_outs > 1)
        snprintf(name, sizeof name, "out%u", k);
    bool done = false;
    for (size_t i = 0; i < urn->n && !done; i++) {
        tc_arena arena = {NULL};
        tc_case c;
        tc_invocation call;
        tc_shape shape;
        if (tc_case_parse(urn->lines[i], &c, why) && tc_invocation_parse(&c, &arena, &call, why) &&
            call.in_place < 0 && call.scalar < 0) {
            const tc_operand *o = a < record->n_args ? &call.args[a].tensor : &call.outs[k].tensor;
            bool there = a >= record->n_args ||
                         (record->args[a].kind == TC_ARG_TENSOR && !call.args[a].none);
            done = there && tc_dtype_bytes(o->dtype) <= 2 && stretch(o, &shape) &&
                   emit(urn->lines[i], name, &shape, to);
        }
        tc_arena_finish(&arena);
    }
}

void tc_urn_stretch(const tc_urn *urn, const tn_dtype *types, tc_sink *to) {
    for (uint32_t a = 0; a < urn->record->n_args + urn->record->n_outs; a++)
        if (are_smallest(urn->record, types))
            stretch_one(urn, a, to);
}
