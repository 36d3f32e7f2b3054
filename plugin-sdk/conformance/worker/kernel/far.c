/* Lines in which one tensor reaches over more than 2^31 elements, a few of which are its own: for
 * kernels that multiply an index by a stride in 32 bits. Of dtypes of one byte, where the operator
 * takes any, else of two: the gigabytes between the elements are written, read and compared. */
#include "plugin-sdk/conformance/worker/kernel/draw.h"

#include "plugin-sdk/conformance/worker/kernel/draft.h"
#include "plugin-sdk/conformance/worker/kernel/invocation.h"

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

/* Argument a, or output k where a is that many behind the arguments, of the first line that will do. */
static void stretch_one(const tc_urn *urn, uint32_t a, tc_sink *to) {
    const tc_record *record = urn->record;
    bool is_arg = a < record->n_args, done = false;
    char out_name[TC_OUT_NAME], why[TC_MESSAGE], line[TC_MAX_LINE];
    const char *name =
        is_arg ? record->args[a].name : tc_record_out(record, a - record->n_args, out_name);
    if (is_arg && record->args[a].kind != TC_ARG_TENSOR)
        return;
    for (size_t i = 0; i < urn->n && !done; i++) {
        tc_arena arena = {NULL};
        tc_case c;
        tc_invocation call;
        tc_draft d;
        tc_shape shape;
        if (tc_case_parse(urn->lines[i], &c, why) && tc_invocation_parse(&c, &arena, &call, why) &&
            call.in_place < 0 && call.scalar < 0 && !(is_arg && call.args[a].none)) {
            const tc_operand *o =
                is_arg ? &call.args[a].tensor : &call.outs[a - record->n_args].tensor;
            if (tc_dtype_bytes(o->dtype) <= 2 && stretch(o, &shape) &&
                tc_draft_read(urn->lines[i], &d, why)) {
                tc_draft_set_shape(&d, name, &shape);
                done = tc_draft_line(&d, line);
            }
        }
        tc_arena_finish(&arena);
    }
    if (done)
        to->line(to, line);
}

void tc_urn_stretch(const tc_urn *urn, const tn_dtype *types, tc_sink *to) {
    uint32_t n = are_smallest(urn->record, types) ? urn->record->n_args + urn->record->n_outs : 0;
    for (uint32_t a = 0; a < n; a++)
        stretch_one(urn, a, to);
}
