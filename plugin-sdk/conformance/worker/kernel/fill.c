/* Input data: the kinds of values that operands are filled with, each to show another mistake. */
#include "plugin-sdk/conformance/worker/oracle/compare.h"
#include "plugin-sdk/conformance/worker/kernel/ends.h"
#include "plugin-sdk/conformance/worker/kernel/factors.h"
#include "plugin-sdk/conformance/worker/kernel/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- special values ---------------------------------------------------------------------- */

enum { N_SPECIAL = 18, N_MILD = 9 };

/* The k-th special value; the first N_MILD are no extremes. */
static tc_number special(tn_dtype dtype, uint64_t k) {
    tc_real tiny = tc_spacing(dtype, 0), normal = tc_smallest_normal(dtype);
    const tc_real values[N_SPECIAL] = {
        0,
        -0.0L,
        1,
        NAN,
        -1,
        INFINITY,
        2.5L,
        -INFINITY,
        copysignl(NAN, -1), /* as x86 makes them */
        tiny,
        -tiny,
        normal,
        -normal + tiny,
        tc_largest(dtype),
        -tc_largest(dtype),
        0.5L,
        tc_spacing(dtype, tc_largest(dtype)) / 2, /* what makes the largest an infinity */
        -tc_spacing(dtype, tc_largest(dtype)) / 2,
    };
    int64_t low = tc_int_min(dtype), high = tc_int_max(dtype);
    const int64_t whole[] = {0, 1, low < 0 ? -1 : 2, high, low, low + 1, high - 1, 3};
    return (tc_number){tc_is_float(dtype) ? values[k % N_SPECIAL] : 0,
                       tc_is_float(dtype) ? 0 : whole[k % (sizeof whole / sizeof *whole)]};
}

/* The k-th value of a cell: all special values, and the numbers that kernels have shorter ways for
 * where all elements meet the same one: squares, roots, quotients by a power of two. */
static tc_number cell(tn_dtype dtype, uint64_t n_special, uint64_t k) {
    static const double floats[] = {2, -2, 3, -0.5, 4, 1.5};
    static const int64_t ints[] = {2, -2, 4, -4, 7, 64};
    uint64_t n = n_special + sizeof floats / sizeof *floats;
    k %= n;
    if (k < n_special)
        return special(dtype, k);
    if (tc_is_float(dtype))
        return (tc_number){(tc_real)floats[k - n_special], 0};
    return (tc_number){0, tc_int_min(dtype) ? ints[k - n_special] : llabs(ints[k - n_special])};
}

/* The k-th number that shows how a conversion to `dtype` rounds: ties, and what is next to them, at
 * the largest number, around 1 and below the normal ones. */
enum { N_ROUNDING = 14 };

static tc_number rounding(tn_dtype dtype, uint64_t k) {
    tc_real largest = tc_largest(dtype), tiny = tc_spacing(dtype, 0);
    tc_real step = tc_spacing(dtype, largest), one = tc_spacing(dtype, 1);
    const tc_real values[N_ROUNDING / 2] = {
        largest + step / 2,
        largest + 0.49L * step,
        1 + one / 2,
        1 + 1.5L * one,
        1.5L * tiny,
        tiny / 2,
        NAN,
    };
    tc_real x = k % 2 ? -values[k / 2] : values[k / 2];
    return (tc_number){x, isnan(x)}; /* a NaN that is none when only its upper bits are taken */
}

/* The n-th of such numbers at every exponent of `to`, those below its normal ones included: a tie, and the numbers of
 * `from` next to it on either side, which is lost to who drops digits on the way. */
static tc_number near_tie(tn_dtype from, tn_dtype to, uint64_t n, tc_random *r) {
    enum { STEPS = 41 }; /* of a half every exponent, of others every so many */
    int lowest = ilogbl(tc_spacing(to, 0)) - 1, range = ilogbl(tc_largest(to)) - lowest + 1;
    int e =
        lowest + (int)(n / 3 * (uint64_t)(range > STEPS ? range / STEPS + 1 : 1) % (uint64_t)range);
    tc_real power = ldexpl(1, e), unit = tc_spacing(to, power), x = unit / 2;
    if (power >= unit)
        x += power + floorl(tc_uniform(r, 0, power / unit)) * unit;
    x += ((int)(n % 3) - 1) * tc_spacing(from, x);
    return (tc_number){n % 2 ? -x : x, 0};
}

/* The same for integers, as far as `from` has them: a tie of `to`, and one or a single last bit to
 * either side of it, which is lost to who rounds on the way. */
