/* See sample.h. */
#include "plugin-sdk/conformance/worker/kernel/samples/sample.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tc_line_add(tc_line *l, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (l->n + 1 < sizeof l->text)
        l->text[l->n++] = ' ';
    int n = vsnprintf(l->text + l->n, sizeof l->text - l->n, format, args);
    va_end(args);
    l->n += (size_t)n < sizeof l->text - l->n ? (size_t)n : sizeof l->text - l->n - 1;
}

tc_line tc_line_start(const tc_sampler *m) {
    tc_line l;
    l.n = (size_t)snprintf(l.text, sizeof l.text, "kernel/%s", m->record->op);
    for (uint32_t t = 0; t < m->record->n_types; t++)
        tc_line_add(&l, "%s=%s", m->record->type_names[t], tc_dtype_name(m->types[t]));
    return l;
}

/* The stride of a dimension of one element. A kernel must not look at it. */
enum { MEANS_NOTHING = 5 };

static tc_shape place(int32_t rank, const int64_t *sizes, tc_layout layout) {
    tc_shape s = tc_dense(rank, sizes);
    s.placed = layout != TC_LAYOUT_DENSE;
    int64_t stride = 1;
    switch (layout) {
    case TC_LAYOUT_SHIFTED:
        s.offset = 3;
        break;
    case TC_LAYOUT_PADDED:
    case TC_LAYOUT_STEPPED:
        stride = layout == TC_LAYOUT_STEPPED ? 2 : 1;
        s.offset = 5;
        for (int32_t d = rank - 1; d >= 0; d--) {
            s.strides[d] = stride;
            stride = stride * sizes[d] + (d == rank - 1 ? 3 : 0);
        }
        break;
    case TC_LAYOUT_REVERSED:
        for (int32_t d = 0; d < rank; d++) {
            s.strides[d] = stride;
            stride *= sizes[d];
        }
        break;
    case TC_LAYOUT_ZERO_FIRST:
        s.strides[0] = 0;
        break;
    case TC_LAYOUT_ZERO_LAST:
        for (int32_t d = rank - 1; d >= 0; d--) {
            s.strides[d] = d == rank - 1 ? 0 : stride;
            stride *= d == rank - 1 ? 1 : sizes[d];
        }
        break;
    case TC_LAYOUT_ZERO_ALL:
        memset(s.strides, 0, sizeof s.strides);
        break;
    default:
        break;
    }
    for (int32_t d = 0; s.placed && d < rank; d++)
        if (sizes[d] == 1)
            s.strides[d] = MEANS_NOTHING;
    return s;
}

void tc_line_tensor(tc_line *l, const char *name, int32_t rank, const int64_t *sizes,
                    tc_layout layout) {
    tc_shape s = place(rank, sizes, rank ? layout : TC_LAYOUT_DENSE);
    char text[512];
    tc_line_add(l, "%s=%s", name, tc_write_shape(&s, text, sizeof text));
}

void tc_line_out(tc_line *l, const tc_sampler *m, uint32_t k, int32_t rank, const int64_t *sizes,
                 tc_layout layout) {
    char name[TC_OUT_NAME];
    tc_line_tensor(l, tc_record_out(m->record, k, name), rank, sizes, layout);
}

void tc_line_broadcast(tc_line *l, const char *name, int32_t rank, const int64_t *sizes,
                       uint32_t zeros) {
    tc_shape s = tc_dense(rank, sizes);
    char text[512];
    int64_t stride = 1;
    s.placed = zeros != 0;
    for (int32_t d = rank - 1; d >= 0; d--) {
        s.strides[d] = zeros >> d & 1 ? 0 : stride;
        stride *= zeros >> d & 1 ? 1 : sizes[d];
    }
    tc_line_add(l, "%s=%s", name, tc_write_shape(&s, text, sizeof text));
}

void tc_line_strided(tc_line *l, const char *name, int32_t rank, const int64_t *sizes,
                     const int64_t *strides) {
    tc_shape s = tc_dense(rank, sizes);
    char text[512];
    s.placed = strides != NULL;
    for (int32_t d = 0; strides && d < rank; d++)
        s.strides[d] = strides[d];
    tc_line_add(l, "%s=%s", name, tc_write_shape(&s, text, sizeof text));
}

void tc_line_ints(tc_line *l, const char *name, int32_t n, const int64_t *values) {
    tc_line_tensor(l, name, n, values, TC_LAYOUT_DENSE); /* a list is written as sizes are */
}

void tc_emit(const tc_sampler *m, tc_line l) {
    m->sink->line(m->sink, l.text);
}

void tc_emit_once(const tc_sampler *m, tc_line l) {
    tc_line_add(&l, "data=exact seed=1");
    tc_emit(m, l);
}

static uint32_t data_kinds(const tc_sampler *m) {
    uint32_t kinds = TC_DATA_BIT(TC_DATA_RANDOM) | TC_DATA_BIT(TC_DATA_SPECIAL);
    if (m->set == TC_SMOKE)
        return kinds;
    kinds |= TC_DATA_BIT(TC_DATA_EXACT) | TC_DATA_BIT(TC_DATA_WIDE);
    if (tc_is_float(m->types[0]) && m->record->adds)
        kinds |= TC_DATA_BIT(TC_DATA_CANCEL);
    if (tc_is_float(m->types[0]) && m->record->adds && m->types[0] != TN_BF16)
        kinds |= TC_DATA_BIT(TC_DATA_BIASED); /* bf16 is too coarse to show it */
    return kinds;
}

void tc_emit_data(const tc_sampler *m, const tc_line *l, uint32_t without) {
    uint32_t kinds = data_kinds(m) & ~without;
    for (int k = 0; k < TC_N_DATA; k++) {
        tc_line line = *l;
        tc_line_add(&line, "data=%s", tc_data_name((tc_data)k));
        if (kinds & TC_DATA_BIT(k))
            tc_emit(m, line);
    }
}

/* A dtype that every device has, where the kernel takes one. */
static tn_dtype usual_dtype(uint64_t mask) {
    return mask & TN_DTYPE_BIT(TN_F32)   ? TN_F32
           : mask & TN_DTYPE_BIT(TN_I64) ? TN_I64
                                         : (tn_dtype)__builtin_ctzll(mask);
}

bool tc_has_large(const tc_sampler *m) {
    if (m->set == TC_SMOKE)
        return false;
    for (uint32_t t = 0; t < m->record->n_types; t++)
        if (m->types[t] != usual_dtype(m->record->dtypes[t]))
            return false;
    return true;
}

int64_t tc_split(const tc_sampler *m) {
    return tc_has_large(m) ? 100003 : 40009;
}

bool tc_is_timed(const tc_sampler *m) {
    const tc_record *record = m->record;
    uint64_t others = TN_DTYPES_FLOAT & ~(uint64_t)TN_DTYPE_BIT(TN_F32);
    bool integers = (record->timed & TC_TIMED_INTEGERS) != 0;
    uint32_t n_others = 0, n_f32 = 0;
    if (tc_has_large(m))
        return true;
    for (uint32_t t = 0; t < record->n_types; t++) {
        n_f32 += m->types[t] == TN_F32;
        n_others +=
            (others & TN_DTYPE_BIT(m->types[t])) != 0 || (integers && m->types[t] == TN_I64);
    }
    return (record->timed & TC_TIMED_FLOATS) && n_others == 1 &&
           n_f32 + 1 == record->n_types; /* of two dtypes one is f32 */
}
