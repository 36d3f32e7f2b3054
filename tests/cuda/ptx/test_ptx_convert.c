/* Every cvt between the types that there are, in every direction of rounding, against C: long
 * double has all their numbers. */
#include "tests/cuda/ptx/ptx_rig.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 16, THREADS = 256, VALUES = BLOCKS * THREADS };

typedef struct type {
    const char *name;
    int bytes;
    char kind; /* i: signed, u: unsigned, f, b: bf16 */
} type;
static const type types[] = {
    {"u8", 1, 'u'},  {"u16", 2, 'u'}, {"u32", 4, 'u'}, {"u64", 8, 'u'},
    {"s8", 1, 'i'},  {"s16", 2, 'i'}, {"s32", 4, 'i'}, {"s64", 8, 'i'},
    {"f16", 2, 'f'}, {"f32", 4, 'f'}, {"f64", 8, 'f'}, {"bf16", 2, 'b'},
};
enum { TYPES = sizeof types / sizeof *types };

static bool is_integer(const type *t) {
    return t->kind == 'i' || t->kind == 'u';
}

/* ---- values ------------------------------------------------------------------------------ */

static long double of_small(uint16_t bits, int mantissa) {
    int exponents = 15 - mantissa;
    int exponent = bits >> mantissa & ((1 << exponents) - 1);
    long double fraction = bits & ((1 << mantissa) - 1);
    int bias = (1 << (exponents - 1)) - 1;
    long double x = exponent == (1 << exponents) - 1 ? (fraction != 0 ? NAN : INFINITY)
                    : exponent == 0
                        ? ldexpl(fraction, 1 - bias - mantissa)
                        : ldexpl(fraction + (1 << mantissa), exponent - bias - mantissa);
    return bits >> 15 ? -x : x;
}

static long double value_of(const type *t, uint64_t bits) {
    float f;
    double d;
    uint32_t word = (uint32_t)bits;
    int unused = 64 - 8 * t->bytes;
    switch (t->kind) {
    case 'u':
        return (long double)(bits << unused >> unused);
    case 'i':
        return (long double)((int64_t)(bits << unused) >> unused);
    case 'b':
        return of_small((uint16_t)bits, 7);
    default:
        if (t->bytes == 2)
            return of_small((uint16_t)bits, 10);
        if (t->bytes == 4) {
            memcpy(&f, &word, 4);
            return f;
        }
        memcpy(&d, &bits, 8);
        return d;
    }
}

/* The nearest of all numbers that there are, of two the even one; or the next one towards zero. */
static uint64_t to_small(long double x, int mantissa, bool to_zero) {
    uint16_t infinity = (uint16_t)((0x7fff >> mantissa) << mantissa);
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    long double m = fabsl(x);
    if (isnan(x))
        return 0x7fff;
    if (isinf(x))
        return sign | infinity;
    uint16_t low = 0, high = infinity; /* of_small(low) <= m < of_small(high) */
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (of_small(middle, mantissa) <= m)
            low = middle;
        else
            high = middle;
    }
    long double below = of_small(low, mantissa);
    /* What infinity would be if the exponent went on. */
    long double above = high == infinity
                            ? 2 * of_small((uint16_t)(infinity - (1 << mantissa)), mantissa)
                            : of_small(high, mantissa);
    bool up = !to_zero && (m - below > above - m || (m - below == above - m && low & 1));
    return sign | (up ? high : low);
}

static int direction_of(const char *modifiers) {
    return strstr(modifiers, ".rz")   ? FE_TOWARDZERO
           : strstr(modifiers, ".rm") ? FE_DOWNWARD
           : strstr(modifiers, ".rp") ? FE_UPWARD
                                      : FE_TONEAREST;
}

static uint64_t extended(const type *t, uint64_t bits, int bytes) {
    int unused = 64 - 8 * t->bytes;
    uint64_t x =
        t->kind == 'i' ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits << unused >> unused;
    return bytes == 8 ? x : x & ((UINT64_C(1) << 8 * bytes) - 1);
}

static uint64_t to_integer(const type *t, const type *from, long double x) {
    int bits = 8 * t->bytes;
    long double least = t->kind == 'i' ? -ldexpl(1, bits - 1) : 0;
    long double most = t->kind == 'i' ? ldexpl(1, bits - 1) - 1 : ldexpl(1, bits) - 1;
    if (isnan(x))
        return t->bytes == 8 || from->bytes == 8 ? UINT64_C(1) << (bits - 1) : 0;
    x = x < least ? least : x > most ? most : x;
    return x < 0 ? 0 - (uint64_t)-x : (uint64_t)x;
}