static int64_t rounding_int(tn_dtype from, tn_dtype to, uint64_t k) {
    int bits = tc_digits(to) + 1; /* of a tie */
    int most = 8 * (int)tc_dtype_bytes(from) - 1;
    uint64_t up = bits < most ? k / 6 * 5 % (uint64_t)(most - bits) : 0;
    if (bits > most)
        return (int64_t)(k % 100);
    int64_t tie = (((int64_t)1 << (bits - 1)) + 1 + (k / 3 % 2 ? 2 : 0)) << up;
    int64_t x = tie + (int64_t)(k % 3) - 1;
    return k % 2 && tc_int_min(from) < 0 ? -x : x;
}

/* Element i of a tensor that is converted, from N_SPECIAL on in each N_SPECIAL + N_ROUNDING. */
static tc_number conversion(tn_dtype from, tn_dtype to, uint64_t i, tc_random *r) {
    uint64_t lap = i / (N_SPECIAL + N_ROUNDING), k = i % (N_SPECIAL + N_ROUNDING) - N_SPECIAL;
    return lap == 0 || !tc_is_float(from) ? rounding(to, k)
                                          : near_tie(from, to, (lap - 1) * N_ROUNDING + k, r);
}

/* A whole number of `to`, of any magnitude, or the number of `from` next to it towards either side; what is behind the
 * point is cut off, not rounded, and leaves the number within the range. */
static tc_number near_whole(tn_dtype from, tn_dtype to, uint64_t n, tc_random *r) {
    int bits = 8 * (int)tc_dtype_bytes(to) - (tc_int_min(to) < 0);
    bool beyond = n % 8 == 7; /* only what is below it is in range */
    tc_real last = (tc_real)tc_int_max(to);
    tc_real whole = beyond ? last + 1 : floorl(exp2l(tc_uniform(r, 0, bits)));
    tc_real step = tc_spacing(from, whole);
    tc_real x = beyond || n % 3 == 1 ? whole - 0.51L * step : n % 3 == 2 ? whole + step : whole;
    x = tc_round(from, (tc_number){x, 0}).f;
    if (truncl(x) > last)
        x = 1.5L;
    return (tc_number){n / 8 % 2 && tc_int_min(to) < 0 ? -x : x, 0};
}

/* Of one floating tensor to whole numbers. */
static bool cuts_off(const tc_invocation *call) {
    tn_dtype to = call->outs[0].tensor.dtype;
    return call->record->n_args == 1 && call->record->n_types == 2 && to != TN_BOOL &&
           !tc_is_float(to) && tc_is_float(call->args[0].tensor.dtype);
}

/* A conversion to another floating dtype: of one tensor, to its own values. */
static bool converts(const tc_invocation *call) {
    return call->record->n_args == 1 && call->record->n_types == 2 &&
           tc_is_float(call->outs[0].tensor.dtype) && call->args[0].tensor.dtype != TN_BOOL;
}

/* ---- one element ------------------------------------------------------------------------- */

/* Whole numbers small enough that a sum of `terms` products of two is exact in the output's dtype,
 * most of them zero where there are many. */
static tc_number exact(tn_dtype dtype, const tc_arg *arg, int64_t terms, tc_random *r) {
    if (tc_is_float(dtype) && arg->high <= 1) { /* eighths do as well */
        int64_t x = tc_integer(r, (int64_t)(8 * arg->low), (int64_t)(8 * arg->high));
        return (tc_number){(tc_real)x / 8, 0};
    }
    int digits = tc_is_float(dtype) ? tc_digits(dtype) : dtype == TN_I8 || dtype == TN_U8 ? 6 : 10;
    int64_t room = (int64_t)1 << (digits < 10 ? digits : 10);
    int64_t high = 1;
    while (high < 8 && terms * (high + 1) * (high + 1) <= room)
        high++;
    int64_t low = -high;
    if (tc_is_float(dtype)) {
        if (arg->high < (double)high)
            high = arg->high < 1 ? 1 : (int64_t)arg->high;
        if (arg->low > (double)low)
            low = (int64_t)ceil(arg->low);
    }
    if (tc_int_min(dtype) == 0 && !tc_is_float(dtype) && low < 0)
        low = 0;
    bool zero = terms > room && (int64_t)tc_below(r, (uint64_t)terms) >= room;
    int64_t x = zero ? 0 : tc_integer(r, low, high);
    return (tc_number){(tc_real)x, x};
}

/* Of no bool. The constant spares a division for each element. */
static inline tc_number even(tn_dtype dtype, const tc_arg *arg, tc_random *r) {
    int64_t low = dtype == TN_U8 ? 0 : -100;
    int64_t i = tc_below(r, 16) == 0 ? 0 : low + (int64_t)tc_below(r, 201);
    return (tc_number){tc_uniform(r, arg->low, arg->high), i};
}

