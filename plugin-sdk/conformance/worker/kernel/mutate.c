/* See mutate.h. */
#include "plugin-sdk/conformance/worker/kernel/mutate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin-sdk/conformance/worker/kernel/invocation.h"

enum { MOST_ELEMENTS = 20000, MOST_EXTENT = 100000 };
static const int64_t TOO_FAR = INT64_C(1) << 40; /* for the arithmetic of shapes to go wrong */

/* A parameter whose value is in brackets, or -1. */
static int pick_shape(const tc_draft *d, tc_random *r, tc_shape *out) {
    for (int tries = 0; d->n && tries < 8; tries++) {
        int at = (int)tc_below(r, d->n);
        if (tc_draft_shape(d, at, out))
            return at;
    }
    return -1;
}

void tc_mutate_resize(tc_draft *d, int64_t from, int64_t to) {
    tc_shape s;
    for (int i = 0; i < (int)d->n; i++) {
        if (!tc_draft_shape(d, i, &s))
            continue;
        for (int32_t k = 0; k < s.rank; k++)
            if (s.sizes[k] == from) {
                s.sizes[k] = to;
                s.placed = false;
                s.offset = 0;
            }
        tc_draft_put_shape(d, i, &s);
    }
}

static void set_size(tc_draft *d, int at, tc_shape *s, int32_t dim, int64_t to) {
    s->sizes[dim] = to;
    s->placed = false;
    s->offset = 0;
    tc_draft_put_shape(d, at, s);
}

static void change_size(tc_draft *d, tc_random *r) {
    static const int64_t sizes[] = {1, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 129};
    tc_shape s;
    int at = pick_shape(d, r, &s);
    if (at < 0 || s.rank == 0)
        return;
    int32_t dim = (int32_t)tc_below(r, (uint64_t)s.rank);
    int64_t size = sizes[tc_below(r, sizeof sizes / sizeof *sizes)];
    if (tc_below(r, 4) != 0)
        tc_mutate_resize(d, s.sizes[dim], size);
    else
        set_size(d, at, &s, dim, size);
}

bool tc_mutate_grow(tc_draft *d, int at, int32_t dim, int64_t numel, tc_random *r) {
    tc_shape s;
    if (!tc_draft_shape(d, at, &s) || s.numel == 0)
        return false;
    for (int tries = 0; s.rank > 0 && tries < 4; tries++) {
        int64_t size = s.sizes[dim >= 0 && dim < s.rank ? dim : (int)tc_below(r, (uint64_t)s.rank)];
        if (size == 1)
            continue;
        tc_mutate_resize(d, size, numel / (s.numel / size) + 1 + (int64_t)tc_below(r, 99));
        return true;
    }
    return false;
}

/* A dimension more, at the left of every shape. */
static void add_dim(tc_draft *d, tc_random *r) {
    int64_t size = (int64_t)tc_below(r, 3) + 1;
    tc_shape s;
    for (int i = 0; i < (int)d->n; i++) {
        if (!tc_draft_shape(d, i, &s) || s.rank == TC_MAX_RANK)
            continue;
        memmove(s.sizes + 1, s.sizes, (size_t)s.rank * sizeof *s.sizes);
        s.sizes[0] = size;
        s.rank++;
        s.placed = false;
        s.offset = 0;
        tc_draft_put_shape(d, i, &s);
    }
}

void tc_mutate_place(tc_shape *s, tc_random *r, bool broadcast) {
    int32_t order[TC_MAX_RANK];
    for (int32_t k = 0; k < s->rank; k++)
        order[k] = k;
    for (int32_t k = s->rank - 1; k > 0 && tc_below(r, 2); k--) {
        int32_t other = (int32_t)tc_below(r, (uint64_t)k + 1), kept = order[k];
        order[k] = order[other];
        order[other] = kept;
    }
    int64_t stride = 1 + (tc_below(r, 3) == 0 ? (int64_t)tc_below(r, 3) : 0);
    bool zeros = tc_below(r, 3) == 0 && broadcast, varies = false; /* not all are equal */
    for (int32_t k = s->rank - 1; k >= 0; k--) {
        bool is_zero = tc_below(r, 2) && zeros && (k > 0 || varies);
        varies = varies || !is_zero;
        s->strides[order[k]] = is_zero ? 0 : stride;
        int64_t gap = (int64_t)(tc_below(r, 5) == 0 && !is_zero ? tc_below(r, 4) : 0);
        if (!is_zero && __builtin_mul_overflow(stride, s->sizes[order[k]], &stride))
            stride = TOO_FAR; /* which no line is allowed */
        stride += gap;
    }
    s->offset = tc_below(r, 2) ? (int64_t)tc_below(r, 40) : 0;
    s->placed = true;
}