static uint64_t expected(const type *to, const type *from, const char *modifiers, uint64_t bits,
                         int register_bytes) {
    volatile long double x = value_of(from, bits);
    bool ftz = strstr(modifiers, ".ftz") != NULL, sat = strstr(modifiers, ".sat") != NULL;
    if (ftz && from->bytes == 4 && from->kind == 'f' && fabsl(x) < 0x1p-126L)
        x = copysignl(0, x);
    bool integral = strlen(modifiers) >= 4 && modifiers[3] == 'i';
    fesetround(direction_of(modifiers));
    if (integral)
        x = rintl(x);
    volatile float f = (float)x;
    volatile double d = (double)x;
    fesetround(FE_TONEAREST);
    if (is_integer(to) && is_integer(from) && !sat)
        return extended(to, extended(from, bits, 8), register_bytes);
    if (is_integer(to))
        return extended(to, to_integer(to, from, x), register_bytes);
    if (to->bytes == 2)
        return to_small(x, to->kind == 'b' ? 7 : 10, strstr(modifiers, ".rz") != NULL);
    if (sat)
        f = d = x > 0 ? x < 1 ? x : 1 : 0;
    if (ftz && to->bytes == 4 && fabsf(f) < 0x1p-126f)
        f = copysignf(0, f);
    uint64_t out = 0;
    float single = isnan(x) && !sat ? NAN : f;
    double twice = d;
    memcpy(&out, to->bytes == 4 ? (void *)&single : (void *)&twice, (size_t)to->bytes);
    return out;
}

/* ---- tests ------------------------------------------------------------------------------- */

static bool both_nan(const type *t, uint64_t x, uint64_t y) {
    return !is_integer(t) && isnan(value_of(t, x)) && isnan(value_of(t, y));
}

static int n_checked;

static void check(const type *to, const type *from, const char *modifiers, int to_register,
                  int from_register) {
    char text[4096], name[64],
        operands[4] = {(char)('0' + to_register), '/', (char)('0' + from_register), 0};
    snprintf(name, sizeof name, "cvt%s.%s.%s", modifiers, to->name, from->name);
    rig_kernel(text, sizeof text, name, operands);
    rig *r = rig_open(text, 1 << 20);
    uint64_t a = rig_take(r, VALUES * 8), b = rig_take(r, VALUES * 8), seed = 3;
    uint64_t *out = rig_host(r, a), *in = rig_host(r, b);
    for (int v = 0; v < VALUES; v++)
        in[v] = from->bytes == 2 && v < 2048 ? (uint64_t)v * 32 + 5 : rig_bits(&seed);
    RIG_RUN(r, "k", BLOCKS, THREADS, a, b, b, b, b, b, UINT64_C(0));
    for (int v = 0; v < VALUES; v++) {
        uint64_t got = to_register == 8 ? out[v] : out[v] & ((UINT64_C(1) << 8 * to_register) - 1);
        uint64_t want = expected(to, from, modifiers, in[v], to_register);
        if (got != want && !both_nan(to, got, want))
            fail_msg("%s %d/%d of 0x%llx (%Lg): 0x%llx, not 0x%llx", name, to_register,
                     from_register, (unsigned long long)in[v], value_of(from, in[v]),
                     (unsigned long long)got, (unsigned long long)want);
    }
    rig_close(r);
    n_checked++;
}

static void check_registers(const type *to, const type *from, const char *modifiers) {
    int wide[2] = {to->bytes < 2 ? 2 : to->bytes, from->bytes < 2 ? 2 : from->bytes};
    for (int k = 0; k < 4; k++) {
        int t = k & 1 ? wide[0] * 2 : wide[0], f = k & 2 ? wide[1] * 2 : wide[1];
        if (t <= 8 && f <= 8 && (t == wide[0] || is_integer(to)) &&
            (f == wide[1] || is_integer(from)))
            check(to, from, modifiers, t, f);
    }
}