/* The sums of a line are far beyond what a half counts by ones when half of it is done, and near 0
 * at the end; all of it is exact in f32. `i` is row-major in a tensor with lines of n. */
static tc_number carry(tn_dtype dtype, bool turns, int64_t i, int64_t n, tc_random *r) {
    int64_t x = tc_integer(r, 1, 3);
    bool back = turns && i % n >= n / 2 && (tc_is_float(dtype) || tc_int_min(dtype) < 0);
    return (tc_number){(tc_real)(back ? -x : x), back ? -x : x};
}

/* One of all exponents, in order, with either sign; where integers are, every other one is halfway
 * between two. The second argument's are near the first's half of the time, to meet them. */
static tc_real stratum(tn_dtype dtype, uint32_t a, uint64_t i, tc_random *r) {
    int lowest, n = tc_exponents(dtype, &lowest);
    if (a > 0)
        i = tc_below(r, 2) ? i + tc_below(r, 9) : tc_next(r) >> 8;
    int exponent = lowest + (int)(i / 2 % (uint64_t)n);
    tc_real x = ldexpl(tc_uniform(r, 1, 2), exponent);
    if (i / 2 / (uint64_t)n % 2 && exponent >= -1 && exponent < tc_digits(dtype) - 1)
        x = floorl(x) + 0.5L;
    return i % 2 ? -x : x;
}

/* A whole exponent, with which the power of the first argument's element lies near an end of the
 * dtype, subnormal or about to overflow. */
static tc_number power(const tc_operand *base, int64_t i, tc_random *r) {
    int lowest, n = tc_exponents(base->dtype, &lowest), of_base = 1;
    (void)frexpl(base->values[i].f, &of_base);
    int end = tc_below(r, 2) ? lowest + (int)tc_below(r, (uint64_t)tc_digits(base->dtype) + 2)
                             : lowest + n - 1 - (int)tc_below(r, 4);
    int64_t x = of_base ? end / of_base : tc_integer(r, -32, 32);
    return (tc_number){(tc_real)x, x};
}

/* Next to so many quarters of a turn, of each order of magnitude at which the dtype still tells them apart. */
static tc_real near_turn(tn_dtype dtype, tc_random *r) {
    tc_real quarters = floorl(exp2l(tc_uniform(r, 0, tc_digits(dtype))));
    return (tc_below(r, 2) ? -quarters : quarters) * 1.57079632679489661923132169163975144L;
}

/* Evenly over the exponents, from 2^-20 of the range's end to its end. */
static tc_number wide(tn_dtype dtype, const tc_arg *arg, tc_random *r) {
    tc_real end = fmax(fabs(arg->low), fabs(arg->high));
    tc_real size = end * exp2((double)tc_uniform(r, -20, 0));
    bool negative = arg->high <= 0 || (arg->low < 0 && tc_below(r, 2));
    tc_real f = negative ? -size : size;
    f = f < arg->low ? arg->low : f > arg->high ? arg->high : f;
    int64_t span = tc_int_max(dtype) >> tc_below(r, 8 * tc_dtype_bytes(dtype) - 1);
    return (tc_number){f, tc_integer(r, tc_int_min(dtype) ? -span : 0, span)};
}

/* Steps of three elements, or of so many that the dtype has a number for each. */
static tc_number step(const tc_operand *o, int64_t i) {
    int64_t most = tc_is_float(o->dtype) ? (int64_t)1 << tc_digits(o->dtype) : tc_int_max(o->dtype),
            steps = o->shape.numel / 3 + 1;
    int64_t x = steps <= most ? i / 3 : (int64_t)((tc_real)i * most / o->shape.numel);
    return (tc_number){(tc_real)x, x};
}

/* Integers at the end of the dtype's range, and floats at that of the argument's, a few units in the
 * last place from one another. */
static tc_number near_end(tn_dtype dtype, const tc_arg *arg, tc_random *r) {
    int64_t back = (int64_t)tc_below(r, 100);
    tc_real end = arg->high != 0 ? arg->high : 1;
    return (tc_number){end - (tc_real)back * tc_spacing(dtype, end / 2), tc_int_max(dtype) - back};
}

/* Of the two factors, the last tensors of a call, is it the one that is zero? */
static bool is_null_factor(const tc_invocation *call, uint32_t a) {
    int behind = 0;
    while (++a < call->record->n_args)
        behind += call->record->args[a].kind == TC_ARG_TENSOR;
    return behind == (call->data == TC_DATA_NULL ? 0 : 1);
}

/* A whole number that needs every digit of the dtype; it arrives as an integer (execute.c). */
static tc_number whole(tn_dtype dtype, tc_random *r) {
    int64_t end = tc_is_float(dtype) ? (int64_t)1 << tc_digits(dtype) : tc_int_max(dtype);
    int64_t x = tc_integer(r, end / 2, end - 1) | 1;
    return (tc_number){(tc_real)x, x};
}

