/* Element types: names, every pair's promotion, and every 16-bit pattern there and back. */
#include "tests/core/core_test.h"

#include "core/tensor/tensor.h"

#include <math.h>

static void names_and_sizes_are_those_of_the_table(void **state) {
#define X(NAME, value, name, bytes, category) \
    assert_string_equal(tn_dtype_name(TN_##NAME), name); \
    assert_int_equal(tn_dtype_size(TN_##NAME), bytes);
    TN_DTYPE_MAP(X)
    TN_STORAGE_DTYPE_MAP(X)
#undef X
    assert_string_equal(tn_dtype_name(TN_DTYPE_NONE), "?");
    assert_string_equal(tn_dtype_name(13), "?");
    assert_string_equal(tn_dtype_name(TN_DTYPE_END), "?");
    assert_int_equal(tn_dtype_size(TN_DTYPE_NONE), 0);
    assert_int_equal(tn_dtype_size(13), 0);
}

/* A storage dtype is one that plugin.h has reserved, as it says there. */
static void storage_dtypes_are_reserved_ones(void **state) {
    static const struct {
        const char *name;
        int bytes;
        char category;
    } reserved[32] = {
#define X(NAME, value, name, bytes, category) [value] = {name, bytes, category},
        TN_DTYPE_RESERVED_MAP(X)
#undef X
    };
#define X(NAME, value, name_, bytes_, category_) \
    assert_string_equal(reserved[value].name, name_); \
    assert_int_equal(reserved[value].bytes, bytes_); \
    assert_int_equal(reserved[value].category, category_);
    TN_STORAGE_DTYPE_MAP(X)
#undef X
}

/* torch.promote_types, row by column, in the order of TN_DTYPE_MAP. */
#define f4 TN_F32
#define f8 TN_F64
#define f2 TN_F16
#define b2 TN_BF16
#define i1 TN_I8
#define i2 TN_I16
#define i4 TN_I32
#define i8 TN_I64
#define u1 TN_U8
#define bo TN_BOOL
static const tn_dtype promoted[TN_DTYPE_COUNT][TN_DTYPE_COUNT] = {
    /*        f32 f64 f16 bf16 i8 i16 i32 i64 u8 bool */
    [f4] = {f4, f8, f4, f4, f4, f4, f4, f4, f4, f4},
    [f8] = {f8, f8, f8, f8, f8, f8, f8, f8, f8, f8},
    [f2] = {f4, f8, f2, f4, f2, f2, f2, f2, f2, f2},
    [b2] = {f4, f8, f4, b2, b2, b2, b2, b2, b2, b2},
    [i1] = {f4, f8, f2, b2, i1, i2, i4, i8, i2, i1},
    [i2] = {f4, f8, f2, b2, i2, i2, i4, i8, i2, i2},
    [i4] = {f4, f8, f2, b2, i4, i4, i4, i8, i4, i4},
    [i8] = {f4, f8, f2, b2, i8, i8, i8, i8, i8, i8},
    [u1] = {f4, f8, f2, b2, i2, i2, i4, i8, u1, u1},
    [bo] = {f4, f8, f2, b2, i1, i2, i4, i8, u1, bo},
};

/* The same with a storage dtype on either side; `no`: PyTorch refuses. */
#define no TN_DTYPE_NONE
#define u2 TN_U16
#define u4 TN_U32
#define u8 TN_U64
#define c8 TN_C64
#define ch TN_C128
static const tn_dtype promoted_stored[][TN_DTYPE_END] = {
    /*        f32 f64 f16 bf16 i8 i16 i32 i64 u8 bool u16 u32 u64 - c64 c128 */
    [u2] = {f4, f8, f2, b2, no, no, no, no, no, no, u2, no, no, no, no, no},
    [u4] = {f4, f8, f2, b2, no, no, no, no, no, no, no, u4, no, no, no, no},
    [u8] = {f4, f8, f2, b2, no, no, no, no, no, no, no, no, u8, no, no, no},
    [c8] = {c8, ch, c8, c8, c8, c8, c8, c8, c8, c8, no, no, no, no, c8, ch},
    [ch] = {ch, ch, ch, ch, ch, ch, ch, ch, ch, ch, no, no, no, no, ch, ch},
};

static void storage_dtypes_promote_as_in_pytorch(void **state) {
    for (tn_dtype a = TN_DTYPE_COUNT; a < TN_DTYPE_END; a++) {
        for (tn_dtype b = 0; b < TN_DTYPE_END && tn_dtype_size(a); b++) {
            if (!tn_dtype_size(b))
                continue;
            tn_dtype want = promoted_stored[a][b];
            assert_string_equal(tn_dtype_name(tn_promote(a, b)), tn_dtype_name(want));
            assert_string_equal(tn_dtype_name(tn_promote(b, a)), tn_dtype_name(want));
        }
    }
}

static void all_pairs_promote_as_in_pytorch(void **state) {
    for (tn_dtype a = 0; a < TN_DTYPE_COUNT; a++) {
        for (tn_dtype b = 0; b < TN_DTYPE_COUNT; b++)
            assert_string_equal(tn_dtype_name(tn_promote(a, b)), tn_dtype_name(promoted[a][b]));
        assert_int_equal(tn_promote(a, TN_DTYPE_NONE), a);
        assert_int_equal(tn_promote(TN_DTYPE_NONE, a), a);
    }
    assert_int_equal(tn_promote(TN_DTYPE_NONE, TN_DTYPE_NONE), TN_DTYPE_NONE);
}

/* What a pattern of `exponent_bits` and `mantissa_bits` stands for, by its definition. */
static double meaning(uint16_t bits, int exponent_bits, int mantissa_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    int mantissa = bits & ((1 << mantissa_bits) - 1);
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1)
        return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

static void check_all(float (*widen)(uint16_t), uint16_t (*narrow)(float), int exponent_bits,
                      int mantissa_bits) {
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t bits = (uint16_t)i;
        float wide = widen(bits);
        double want = meaning(bits, exponent_bits, mantissa_bits);
        if (isnan(want)) {
            assert_true(isnan(wide));
            assert_int_equal(narrow(wide), bits | 1 << (mantissa_bits - 1)); /* made quiet */
            continue;
        }
        assert_true(wide == want && !signbit(wide) == !signbit(want));
        assert_int_equal(narrow(wide), bits);
        /* Between this number and the next: below, at and above the half way. */
        uint16_t next = (uint16_t)(bits + 1);
        double after = meaning(next, exponent_bits, mantissa_bits);
        if (isinf(want) || isnan(after))
            continue;
        if (isinf(after)) /* the next would be one more step */
            after = 2 * want - meaning((uint16_t)(bits - 1), exponent_bits, mantissa_bits);
        float half = (float)((want + after) / 2);
        if (half != (want + after) / 2)
            continue;
        assert_int_equal(narrow(half), bits & 1 ? next : bits);
        assert_int_equal(narrow(nextafterf(half, 0)), bits);
        assert_int_equal(narrow(nextafterf(half, half < 0 ? -INFINITY : INFINITY)), next);
    }
}

static void every_f16_comes_back_and_rounds_to_even(void **state) {
    check_all(tni_f16_to_f32, tni_f32_to_f16, 5, 10);
    assert_int_equal(tni_f32_to_f16(65504), 0x7bff);
    assert_int_equal(tni_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(tni_f32_to_f16(65520), 0x7c00);
    assert_int_equal(tni_f32_to_f16(1e30f), 0x7c00);
    assert_int_equal(tni_f32_to_f16(-1e-30f), 0x8000);
}

static void every_bf16_comes_back_and_rounds_to_even(void **state) {
    check_all(tni_bf16_to_f32, tni_f32_to_bf16, 8, 7);
    assert_int_equal(tni_f32_to_bf16(3.4e38f), 0x7f80);
    assert_int_equal(tni_f32_to_bf16(1.00390625f), 0x3f80);
}

static void an_element_is_a_cell_of_its_kind(void **state) {
    uint64_t memory[2] = {0, 0};
#define ELEMENT(DTYPE, type, value, tag_, member) \
    do { \
        ((type *)memory)[1] = (type)(value); \
        tn_scalar s = tni_element(memory, DTYPE, 1); \
        assert_int_equal(s.tag, tag_); \
        assert_true(s.v.member == (value)); \
    } while (0)
    ELEMENT(TN_F32, float, -1.5, TN_CELL_F64, f64);
    ELEMENT(TN_F64, double, 1e300, TN_CELL_F64, f64);
    ELEMENT(TN_I8, int8_t, -128, TN_CELL_I64, i64);
    ELEMENT(TN_I16, int16_t, -32768, TN_CELL_I64, i64);
    ELEMENT(TN_I32, int32_t, INT32_MIN, TN_CELL_I64, i64);
    ELEMENT(TN_I64, int64_t, INT64_MIN, TN_CELL_I64, i64);
    ELEMENT(TN_U8, uint8_t, 255, TN_CELL_I64, i64);
    ELEMENT(TN_BOOL, uint8_t, 1, TN_CELL_BOOL, boolean);
    ((uint16_t *)memory)[1] = 0x3c00;
    assert_true(tni_element(memory, TN_F16, 1).v.f64 == 1);
    assert_true(tni_element(memory, TN_BF16, 1).v.f64 == 0.0078125);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_sizes_are_those_of_the_table),
        cmocka_unit_test(storage_dtypes_are_reserved_ones),
        cmocka_unit_test(all_pairs_promote_as_in_pytorch),
        cmocka_unit_test(storage_dtypes_promote_as_in_pytorch),
        cmocka_unit_test(every_f16_comes_back_and_rounds_to_even),
        cmocka_unit_test(every_bf16_comes_back_and_rounds_to_even),
        cmocka_unit_test(an_element_is_a_cell_of_its_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