static void each(bool to_integers, bool from_integers, const char *const *modifiers,
                 bool (*fits)(const type *, const type *, const char *)) {
    n_checked = 0;
    for (int t = 0; t < TYPES; t++)
        for (int f = 0; f < TYPES; f++)
            for (int m = 0; modifiers[m]; m++)
                if (is_integer(&types[t]) == to_integers &&
                    is_integer(&types[f]) == from_integers &&
                    fits(&types[t], &types[f], modifiers[m]))
                    check_registers(&types[t], &types[f], modifiers[m]);
    assert_true(n_checked > 0);
}

static bool any(const type *to, const type *from, const char *modifiers) {
    return true;
}

static void integers_become_integers(void **state) {
    static const char *const modifiers[] = {"", ".sat", NULL};
    each(true, true, modifiers, any);
}

static void numbers_become_integers(void **state) {
    static const char *const modifiers[] = {".rni", ".rzi", ".rmi", ".rpi", ".rni.ftz", NULL};
    each(true, false, modifiers, any);
}

/* bf16 from integers is not interpreted, and f16 to the nearest alone. */
static bool rounds(const type *to, const type *from, const char *modifiers) {
    return to->bytes > 2 || (to->kind == 'f' && !strcmp(modifiers, ".rn"));
}

static void integers_become_numbers(void **state) {
    static const char *const modifiers[] = {".rn", ".rz", ".rm", ".rp", NULL};
    each(false, true, modifiers, rounds);
}

static bool narrows(const type *to, const type *from, const char *modifiers) {
    if (to->bytes == 2)
        return from->bytes > 2 &&
               (!strcmp(modifiers, ".rn") ||
                (!strcmp(modifiers, ".rz") && !(to->kind == 'b' && from->bytes == 8)));
    return to->bytes == 4 && from->bytes == 8;
}

static bool widens(const type *to, const type *from, const char *modifiers) {
    return to->bytes > from->bytes && (!*modifiers || from->bytes == 4);
}

static bool stays(const type *to, const type *from, const char *modifiers) {
    return to == from && to->bytes > 2;
}

static void numbers_become_numbers(void **state) {
    static const char *const narrower[] = {".rn", ".rz", ".rm", ".rp", ".rn.ftz", NULL};
    static const char *const wider[] = {"", ".ftz", NULL};
    static const char *const same[] = {"", ".sat", ".rni", ".rzi", ".rmi", ".rpi", NULL};
    each(false, false, narrower, narrows);
    each(false, false, wider, widens);
    each(false, false, same, stays);
}

static void pairs_have_their_first_above(void **state) {
    static const struct {
        const char *name;
        int mantissa;
        bool to_zero, relu;
    } cases[] = {
        {"cvt.rn.f16x2.f32", 10, false, false},     {"cvt.rz.f16x2.f32", 10, true, false},
        {"cvt.rn.bf16x2.f32", 7, false, false},     {"cvt.rz.bf16x2.f32", 7, true, false},
        {"cvt.rn.relu.bf16x2.f32", 7, false, true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[4096];
        rig_kernel(text, sizeof text, cases[k].name, "4/44");
        rig *r = rig_open(text, 1 << 20);
        uint64_t array[3], *host[3], seed = 9;
        for (int a = 0; a < 3; a++) {
            array[a] = rig_take(r, VALUES * 8);
            host[a] = rig_host(r, array[a]);
            for (int v = 0; v < VALUES; v++)
                host[a][v] = rig_bits(&seed);
        }
        RIG_RUN(r, "k", BLOCKS, THREADS, array[0], array[1], array[2], array[0], array[0], array[0],
                UINT64_C(0));
        for (int v = 0; v < VALUES; v++) {
            uint64_t want = 0;
            for (int a = 1; a < 3; a++) {
                long double x = value_of(&types[9], host[a][v]);
                x = cases[k].relu && x <= 0 ? 0 : x;
                want |= to_small(x, cases[k].mantissa, cases[k].to_zero) << (a == 1 ? 16 : 0);
            }
            if ((uint32_t)host[0][v] != want)
                fail_msg("%s of 0x%x and 0x%x: 0x%x, not 0x%x", cases[k].name, (uint32_t)host[1][v],
                         (uint32_t)host[2][v], (uint32_t)host[0][v], (uint32_t)want);
        }
        rig_close(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_become_integers),     cmocka_unit_test(numbers_become_integers),
        cmocka_unit_test(integers_become_numbers),      cmocka_unit_test(numbers_become_numbers),
        cmocka_unit_test(pairs_have_their_first_above),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