/* A factor before the sum may take an extreme out of range that the sum would bring back. */
static bool extremes(const tc_invocation *call) {
    for (uint32_t a = 0; a < call->record->n_args; a++)
        if (strcmp(call->record->args[a].name, "alpha") == 0 && fabs(call->args[a].f) > 1)
            return false;
    return call->record->extremes;
}

/* Lines along the last dimension. What a kernel takes to be near them all may be the one that is
 * not. All of it lies in the range of an argument that has one. */
static tc_number outlier(const tc_shape *shape, const tc_arg *arg, int64_t i, tc_random *r) {
    enum { FARTHEST = 100 + 40 * 15 };
    int64_t n = shape->rank ? shape->sizes[shape->rank - 1] : 1, line = i / n;
    int64_t places[] = {0, n - 1, n / 2};
    int64_t far = (line % 2 ? -1 : 1) * (100 + 40 * (line % 16)); /* lines are told apart */
    tc_number x = {(tc_real)far, far % 100};
    if (i % n != places[line % 3])
        x = (tc_number){tc_uniform(r, -0.5L, 0.5L), tc_integer(r, -1, 1)};
    if (arg->low != TC_USUAL_LOW || arg->high != TC_USUAL_HIGH)
        x.f = (arg->low + arg->high) / 2 + x.f / FARTHEST * (arg->high - arg->low) / 2;
    return x;
}

/* At which place a sum is handed on from one tile to the next, an infinity there tells. */
static bool is_infinite(const tc_shape *shape, int64_t i) {
    int64_t n = shape->rank ? shape->sizes[shape->rank - 1] : 1;
    return i % n == i / n % n;
}

/* Does the first argument have one number where the second has many? */
static bool is_one_for_many(const tc_invocation *call) {
    const tc_shape *first = &call->args[0].tensor.shape, *second = &call->args[1].tensor.shape;
    return call->scalar == 0 ||
           (call->record->n_args > 1 && call->record->args[1].kind == TC_ARG_TENSOR &&
            tc_has_zero_stride(first) && !tc_has_zero_stride(second));
}

static tc_number element(const tc_invocation *call, uint32_t a, int64_t i, int64_t terms,
                         tc_random *r) {
    const tc_arg *arg = &call->record->args[a];
    const tc_operand *o = &call->args[a].tensor;
    if (o->dtype == TN_BOOL)
        return (tc_number){0, call->data == TC_DATA_ONES ? 1 : (int64_t)tc_below(r, 2)};
    switch (call->data) {
    case TC_DATA_NEAR:
        return near_end(o->dtype, arg, r);
    case TC_DATA_ONES:
        return (tc_number){1, 1};
    case TC_DATA_NULL:
    case TC_DATA_NULL_FIRST:
        return is_null_factor(call, a) ? (tc_number){0, 0} : even(o->dtype, arg, r);
    case TC_DATA_RISING:
        return step(o, i);
    case TC_DATA_FALLING:
        return step(o, o->shape.numel - 1 - i);
    case TC_DATA_OUTLIER:
        return outlier(&o->shape, arg, i, r);
    case TC_DATA_INFINITE:
        return tc_is_float(o->dtype) && is_infinite(&o->shape, i)
                   ? (tc_number){i % 2 ? -INFINITY : INFINITY, 0}
                   : even(o->dtype, arg, r);
    case TC_DATA_EVERY:
        return tc_load(o->dtype, &i, 0); /* little-endian: the low bytes come first */
    case TC_DATA_EXACT:
        return exact(o->dtype, arg, terms, r);
    case TC_DATA_FAINT:
    case TC_DATA_FAINT_FIRST:
    case TC_DATA_FAINT_ADDED:
    case TC_DATA_FAINT_LONE:
    case TC_DATA_FAINT_LEFT:
        return tc_faint(call, a, i, terms, exact(o->dtype, arg, terms, r), r);
    case TC_DATA_TIES:
        return tc_tie(call, a, terms, exact(o->dtype, arg, terms, r), r);
    case TC_DATA_CARRY: /* of two factors, the first that is summed over */
        return carry(o->dtype, a == 0 || strcmp(arg->name, "mat1") == 0, i, terms, r);
    case TC_DATA_EXPONENTS:
        if (call->record->fill == TC_FILL_POWER && a == 1 && i % 2 && tc_is_float(o->dtype) &&
            i < call->args[0].tensor.shape.numel)
            return power(&call->args[0].tensor, i, r);
        if (call->record->fill == TC_FILL_TURNS && i % 4 == 1)
            return (tc_number){near_turn(o->dtype, r), 0};
        if (tc_is_float(o->dtype) && call->record->pointwise && extremes(call))
            return (tc_number){stratum(o->dtype, a, (uint64_t)i, r), 0};
        return wide(o->dtype, arg, r);
    case TC_DATA_WIDE: /* the first is what others are compared with */
        return i == 0 && !tc_is_float(o->dtype) ? whole(o->dtype, r) : wide(o->dtype, arg, r);
    case TC_DATA_BIASED: /* 0.1 is in no dtype exactly; of equal ones rounding goes one way */
        return (tc_number){(arg->low + arg->high) / 2 +
                               (arg->high - arg->low) *
                                   (0.1L + (tc_below(r, 16) ? 0 : tc_uniform(r, 0, 1e-3L))),
                           tc_integer(r, 90, 110)};
    case TC_DATA_SPECIAL:
        /* Each argument steps through the list at another pace, so that all pairs meet. */
        if (cuts_off(call) && i % 8 >= 4)
            return near_whole(o->dtype, call->outs[0].tensor.dtype,
                              (uint64_t)(i / 8 * 4 + i % 8 - 4), r);
        if (converts(call) && !tc_is_float(o->dtype) && i % 8 >= 4)
            return (tc_number){0, rounding_int(o->dtype, call->outs[0].tensor.dtype,
                                               (uint64_t)(i / 8 * 4 + i % 8 - 4))};
        if (converts(call) && (uint64_t)i % (N_SPECIAL + N_ROUNDING) >= N_SPECIAL)
            return conversion(o->dtype, call->outs[0].tensor.dtype, (uint64_t)i, r);
        if (call->record->pointwise) {
            uint64_t n = extremes(call) || !tc_is_float(o->dtype) ? N_SPECIAL : N_MILD;
            if (call->scalar == (int32_t)a)
                return cell(o->dtype, n, call->seed);
            uint32_t fast = is_one_for_many(call) ? 1 : 0;
            return special(o->dtype, (a == fast ? (uint64_t)i
                                      : a < 2   ? (uint64_t)i / n
                                                : tc_next(r)) %
                                         n);
        }
        return even(o->dtype, arg, r);
    default:
        return even(o->dtype, arg, r);
    }
}

