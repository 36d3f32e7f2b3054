/* fill, arange and random_bits. */
#include "kernels_test.h"

#include <string.h>

static void check_fill(tn_dtype dtype, int32_t rank, const int64_t *sizes, layout l, tn_cell value,
                       number expected) {
    operand *z = operand_out(dtype, rank, sizes, l);
    number *all = scratch((size_t)z->numel * sizeof *all);
    for (int64_t i = 0; i < z->numel; i++)
        all[i] = expected;
    assert_ok(call_kernel("fill", dtype, TN_DTYPE_NONE, 1, &value, 1, &z));
    check_elements(z, all, NULL, 0);
}

static void fill(tn_dtype dtype) {
    static const struct {
        int32_t rank;
        int64_t sizes[3];
    } shapes[] = {{0, {0}}, {1, {1}}, {1, {1003}}, {2, {5, 600}}, {3, {3, 1, 4}}, {2, {300, 250}}};
    for (int s = 0; s < LENGTH(shapes); s++)
        for (int l = 0; l < N_OUT_LAYOUTS; l++) {
            describe("fill, dtype %d, shape %d, layout %d", dtype, s, l);
            check_fill(dtype, shapes[s].rank, shapes[s].sizes, (layout)l,
                       is_float(dtype) ? mini_f64(-2.71) : mini_i64(-3), (number){-2.71, -3});
        }
}

static void fill_writes_one_value_everywhere(void **state) {
    for_dtypes("fill", fill);
}

static void fill_takes_every_kind_of_number(void **state) {
    const int64_t n = 9;
    for (tn_dtype dtype = 0; dtype < TN_DTYPE_COUNT; dtype++) {
        describe("fill, dtype %d", dtype);
        check_fill(dtype, 1, &n, DENSE, mini_i64(1), (number){1, 1});
        check_fill(dtype, 1, &n, DENSE, mini_f64(1), (number){1, 1});
        check_fill(dtype, 1, &n, DENSE, mini_bool(true), (number){1, 1});
    }
    check_fill(TN_BOOL, 1, &n, DENSE, mini_f64(0.5), (number){.i = 1});
    check_fill(TN_F32, 1, &n, DENSE, mini_f64(-0.0), (number){.f = -0.0});
    check_fill(TN_BF16, 1, &n, DENSE, mini_f64(1 + 0x1p-8 + 0x1p-40), (number){.f = 1 + 0x1p-7});
}

static void arange(tn_dtype dtype) {
    static const int64_t lengths[] = {1, 2, 300, 513, 100003};
    for (int s = 0; s < LENGTH(lengths); s++)
        for (int l = 0; l < N_OUT_LAYOUTS; l++) {
            const int64_t n = lengths[s];
            /* steps whose multiples are exact in f64, so that "rounded once" has one answer */
            const tn_cell args[] = {is_float(dtype) ? mini_f64(-7.25) : mini_i64(-7),
                                    is_float(dtype) ? mini_f64(0.375) : mini_i64(3)};
            operand *z = operand_out(dtype, 1, &n, (layout)l);
            number *expected = scratch((size_t)n * sizeof *expected);
            for (int64_t i = 0; i < n; i++)
                expected[i] = (number){-7.25 + 0.375 * (double)i, -7 + 3 * i};
            describe("arange, dtype %d, %lld elements, layout %d", dtype, (long long)n, l);
            assert_ok(call_kernel("arange", dtype, TN_DTYPE_NONE, 2, args, 1, &z));
            check_elements(z, expected, NULL, 0);
        }
}

static void arange_counts_and_rounds_once(void **state) {
    for_dtypes("arange", arange);
}

/* Word `w` of the stream of `seed`, by the definition in kernels.toml. */
static uint32_t philox_word(uint64_t seed, uint64_t w) {
    uint32_t c[4] = {(uint32_t)(w / 4), (uint32_t)((w / 4) >> 32), 0, 0};
    uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)c[0] * 0xD2511F53, b = (uint64_t)c[2] * 0xCD9E8D57;
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    return c[w % 4];
}

static void random_bits(tn_dtype dtype) {
    static const int64_t seeds[] = {0, 42, -1, 0x123456789abcdef0};
    static const int64_t offsets[] = {0, 1, 0xfffffff0, 0x7fffffffffff};
    static const int64_t lengths[] = {1, 5, 257, 70001};
    for (int k = 0; k < LENGTH(seeds); k++) {
        operand *z = operand_out(dtype, 1, &lengths[k], DENSE);
        number *expected = scratch((size_t)z->numel * sizeof *expected);
        for (int64_t i = 0; i < z->numel; i++) {
            const uint64_t w = 4 * (uint64_t)offsets[k] + (uint64_t)i * (dtype == TN_I64 ? 2 : 1);
            expected[i].i = philox_word((uint64_t)seeds[k], w);
            if (dtype == TN_I64)
                expected[i].i |= (int64_t)((uint64_t)philox_word((uint64_t)seeds[k], w + 1) << 32);
            else
                expected[i].i = (int32_t)expected[i].i;
        }
        const tn_cell args[] = {mini_i64(seeds[k]), mini_i64(offsets[k])};
        describe("random_bits, dtype %d, case %d", dtype, k);
        assert_ok(call_kernel("random_bits", dtype, TN_DTYPE_NONE, 2, args, 1, &z));
        check_elements(z, expected, NULL, 0);
    }
}

static void random_bits_are_philox(void **state) {
    static const uint32_t known[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (uint64_t w = 0; w < 4; w++) /* the reference itself, against Random123's known answer */
        assert_int_equal(philox_word(0, w), known[w]);
    for_dtypes("random_bits", random_bits);
}

static void results_do_not_depend_on_the_number_of_threads(void **state) {
    const int64_t n = 100003;
    operand *f = operand_out(TN_F32, 1, &n, DENSE), *i = operand_out(TN_I32, 1, &n, DENSE);
    const tn_cell floats[] = {mini_f64(0.1), mini_f64(0.3)};
    const tn_cell integers[] = {mini_i64(42), mini_i64(7)};
    check_threads("fill", TN_F32, 1, floats, 1, &f);
    check_threads("arange", TN_F32, 2, floats, 1, &f);
    check_threads("random_bits", TN_I32, 2, integers, 1, &i);
}

int test_factory(void) {
    const struct CMUnitTest tests[] = {
        TEST(fill_writes_one_value_everywhere),
        TEST(fill_takes_every_kind_of_number),
        TEST(arange_counts_and_rounds_once),
        TEST(random_bits_are_philox),
        TEST(results_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
