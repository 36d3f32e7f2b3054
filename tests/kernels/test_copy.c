/* copy: every pair of dtypes, every pair of layouts, and how it rounds. */
#include "kernels_test.h"

#include <math.h>
#include <string.h>

static tn_status copy(const operand *from, operand *to) {
    const tn_cell arg = cell_of(from);
    return call_kernel("copy", from->dtype, to->dtype, 1, &arg, 1, &to);
}

/* As C converts, to the nearest even where both are floating. */
static number converted(number x, tn_dtype from, tn_dtype to) {
    if (is_float(from))
        return (number){x.f, to == TN_BOOL ? x.f != 0 : (int64_t)x.f};
    return (number){(double)x.i, x.i};
}

static void copy_and_check(operand *from, operand *to) {
    number *expected = scratch((size_t)from->numel * sizeof *expected);
    for (int64_t i = 0; i < from->numel; i++)
        expected[i] = converted(from->values[i], from->dtype, to->dtype);
    assert_ok(copy(from, to));
    check_elements(to, expected, NULL, 0);
    check_untouched(from);
}

/* Shapes that transpose in whole tiles and in parts of them, that are short inside, and others. */
static const struct {
    int32_t rank;
    int64_t sizes[8];
} shapes[] = {
    {0, {0}},
    {1, {1}},
    {1, {77}},
    {2, {70, 45}},
    {2, {3, 600}},
    {2, {600, 3}},
    {3, {3, 40, 37}},
    {4, {2, 1, 5, 6}},
    {3, {33, 4, 5}},
    {3, {5, 64, 1}},
    {5, {2, 3, 2, 4, 3}},
    {8, {2, 1, 3, 2, 1, 2, 2, 3}},
};

static tn_dtype from_dtype;

static void into(tn_dtype to) {
    const double low = to == TN_U8 || from_dtype == TN_U8 ? 0 : -100;
    for (int l = 0; l < N_LAYOUTS; l++)
        for (int m = 0; m < N_OUT_LAYOUTS; m++) {
            const int s = (l * N_OUT_LAYOUTS + m + from_dtype + to) % LENGTH(shapes);
            describe("copy %d to %d, shape %d, layouts %d to %d", from_dtype, to, s, l, m);
            operand *a =
                operand_random(from_dtype, shapes[s].rank, shapes[s].sizes, (layout)l, low, 100);
            copy_and_check(a, operand_out(to, shapes[s].rank, shapes[s].sizes, (layout)m));
            case_end(NULL);
        }
}

static void every_pair_of_dtypes_converts_in_every_layout(void **state) {
    for (from_dtype = 0; from_dtype < TN_DTYPE_COUNT; from_dtype++)
        for (tn_dtype to = 0; to < TN_DTYPE_COUNT; to++)
            into(to);
}

static void every_shape_moves_in_every_layout(void **state) {
    static const tn_dtype dtypes[] = {TN_I8, TN_BF16, TN_F32, TN_I64};
    for (int d = 0; d < LENGTH(dtypes); d++)
        for (int s = 0; s < LENGTH(shapes); s++)
            for (int l = 0; l < N_LAYOUTS; l++)
                for (int m = 0; m < N_OUT_LAYOUTS; m++) {
                    describe("copy %d, shape %d, layouts %d to %d", dtypes[d], s, l, m);
                    operand *a = operand_random(dtypes[d], shapes[s].rank, shapes[s].sizes,
                                                (layout)l, -100, 100);
                    copy_and_check(
                        a, operand_out(dtypes[d], shapes[s].rank, shapes[s].sizes, (layout)m));
                    case_end(NULL);
                }
}

static void large_copies_are_shared_by_threads(void **state) {
    const int64_t sizes[] = {301, 403};
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (int l = 0; l < N_LAYOUTS; l++)
            for (int k = 0; k < 2; k++) {
                describe("copy on %u threads, layout %d, to %d", threads, l, k);
                use_threads(threads);
                operand *a = operand_random(TN_F32, 2, sizes, (layout)l, -100, 100);
                copy_and_check(a, operand_out(k ? TN_F16 : TN_F32, 2, sizes, DENSE));
                case_end(NULL);
            }
    use_threads(THREADS);
}