/* Pairs of neighbours that cancel to a few units in the last place. */
static void cancel(tc_operand *o, tc_random *r) {
    for (int64_t i = 0; i + 1 < o->shape.numel; i += 2) {
        tc_real x = tc_round(o->dtype, (tc_number){o->values[i].f, o->values[i].i}).f;
        o->values[i].f = x;
        o->values[i + 1].f = -x + tc_spacing(o->dtype, x) * (tc_real)tc_integer(r, -2, 2);
        o->values[i + 1].i = -o->values[i].i + tc_integer(r, -2, 2);
    }
}

/* What is asked of random numbers as a yes or no would have one answer: zeros are put between, and
 * every fourth pair is made equal; one value for all is one of the other tensor's. */
static void meet(tc_invocation *call, uint32_t a, tc_random *r) {
    tc_operand *o = &call->args[a].tensor;
    if (!call->record->pointwise || call->outs[0].tensor.dtype != TN_BOOL || o->dtype == TN_BOOL ||
        call->data == TC_DATA_SPECIAL || call->data == TC_DATA_EVERY)
        return;
    bool one = a == 1 && call->scalar == 1;
    for (int64_t i = 0; i < o->shape.numel; i++)
        if (one || tc_below(r, 4) == 0)
            o->values[i] = a == 1 ? call->args[0].tensor.values[i] : (tc_number){0, 0};
}

/* What an attribute is compared with: itself, and its neighbours among integers; these also where the
 * numbers of other data are all far below it. */
static void approach(tc_invocation *call, uint32_t a) {
    tc_operand *o = &call->args[a].tensor;
    int64_t at = 5;
    for (uint32_t k = 0; k < call->record->n_args; k++) {
        const tc_value *v = &call->args[k];
        if (call->record->args[k].kind != TC_ARG_SCALAR || v->none || o->dtype == TN_BOOL ||
            (call->data != TC_DATA_SPECIAL && (tc_is_float(o->dtype) || fabs(v->f) < 0x1p53)))
            continue;
        for (int64_t off = -1; off <= 1 && at < o->shape.numel; off++, at += 7)
            o->values[at] = (tc_number){(tc_real)v->f, (int64_t)((uint64_t)v->i + (uint64_t)off)};
    }
}

/* Where elements are added up, one NaN spoils a whole output: a few are placed among ordinary ones, and
 * one of each kind in the last row, which is what chunks of rows leave over. */