static void place(tc_draft *d, tc_random *r) {
    tc_shape s;
    int at = pick_shape(d, r, &s);
    if (at < 0)
        return;
    tc_mutate_place(&s, r, true);
    tc_draft_put_shape(d, at, &s);
}

/* Shares stay shares, and what is not negative stays so: a line does not tell an attribute's range.
 */
static void change_value(tc_draft *d, tc_random *r) {
    enum { N_POSITIVE = 6 };
    static const char *const numbers[] = {"0", "1", "2", "3", "0.5", "7", "-1", "-2", "-0.5"};
    static const char *const shares[] = {"0.001", "0.1", "0.25", "0.5", "0.9"};
    if (d->n == 0)
        return;
    uint32_t at = (uint32_t)tc_below(r, d->n);
    const char *value = d->at[at].value, *name = d->at[at].name;
    tn_dtype dtype;
    double number;
    char why[TC_MESSAGE];
    if (strcmp(name, "bad") == 0 || strcmp(name, "seed") == 0 || strcmp(name, "how") == 0)
        return;
    if (tc_read_dtype(value, &dtype, why))
        tc_draft_set(d, name, tc_dtype_name((tn_dtype)tc_below(r, TN_DTYPE_COUNT)));
    else if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
        tc_draft_set(d, name, *value == 't' ? "false" : "true");
    else if (tc_read_number(value, &number, why) && number > 0 && number < 1)
        tc_draft_set(d, name, shares[tc_below(r, sizeof shares / sizeof *shares)]);
    else if (tc_read_number(value, &number, why) && number >= 0)
        tc_draft_set(d, name, numbers[tc_below(r, N_POSITIVE)]);
    else if (tc_read_number(value, &number, why))
        tc_draft_set(d, name, numbers[tc_below(r, sizeof numbers / sizeof *numbers)]);
}

bool tc_mutate_attribute(tc_draft *d, const tc_record *record, int at) {
    char text[32], why[TC_MESSAGE];
    double value;
    int a = tc_record_arg(record, d->at[at].name);
    if (a < 0 || record->args[a].kind == TC_ARG_TENSOR)
        return false;
    if (strcmp(d->at[at].value, "true") == 0 || strcmp(d->at[at].value, "false") == 0) {
        tc_draft_set(d, d->at[at].name, *d->at[at].value == 't' ? "false" : "true");
        return true;
    }
    if (!tc_read_number(d->at[at].value, &value, why))
        return false;
    snprintf(text, sizeof text, "%g", value > 0 && value < 1 ? value / 2 : value + 1);
    tc_draft_set(d, d->at[at].name, text);
    return true;
}

bool tc_mutate_far_bit(tc_draft *d, const tc_record *record, int at) {
    char text[32], why[TC_MESSAGE];
    int64_t value;
    int a = tc_record_arg(record, d->at[at].name);
    if (a < 0 || record->args[a].kind != TC_ARG_INT || !tc_read_int(d->at[at].value, &value, why))
        return false;
    snprintf(text, sizeof text, "%" PRId64, (int64_t)((uint64_t)value ^ UINT64_C(1) << 32));
    tc_draft_set(d, d->at[at].name, text);
    return true;
}

tc_data tc_mutate_data(const tc_record *record, tc_random *r) {
    bool any = !record || record->pointwise || record->extremes;
    return any ? (tc_data)tc_below(r, TC_DATA_EVERY) : TC_DATA_RANDOM;
}

static void change_data(tc_draft *d, tc_random *r) {
    char text[32];
    tc_draft_set(d, "data", tc_data_name(tc_mutate_data(tc_record_find(d->subject), r)));
    snprintf(text, sizeof text, "%" PRIu64, tc_next(r) >> 40);
    tc_draft_set(d, "seed", text);
}

typedef void change(tc_draft *d, tc_random *r);

static bool mutate(tc_draft *d, tc_random *r, change *const *changes, uint64_t n_changes) {
    tc_shape s;
    for (uint64_t n = 1 + tc_below(r, 4); n > 0; n--)
        changes[tc_below(r, n_changes)](d, r);
    for (int i = 0; i < (int)d->n; i++)
        if (d->at[i].value[0] == '[' && tc_draft_shape(d, i, &s) &&
            (s.numel > MOST_ELEMENTS || s.extent > MOST_EXTENT))
            return false;
    return true;
}

bool tc_mutate(tc_draft *d, tc_random *r) {
    static change *const changes[] = {change_size, change_size,  place,      place,
                                      add_dim,     change_value, change_data};
    return mutate(d, r, changes, sizeof changes / sizeof *changes);
}

bool tc_mutate_shapes(tc_draft *d, tc_random *r) {
    static change *const changes[] = {change_size, place, place, add_dim};
    return mutate(d, r, changes, sizeof changes / sizeof *changes);
}
