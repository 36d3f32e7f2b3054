/* Lines in which one tensor reaches over more than 2^31 elements, a few of which are its own: for
 * kernels that multiply an index by a stride in 32 bits. Of dtypes of one byte, where the operator
 * takes any, else of two; and over as many bytes of f32, which every device has. Of the gigabytes
 * between the elements only the pages around these are touched (data/operand.h). */
#include "plugin-sdk/conformance/worker/kernel/draw.h"

#include "plugin-sdk/conformance/worker/kernel/draft.h"
#include "plugin-sdk/conformance/worker/kernel/invocation.h"

#include <string.h>

static const uint64_t of_one_byte =
    TN_DTYPE_BIT(TN_I8) | TN_DTYPE_BIT(TN_U8) | TN_DTYPE_BIT(TN_BOOL);

/* The smallest dtype of each choice: the first of one byte, or of two; of later ones the second, too. */
static bool are_smallest(const tc_record *record, const tn_dtype *types) {
    for (uint32_t t = 0; t < record->n_types; t++) {
        uint64_t of_one = record->dtypes[t] & of_one_byte,
                 of_two = record->dtypes[t] & (TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_I16));
        uint64_t some = of_one ? of_one : of_two;
        uint64_t next = some & (some - 1); /* a second one, for conversions */
        bool is_first = some && types[t] == (tn_dtype)__builtin_ctzll(some);
        if (!is_first && !(t > 0 && next && types[t] == (tn_dtype)__builtin_ctzll(next)))
            return false;
    }
    return true;
}

static bool are_f32(const tc_record *record, const tn_dtype *types) {
    uint32_t t = 0;
    while (t < record->n_types && types[t] == TN_F32)
        t++;
    return record->n_types > 0 && t == record->n_types;
}

enum { ENOUGH = 3 };     /* dimensions, each of which is stretched in turn */
enum { LONGEST = 1100 }; /* elements along one: each lies in a page of its own */

/* Dense, but for dimension d: of its elements the last ninth, a block of some kernels, or one lies behind
 * 2^31, outside of all others. */
static bool stretch(const tc_operand *o, int32_t d, tc_shape *out) {
    int64_t bytes = (int64_t)tc_dtype_bytes(o->dtype), extent = 1;
    int64_t reach = ((INT64_C(1) << 31) + (INT64_C(1) << 28)) / (bytes > 2 ? bytes : 1);
    *out = tc_dense(o->shape.rank, o->shape.sizes);
    if (out->numel == 0 || out->sizes[d] < 2 || out->sizes[d] > LONGEST)
        return false;
    for (int32_t k = out->rank - 1; k >= 0; k--)
        if (k != d) {
            out->strides[k] = extent;
            extent *= out->sizes[k];
        }
    out->strides[d] = reach / (out->sizes[d] - 1) + 7;
    out->placed = true;
    return extent <= out->strides[d];
}

/* Argument a, or the output that is so many behind the arguments; NULL where there is none. */
static const tc_operand *operand(const tc_invocation *call, uint32_t a) {
    const tc_record *record = call->record;
    if (a >= record->n_args)
        return &call->outs[a - record->n_args].tensor;
    return record->args[a].kind != TC_ARG_TENSOR || call->args[a].none ? NULL
                                                                       : &call->args[a].tensor;
}

/* How operand a of a line may be stretched. */
typedef struct stretches {
    int n;           /* of its first dimensions for which that can be said, ENOUGH at most */
    int64_t longest; /* elements along one of all its dimensions */
} stretches;

/* The line with operand a stretched along each of those dimensions in turn, or along the longest alone.
 * `to` may be NULL: then what is found counts only as far as it is more than `most`, and nothing else
 * is tried, for a list has some ten thousand of such lines. */
static stretches stretch_line(const char *text, const char *name, uint32_t a, bool longest_alone,
                              stretches most, tc_sink *to) {
    tc_arena arena = {NULL};
    tc_case c;
    tc_invocation call;
    tc_draft draft;
    char why[TC_MESSAGE], line[TC_MAX_LINE], longest[TC_MAX_LINE] = "";
    stretches found = {0};
    bool good = tc_case_parse(text, &c, why) && tc_invocation_parse(&c, &arena, &call, why) &&
                call.in_place < 0 && call.scalar < 0;
    const tc_operand *o = good ? operand(&call, a) : NULL;
    bool counts = o && most.n < (o->shape.rank < ENOUGH ? o->shape.rank : ENOUGH);
    for (int32_t d = 0; o && d < o->shape.rank; d++) {
        tc_shape shape;
        bool longer = o->shape.sizes[d] > found.longest && o->shape.sizes[d] > most.longest;
        if (!(longer || (counts && found.n < ENOUGH)) || !stretch(o, d, &shape) ||
            !tc_draft_read(text, &draft, why))
            continue;
        tc_draft_set_shape(&draft, name, &shape);
        if (!tc_draft_line(&draft, line))
            continue;
        if (longer) {
            found.longest = shape.sizes[d];
            strcpy(longest, line);
        }
        if (found.n == ENOUGH)
            continue;
        found.n++;
        if (to && !longest_alone)
            to->line(to, line);
    }
    if (to && longest_alone)
        to->line(to, longest);
    tc_arena_finish(&arena);
    return found;
}

/* By the first of the lines that have the most dimensions for it, and by the one that has the longest:
 * kernels go along that in blocks. */
static void stretch_one(const tc_urn *urn, uint32_t a, tc_sink *to) {
    const tc_record *record = urn->record;
    char out_name[TC_OUT_NAME];
    const char *name = a < record->n_args ? record->args[a].name
                                          : tc_record_out(record, a - record->n_args, out_name);
    stretches any = {0};
    stretches most = any;
    size_t richest = 0, longest = 0;
    for (size_t i = 0; i < urn->n; i++) {
        stretches found = stretch_line(urn->lines[i], name, a, false, most, NULL);
        if (found.n > most.n) {
            most.n = found.n;
            richest = i;
        }
        if (found.longest > most.longest) {
            most.longest = found.longest;
            longest = i;
        }
    }
    if (most.n > 0) {
        stretch_line(urn->lines[richest], name, a, false, any, to);
        stretch_line(urn->lines[longest], name, a, true, any, to);
    }
}

void tc_urn_stretch(const tc_urn *urn, const tn_dtype *types, tc_sink *to) {
    bool some = are_smallest(urn->record, types) || are_f32(urn->record, types);
    uint32_t n = some ? urn->record->n_args + urn->record->n_outs : 0;
    for (uint32_t a = 0; a < n; a++)
        stretch_one(urn, a, to);
}