static void place_specials(tc_operand *o, tc_random *r) {
    const tc_real floats[] = {NAN, copysignl(NAN, -1), INFINITY, -INFINITY, -0.0L, 0x1p-126L};
    const int64_t ints[] = {tc_int_min(o->dtype), tc_int_max(o->dtype), tc_int_min(o->dtype) + 1};
    enum { APART = 8, KINDS = sizeof floats / sizeof *floats };
    int64_t n = 1 + o->shape.numel / 64 < 3 ? 1 + o->shape.numel / 64 : 3;
    int64_t rows = o->shape.rank > 1 ? o->shape.sizes[0] : 1;
    int64_t row = rows > 1 ? o->shape.numel / rows : 0;
    for (int k = 0; tc_is_float(o->dtype) && k < KINDS && (k + 1) * APART < row; k++)
        o->values[o->shape.numel - row + k * APART + 3] = (tc_number){floats[k], 0};
    for (int64_t k = 0; k < n; k++) {
        uint64_t at = tc_below(r, (uint64_t)o->shape.numel);
        o->values[at] = tc_is_float(o->dtype)
                            ? (tc_number){floats[tc_below(r, sizeof floats / sizeof *floats)], 0}
                            : (tc_number){0, ints[tc_below(r, sizeof ints / sizeof *ints)]};
    }
}

/* NaNs that differ in what they carry: a kernel that compares bits tells them apart, and must not;
 * where one is rounded, all its digits carry over. What carries something already keeps it. */
static void tell_nans_apart(tc_operand *o, tc_random *r) {
    uint64_t quiet = UINT64_C(1) << (tc_digits(o->dtype) - 2);
    for (int64_t i = 0; i < o->shape.numel; i++)
        if (isnan(o->values[i].f) && o->values[i].i == 0)
            o->values[i].i = (int64_t)(quiet | (tc_below(r, 4) ? tc_below(r, quiet) : quiet - 1));
}

/* Numbers of which none can be a NaN: most of what there is. */
static bool are_numbers(tc_data data) {
    return data == TC_DATA_RANDOM || data == TC_DATA_EXACT || data == TC_DATA_BIASED ||
           data == TC_DATA_CARRY || data == TC_DATA_ONES;
}

static void fill_elements(const tc_invocation *call, uint32_t a, tc_random *r) {
    const tc_operand *o = &call->args[a].tensor;
    int64_t terms = call->record->family->terms(call);
    if (call->data == TC_DATA_RANDOM && o->dtype != TN_BOOL) /* most of all, and at once */
        for (int64_t i = 0; i < o->shape.numel; i++)
            tc_put(&o->values[i], even(o->dtype, &call->record->args[a], r));
    else
        for (int64_t i = 0; i < o->shape.numel; i++)
            tc_put(&o->values[i], element(call, a, i, terms, r));
}

/* The least number that is asked of what flushes subnormal ones: where a kernel may multiply numbers or divide with a
 * rest on the way to its result, one of which products and rests are normal. Those of f16 are in f32, in which it is
 * computed. */
static tc_real least_asked(const tc_record *record, tn_dtype dtype) {
    tc_real normal = tc_smallest_normal(dtype);
    bool has_steps = !record->pointwise || record->n_args > 1;
    return has_steps && dtype != TN_F16 ? sqrtl(normal) : normal;
}

void tc_spare_subnormals(const tc_invocation *call, tc_operand *o) {
    if (!(call->flushes & TN_DTYPES_FLOAT & TN_DTYPE_BIT(o->dtype)))
        return;
    tc_real least = least_asked(call->record, o->dtype);
    for (int64_t i = 0; i < o->shape.numel; i++)
        if (o->values[i].f != 0 && fabsl(o->values[i].f) < least)
            o->values[i].f = copysignl(least, o->values[i].f);
}