static void copying_keeps_every_bit(void **state) {
    const int64_t n = 65536;
    for (tn_dtype dtype = TN_F16; dtype <= TN_BF16; dtype++)
        for (int l = 0; l < N_OUT_LAYOUTS; l++) {
            operand *a = operand_create(dtype, 1, &n, DENSE);
            for (int64_t i = 0; i < n; i++)
                ((uint16_t *)a->bytes)[a->places[i]] = (uint16_t)i; /* NaNs of every kind, too */
            operand_upload(a);
            operand *z = operand_out(dtype, 1, &n, (layout)l);
            assert_ok(copy(a, z));
            assert_memory_equal(elements_of(z), elements_of(a), (size_t)n * 2);
            case_end(NULL);
        }
}

/* ---- rounding ------------------------------------------------------------------------------- */

/* Every pattern of a 16-bit dtype, every number half way between two, and what lies just beside. */
static void round_to(tn_dtype dtype, tn_dtype from) {
    const int64_t n = 65536 * 3;
    operand *a = operand_create(from, 1, &n, DENSE);
    for (int64_t h = 0; h < 65536; h++) {
        const uint16_t pair[2] = {(uint16_t)h, (uint16_t)(h ^ 0x8000 ? h + 1 : h)};
        const double x = get(dtype, pair, 0).f, y = get(dtype, pair, 1).f;
        const double middle = isfinite(x) && isfinite(y) ? x + (y - x) / 2 : x;
        operand_set(a, 3 * h, (number){.f = x});
        operand_set(a, 3 * h + 1, (number){.f = middle});
        operand_set(a, 3 * h + 2, (number){.f = middle * (1 + epsilon(from))});
    }
    operand_upload(a);
    describe("copy %d to %d", from, dtype);
    copy_and_check(a, operand_out(dtype, 1, &n, DENSE));
    case_end(NULL);
}

static void floats_round_once_to_nearest_even(void **state) {
    for (tn_dtype from = TN_F32; from <= TN_F64; from++)
        for (tn_dtype to = TN_F16; to <= TN_BF16; to++)
            round_to(to, from);
}

static void integers_round_once_to_nearest_even(void **state) {
    /* Just above and below the middle of two neighbours in bf16, by less than f64 can tell. */
    static const struct {
        int64_t x;
        double expected;
    } cases[] = {
        {(1LL << 62) + (1LL << 54), 0x1p62},
        {(1LL << 62) + (1LL << 54) + 1, 0x1.02p62},
        {(1LL << 62) + (3LL << 54), 0x1.04p62},
        {(1LL << 62) + (3LL << 54) - 1, 0x1.02p62},
        {-(1LL << 62) - (1LL << 54), -0x1p62},
        {-(1LL << 62) - (1LL << 54) - 1, -0x1.02p62},
        {INT64_MAX, 0x1p63},
        {INT64_MIN, -0x1p63},
        {(1LL << 53) + 1, 0x1p53},
        {257, 256},
        {259, 260},
    };
    const int64_t n = LENGTH(cases);
    operand *a = operand_create(TN_I64, 1, &n, DENSE), *z = operand_out(TN_BF16, 1, &n, DENSE);
    number expected[LENGTH(cases)];
    for (int64_t i = 0; i < n; i++) {
        operand_set(a, i, (number){.i = cases[i].x});
        expected[i] = (number){.f = cases[i].expected};
    }
    operand_upload(a);
    describe("copy of i64 to bf16");
    assert_ok(copy(a, z));
    check_elements(z, expected, NULL, 0);
}

static void what_does_not_fit_is_no_trap(void **state) {
    static const double values[] = {NAN, INFINITY, -INFINITY, 1e300, -1e19, 3e9, -1, 1e5};
    const int64_t n = LENGTH(values);
    for (tn_dtype from = TN_F32; from <= TN_BF16; from++)
        for (tn_dtype to = 0; to < TN_DTYPE_COUNT; to++) {
            operand *a = operand_create(from, 1, &n, DENSE);
            for (int64_t i = 0; i < n; i++)
                operand_set(a, i, (number){.f = values[i]});
            operand_upload(a);
            assert_ok(copy(a, operand_out(to, 1, &n, DENSE)));
        }
}

int test_copy(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_pair_of_dtypes_converts_in_every_layout),
        TEST(every_shape_moves_in_every_layout),
        TEST(large_copies_are_shared_by_threads),
        TEST(copying_keeps_every_bit),
        TEST(floats_round_once_to_nearest_even),
        TEST(integers_round_once_to_nearest_even),
        TEST(what_does_not_fit_is_no_trap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
