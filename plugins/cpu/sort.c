/* Stable sorting along one dimension.
 *
 * A line's elements become unsigned keys of the same order, with their places: floating numbers by
 * their bits, -0 as +0, every NaN as the largest key. The keys are sorted byte by byte from the
 * lowest (radix sort is stable), short lines by insertion, and values are fetched by place.
 */
#include "plugins/cpu/iterate.h"

typedef struct entry {
    uint64_t key;
    int64_t place;
} entry;

/* ---- keys -------------------------------------------------------------------------------- */

/* Sign and magnitude to an order of unsigned numbers; `bits` wide, NaN above the bits of
 * `infinity`. */
static inline uint64_t float_key(uint64_t u, int bits, uint64_t infinity) {
    uint64_t sign = (uint64_t)1 << (bits - 1), magnitude = u & (sign - 1);
    if (magnitude > infinity)
        return ((sign - 1) << 1) | 1;
    return u & sign ? sign - magnitude : sign + magnitude; /* one key for both zeros */
}

static void read_keys(entry *e, const char *line, int64_t stride, int64_t n, tn_dtype dtype) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t u = 0;
        const char *x = line + i * stride;
        switch (tnc_dtype_bytes(dtype)) {
        case 1:
            u = *(const uint8_t *)x;
            break;
        case 2:
            u = *(const uint16_t *)x;
            break;
        case 4:
            u = *(const uint32_t *)x;
            break;
        default:
            u = *(const uint64_t *)x;
        }
        switch (dtype) {
        case TN_F32:
            u = float_key(u, 32, 0x7f800000);
            break;
        case TN_F64:
            u = float_key(u, 64, 0x7ff0000000000000);
            break;
        case TN_F16:
            u = float_key(u, 16, 0x7c00);
            break;
        case TN_BF16:
            u = float_key(u, 16, 0x7f80);
            break;
        case TN_I8:
            u ^= 0x80;
            break;
        case TN_I16:
            u ^= 0x8000;
            break;
        case TN_I32:
            u ^= 0x80000000;
            break;
        case TN_I64:
            u ^= 0x8000000000000000;
            break;
        default: /* already unsigned */
            break;
        }
        e[i] = (entry){u, i};
    }
}

/* ---- sorting ----------------------------------------------------------------------------- */

enum { SHORT = 48 };

static void insertion_sort(entry *e, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        entry x = e[i];
        int64_t j = i;
        for (; j > 0 && e[j - 1].key > x.key; j--)
            e[j] = e[j - 1];
        e[j] = x;
    }
}

/* Sorts e with the help of `other`, both [n]; returns the one that holds the result. */
static entry *radix_sort(entry *e, entry *other, int64_t n, int n_bytes) {
    for (int byte = 0; byte < n_bytes; byte++) {
        int64_t starts[256] = {0}, sum = 0;
        int shift = 8 * byte;
        for (int64_t i = 0; i < n; i++)
            starts[e[i].key >> shift & 255]++;
        if (starts[e[0].key >> shift & 255] == n)
            continue;
        for (int b = 0; b < 256; b++) {
            int64_t count = starts[b];
            starts[b] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++)
            other[starts[e[i].key >> shift & 255]++] = e[i];
        entry *swap = e;
        e = other;
        other = swap;
    }
    return e;
}

/* ---- one call ---------------------------------------------------------------------------- */

typedef struct sorter {
    tnc_plan plan; /* of the lines: values, places, input */
    int64_t length;
    int64_t values_stride, places_stride, in_stride;
    bool descending;
    entry *entries; /* [slots][2][length] */
} sorter;

static void sort_lines(void *context, int64_t begin, int64_t end, int slot) {
    const sorter *s = context;
    const tnc_operand *values = &s->plan.operands[0], *places = &s->plan.operands[1];
    const tnc_operand *in = &s->plan.operands[2];
    entry *e = s->entries + slot * 2 * s->length, *other = e + s->length;
    int64_t at[TN_MAX_RANK], n = s->length;
    for (int64_t line = begin; line < end; line++) {
        tnc_plan_seek(&s->plan, line, at);
        const char *src = tnc_plan_address(&s->plan, in, at);
        char *value = tnc_plan_address(&s->plan, values, at);
        char *place = tnc_plan_address(&s->plan, places, at);
        read_keys(e, src, s->in_stride, n, in->dtype);
        if (s->descending)
            for (int64_t i = 0; i < n; i++)
                e[i].key = ~e[i].key;
        entry *sorted = e;
        if (n <= SHORT)
            insertion_sort(e, n);
        else
            sorted = radix_sort(e, other, n, in->item);
        for (int64_t i = 0; i < n; i++) {
            tnc_copy_run(value + i * s->values_stride, in->item,
                         src + sorted[i].place * s->in_stride, in->item, 1, in->item);
            memcpy(place + i * s->places_stride, &sorted[i].place, sizeof(int64_t));
        }
    }
}

static tn_status run(const tn_call *call) {
    const tn_tensor_view *in = tnc_view(call, TN_ARG_sort_self);
    int64_t dim = call->args[TN_ARG_sort_dim].v.i64;
    sorter s = {
        .length = in->rank ? in->sizes[dim] : 1,
        .values_stride = in->rank ? tnc_step(call->outs[0], dim) : 0,
        .places_stride = in->rank ? tnc_step(call->outs[1], dim) : 0,
        .in_stride = in->rank ? tnc_step(in, dim) : 0,
        .descending = call->args[TN_ARG_sort_descending].v.boolean,
        .entries = (entry *)(uintptr_t)(call->workspace + call->workspace_offset),
    };
    tnc_plan_init(&s.plan, in);
    tnc_plan_add_view(&s.plan, call->outs[0]);
    tnc_plan_add_view(&s.plan, call->outs[1]);
    tnc_plan_add_view(&s.plan, in);
    if (in->rank)
        s.plan.sizes[dim] = 1;
    tnc_plan_finish(&s.plan, true);
    int64_t slots = (int64_t)call->workspace_bytes / (2 * s.length * (int64_t)sizeof(entry));
    tnc_parallel(call, in->numel / s.length, tnc_max(1, TNC_GRAIN / 8 / s.length), (int)slots,
                 sort_lines, &s);
    return TN_OK;
}

static tn_status prepare(const tn_call *call, tn_plan *out) {
    const tn_tensor_view *in = tnc_view(call, TN_ARG_sort_self);
    int64_t length = in->rank ? in->sizes[call->args[TN_ARG_sort_dim].v.i64] : 1;
    int64_t slots = tnc_min(tnc_get_threads(call), in->numel / length);
    out->workspace_bytes = (uint64_t)(slots * 2 * length * (int64_t)sizeof(entry));
    return TN_OK;
}

static const tn_kernel records[] = {
    TNC_KERNEL(sort, TN_DTYPES_ALL, TNC_FLAGS_STRIDED, run, .prepare = prepare),
};
TNC_PUBLISH(sort, records);