static void fill_arg(tc_invocation *call, uint32_t a, tc_random *r) {
    tc_operand *o = &call->args[a].tensor;
    bool own = call->record->family->fill && call->record->family->fill(call, a, r);
    if (!own) {
        fill_elements(call, a, r);
        if (call->data == TC_DATA_CANCEL && o->dtype != TN_BOOL && call->record->args[a].low < 0)
            cancel(o, r);
        bool specials =
            call->data == TC_DATA_SPECIAL || (tc_is_null(call->data) && !is_null_factor(call, a));
        if (specials && !call->record->pointwise && o->dtype != TN_BOOL)
            place_specials(o, r);
        if (call->record->pointwise)
            approach(call, a);
        meet(call, a, r);
    }
    if (tc_is_float(o->dtype) && call->data != TC_DATA_EVERY && (own || !are_numbers(call->data)))
        tell_nans_apart(o, r);
    tc_number cell = tc_round(TN_F32, o->values[0]);
    if (call->scalar == (int32_t)a) {
        if (call->data == TC_DATA_WIDE && o->dtype != TN_BOOL && tc_is_arithmetic(call->record))
            o->values[0] = whole(o->dtype, r);
        for (int64_t i = 1; i < o->shape.numel; i++)
            o->values[i] = o->values[0];
    }
    tc_operand_settle(o);
    if (call->flushes & TN_DTYPE_BIT(o->dtype)) {
        tc_spare_subnormals(call, o); /* known only now that they are rounded */
        tc_operand_settle(o);
    }
    bool has_digits = call->data == TC_DATA_DIGITS && call->scalar == (int32_t)a;
    for (int64_t i = 0; has_digits && i < o->shape.numel; i++)
        o->values[i] = cell; /* which is no element, and is not rounded to the dtype of those */
}

/* Functions, and attributes such as 0.3, make arithmetic inexact. */
static bool stays_whole(const tc_invocation *call) {
    if (call->record->ulps > 0)
        return false;
    for (uint32_t a = 0; a < call->record->n_args; a++) {
        tc_arg_kind kind = call->record->args[a].kind;
        double f = 16 * call->args[a].f;
        if ((kind == TC_ARG_SCALAR || kind == TC_ARG_FLOAT) && (f != floor(f) || fabs(f) > 1024))
            return false;
    }
    return true;
}

/* Behind its elements, as far as others lie there, they come again. */
static void repeat(tc_operand *o) {
    const tc_shape *s = &o->shape;
    for (int64_t i = s->numel; s->offset + i < s->extent; i++)
        tc_store(o->dtype, o->image, s->offset + i, o->values[i % s->numel]);
}

/* What is one view is one operand; what lies within another has the numbers that are there. */
static void share_operands(tc_invocation *call) {
    if (call->inner)
        repeat(&call->args[call->within].tensor);
    for (uint32_t a = 0; a < call->record->n_args; a++) {
        tc_operand *o = &call->args[a].tensor;
        *o = call->args[tc_owner(call, a)].tensor;
        if (!tc_lies_within(call, a))
            continue;
        o->image = call->args[call->within].tensor.image;
        o->bytes = call->args[call->within].tensor.bytes;
        for (int64_t i = 0; i < o->shape.numel; i++)
            tc_put(&o->values[i], tc_load(o->dtype, o->image, tc_place(&o->shape, i)));
    }
}

static bool create_operands(tc_invocation *call, uint64_t surroundings) {
    const tc_record *record = call->record;
    for (uint32_t a = 0; a < record->n_args; a++) {
        tc_operand *o = &call->args[a].tensor;
        tc_shape shape = o->shape;
        if (record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
            !tc_operand_create(call->arena, o->dtype, &shape, surroundings + a,
                               record->family->fill || call->inner, o))
            return false; /* others lie there before it is filled, or the family looks at it */
    }
    share_operands(call);
    for (uint32_t k = 0; k < record->n_outs; k++) {
        tc_expected *e = &call->outs[k];
        tc_shape shape = e->tensor.shape;
        e->error = tc_arena_array(call->arena, (uint64_t)shape.numel, sizeof *e->error);
        e->rounding = tc_arena_array(call->arena, (uint64_t)shape.numel, sizeof *e->rounding);
        if (!e->error || !e->rounding ||
            !tc_operand_create(call->arena, e->tensor.dtype, &shape, surroundings + 100 + k, true,
                               &e->tensor))
            return false;
    }
    return true;
}

static void forget_outputs(tc_invocation *call) {
    for (uint32_t k = 0; k < call->record->n_outs; k++) {
        size_t n = (size_t)call->outs[k].tensor.shape.numel;
        memset(call->outs[k].tensor.values, 0, n * sizeof *call->outs[k].tensor.values);
        memset(call->outs[k].error, 0, n * sizeof *call->outs[k].error);
        memset(call->outs[k].rounding, 0, n * sizeof *call->outs[k].rounding);
    }
}

static void fill_args(tc_invocation *call, uint64_t filling) {
    for (uint32_t a = 0; a < call->record->n_args; a++) {
        tc_random r = {call->seed + 0x10000 * filling + 0x100 * (a + 1)};
        if (call->record->args[a].kind == TC_ARG_TENSOR && !call->args[a].none &&
            !tc_lies_within(call, a))
            fill_arg(call, a, &r);
    }
    share_operands(call);
}

