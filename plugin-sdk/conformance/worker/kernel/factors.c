/* See factors.h. */
#include "plugin-sdk/conformance/worker/kernel/factors.h"

#include <math.h>
#include <string.h>

/* What an argument is to the product. */
typedef enum role { FIRST, SECOND, ADDED } role;

static role role_of(const tc_record *record, uint32_t a) {
    uint32_t first = tc_record_arg(record, "mat1") == 1 ? 1 : 0;
    if (a < first || strcmp(record->args[a].name, "bias") == 0)
        return ADDED;
    return a == first ? FIRST : SECOND;
}

/* Does element i of the first factor belong to the second half of its sums, as far as rows are these? */
static bool is_behind(const tc_shape *s, int64_t i, int64_t terms) {
    int64_t n = s->rank < 4 ? s->sizes[s->rank - 1] : terms;
    return i % n >= n / 2;
}

/* Does element i of the first factor count towards every other row of the result, or towards images? */
static bool is_of_odd_row(const tc_shape *s, int64_t i) {
    return i / (s->rank < 4 ? s->sizes[s->rank - 1] : s->numel / s->sizes[0]) % 2;
}

static tc_number scaled(tc_real x, int exponent) {
    return (tc_number){ldexpl(x, exponent), 0};
}

/* Pairs along the sum that cancel but for a last digit or none: of the first factor (x, x + 1), of the second (y, -y). */
static tc_number left_over(const tc_operand *o, role what, int64_t i, int least, tc_random *r) {
    const tc_shape *s = &o->shape;
    int64_t columns = s->sizes[s->rank - 1], rows = s->sizes[s->rank - 2];
    int64_t step = what == FIRST ? 1 : columns, n = what == FIRST ? columns : rows;
    int64_t k = i / step % n;
    int exponent = what == FIRST ? least / 2 : least - least / 2;
    if (k == n - 1 && k % 2 == 0) /* has nothing to cancel with */
        return (tc_number){0, 0};
    if (k % 2 == 0)
        return scaled((tc_real)(what == FIRST ? tc_integer(r, 128, 254) : tc_integer(r, 16, 31)),
                      exponent);
    tc_real before = o->values[i - step].f;
    return (tc_number){what == FIRST ? before + ldexpl(tc_below(r, 4) == 0, exponent) : -before, 0};
}

/* One factor has a single such number, alone in its row or column: the last or another, of either sign. */
static tc_number lone(const tc_invocation *call, uint32_t a, int64_t i, tc_number x, int least) {
    role what = role_of(call->record, a);
    const tc_shape *s = &call->args[a].tensor.shape;
    int64_t columns = s->sizes[s->rank - 1], rows = s->sizes[s->rank - 2];
    bool first = what == FIRST;
    int64_t line = first ? i / columns % rows : i % columns, lines = first ? rows : columns;
    int64_t k = first ? i % columns : i / columns % rows, n = first ? columns : rows;
    uint64_t seed = call->seed >> 8;
    int64_t place = call->seed & 4 ? n - 1 : (int64_t)(seed >> 8) % n;
    if (what == ADDED)
        return (tc_number){0, 0};
    if (first != (call->seed & 1) || line != (int64_t)(seed & 0xff) % lines)
        return (tc_number){fabsl(x.f) + 1, 0};
    return scaled(k != place ? 0 : call->seed & 2 ? -3 : 3, least);
}

/* So small that numbers count the least there is, or that their products do: of two factors. What is added to the
 * product counts as it does. */
tc_number tc_faint(const tc_invocation *call, uint32_t a, int64_t i, int64_t terms, tc_number x,
                   tc_random *r) {
    int least;
    role what = role_of(call->record, a);
    const tc_shape *s = &call->args[a].tensor.shape;
    tc_exponents(call->types[0], &least);
    if (call->data == TC_DATA_FAINT_ADDED && what == ADDED)
        return scaled(x.f, least);
    /* to nothing, in every other row; elsewhere it is lost at once */
    if (call->data == TC_DATA_FAINT_ADDED)
        return scaled(what == FIRST && is_of_odd_row(s, i) ? 0 : fabsl(x.f), 0);
    if (call->data == TC_DATA_FAINT_LEFT)
        return what == ADDED ? scaled(x.f, least)
                             : left_over(&call->args[a].tensor, what, i, least, r);
    if (call->data == TC_DATA_FAINT_LONE)
        return lone(call, a, i, x, least);
    if (call->data == TC_DATA_FAINT_FIRST && what == FIRST && is_behind(s, i, terms))
        return scaled(0, 0);
    /* products that count the least, of two like them or of one; or larger ones, which tell no sums apart */
    uint64_t way = call->seed % (call->data == TC_DATA_FAINT_FIRST ? 2 : 3);
    int of_first = way ? least : least / 2;
    int of_second = way == 0 ? least - of_first : way == 1 ? 0 : -least / 2;
    return scaled(x.f, what == ADDED ? of_first + of_second : what == FIRST ? of_first : of_second);
}

tc_number tc_tie(const tc_invocation *call, uint32_t a, int64_t terms, tc_number x, tc_random *r) {
    enum { MEAN_OF_SECOND = 2, SPREAD = 3 };
    role what = role_of(call->record, a);
    int64_t sum =
        (int64_t)3 << (tc_digits(call->types[0]) - 1); /* where every other number is a tie */
    int64_t low = sum / (MEAN_OF_SECOND * terms);
    int64_t value = what == SECOND ? tc_integer(r, 1, 2 * MEAN_OF_SECOND - 1)
                                   : tc_integer(r, low + (low == 0), low + SPREAD);
    return what == ADDED ? x : (tc_number){(tc_real)value, value};
}