/* What `only` leaves of a filling. */
static void keep_only(tc_invocation *call) {
    if (call->only < 0)
        return;
    for (uint32_t a = 0; a < call->record->n_args; a++) {
        const tc_arg *arg = &call->record->args[a];
        tc_operand *o = &call->args[a].tensor;
        tc_random r = {call->seed};
        if (arg->kind != TC_ARG_TENSOR || call->args[a].none || call->scalar == (int32_t)a ||
            tc_lies_within(call, a))
            continue;
        tc_number *filled = o->values;
        o->values = tc_arena_array(call->arena, (uint64_t)o->shape.numel, sizeof *o->values);
        bool own =
            o->values && call->record->family->fill && call->record->family->fill(call, a, &r);
        if (!o->values || own) { /* the family knows what it needs */
            o->values = filled;
            continue;
        }
        bool one = arg->low > 0 || arg->high < 0;
        for (int64_t i = 0; i < o->shape.numel; i++)
            o->values[i] = i == call->only % o->shape.numel
                               ? filled[i]
                               : (tc_number){one ? (arg->high < 0 ? -1 : 1) : 0, one};
        tc_operand_settle(o);
    }
    share_operands(call);
}

static bool fill_first(tc_invocation *call, uint64_t surroundings, char why[TC_MESSAGE]) {
    bool is_exact = call->data == TC_DATA_EXACT || call->data == TC_DATA_CARRY ||
                    call->data == TC_DATA_TIES || tc_is_faint(call->data);
    call->whole = is_exact && stays_whole(call);
    if (!create_operands(call, surroundings))
        return tc_why(why, TC_MESSAGE, "the host has no memory for a case of this size");
    fill_args(call, 0);
    return true;
}

bool tc_invocation_fill_inputs(tc_invocation *call, uint64_t surroundings, char why[TC_MESSAGE]) {
    if (!fill_first(call, surroundings, why))
        return false;
    keep_only(call);
    return true;
}

bool tc_invocation_fill(tc_invocation *call, uint64_t surroundings, char why[TC_MESSAGE]) {
    enum { FILLINGS = 32, LARGE = 5000, MOST = 400000 /* elements of all fillings */ };
    if (!fill_first(call, surroundings, why))
        return false;
    int64_t filled = 0;
    for (uint64_t k = 0; k < FILLINGS && filled < MOST; k++) {
        if (k > 0) {
            fill_args(call, k);
            forget_outputs(call);
        }
        call->record->reference(call);
        for (uint32_t a = 0; a < call->record->n_args; a++)
            filled += call->args[a].tensor.shape.numel;
        tc_verdict trust = {.status = TC_PASS};
        tc_check_conclusive(call, 0, &trust);
        if (trust.status == TC_PASS || call->outs[0].tensor.shape.numel > LARGE)
            break;
    }
    if (!tc_add_ends(call))
        return tc_why(why, TC_MESSAGE, "the host has no memory for a case of this size");
    if (call->only >= 0) {
        keep_only(call);
        forget_outputs(call);
        call->record->reference(call);
    }
    return tc_has_bounds(call, why);
}

static bool take_operands(const tc_invocation *like, tc_invocation *call, uint64_t surroundings) {
    const tc_record *record = call->record;
    for (uint32_t a = 0; a < record->n_args; a++) {
        const tc_operand *from = &like->args[a].tensor;
        tc_operand *o = &call->args[a].tensor;
        if (record->args[a].kind != TC_ARG_TENSOR || call->args[a].none)
            continue;
        o->values = from->values;
        if (!tc_operand_image(call->arena, surroundings + a, o) ||
            (!tc_lies_within(call, a) && !tc_copy_elements(call->arena, from, o)))
            return false;
    }
    share_operands(call);
    for (uint32_t k = 0; k < record->n_outs; k++) {
        tc_shape shape = call->outs[k].tensor.shape;
        call->outs[k] = like->outs[k];
        call->outs[k].tensor.shape = shape;
        if (!tc_operand_image(call->arena, surroundings + 100 + k, &call->outs[k].tensor))
            return false;
    }
    return true;
}

bool tc_invocation_fill_like(const tc_invocation *like, tc_invocation *call, uint64_t surroundings,
                             char why[TC_MESSAGE]) {
    call->whole = like->whole;
    return take_operands(like, call, surroundings) ||
           tc_why(why, TC_MESSAGE, "the host has no memory for a case of this size");
}

void tc_invocation_mirror(const tc_invocation *from, tc_invocation *to) {
    for (uint32_t a = 0; a < from->record->n_args; a++) {
        const tc_operand *o = &from->args[a].tensor;
        if (from->record->args[a].kind != TC_ARG_TENSOR || from->args[a].none)
            continue;
        memcpy(to->args[a].tensor.values, o->values, (size_t)o->shape.numel * sizeof *o->values);
        tc_operand_settle(&to->args[a].tensor);
    }
}
