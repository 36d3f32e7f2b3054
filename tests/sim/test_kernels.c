/* Every kernel, with every dtype it takes, against a plain reference in f64 or 64-bit integers. */
#include "rig.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void run(const char *op, tn_dtype dtype, uint32_t n_args, const tn_cell *args,
                uint32_t n_outs, mini_tensor *const *outs) {
    const tn_kernel *kernel = mini_find(&rig, op, dtype, TN_DTYPE_NONE);
    if (!kernel)
        fail_msg("no kernel for %s, dtype %d", op, dtype);
    tn_status status = mini_run(&rig, kernel, n_args, args, n_outs, outs);
    if (status != TN_OK)
        fail_msg("%s, dtype %d: status %d, %s", op, dtype, status, mini_error());
}

/* Is the element `data[i]` what the reference says, rounded to its dtype, or within `ulps` of it?
 */
static void check(const char *op, tn_dtype dtype, const void *data, int64_t i, number expected,
                  double ulps) {
    int64_t rounded[1] = {0};
    set(dtype, rounded, 0, expected);
    const number want = get(dtype, rounded, 0), have = get(dtype, data, i);
    bool good = have.i == want.i;
    if (is_float(dtype))
        good = isnan(want.f) ? isnan(have.f)
               : isinf(want.f) || ulps == 0
                   ? have.f == want.f
                   : fabs(have.f - want.f) <=
                         ulps * epsilon(dtype) * fmax(fabs(expected.f), DBL_MIN * 4);
    if (!good)
        fail_msg("%s, dtype %d, element %lld: %.17g / %lld instead of %.17g / %lld", op, dtype,
                 (long long)i, have.f, (long long)have.i, want.f, (long long)want.i);
}

/* Calls `each(dtype)` for the dtypes of a mask. */
static void for_dtypes(uint64_t mask, void (*each)(tn_dtype dtype)) {
    for (tn_dtype dtype = 0; dtype < TN_DTYPE_COUNT; dtype++) {
        if (mask & TN_DTYPE_BIT(dtype))
            each(dtype);
        mini_tensors_free(&rig);
    }
}

static array array_of(tn_dtype dtype, int64_t n, const double *values) {
    array a = array_create(dtype, 1, &n);
    for (int64_t i = 0; i < n; i++)
        set(dtype, a.host, i, (number){.f = values[i], .i = (int64_t)values[i]});
    array_upload(&a);
    return a;
}

/* ---- pointwise ---- */

enum { MANY = 1003 };

static number add_twice(number a, number b) { /* alpha is 2, exact in every type */
    return (number){a.f + 2 * b.f, (int64_t)((uint64_t)a.i + 2 * (uint64_t)b.i)};
}

static number mul(number a, number b) {
    return (number){a.f * b.f, (int64_t)((uint64_t)a.i * (uint64_t)b.i)};
}

static number divide(number a, number b) {
    return (number){.f = a.f / b.f};
}

static number floor_divide(number a, number b) {
    number q = {.f = floor((a.f - fmod(a.f, b.f)) / b.f + 0.25)};
    if (fmod(a.f, b.f) != 0 && (fmod(a.f, b.f) < 0) != (b.f < 0))
        q.f -= 1;
    if (b.i == -1)
        q.i = (int64_t) - (uint64_t)a.i;
    else if (b.i != 0)
        q.i = a.i / b.i - (a.i % b.i != 0 && (a.i < 0) != (b.i < 0));
    return q;
}

static number maximum(number a, number b) {
    return (number){isnan(a.f) || isnan(b.f) ? NAN : fmax(a.f, b.f), a.i > b.i ? a.i : b.i};
}

static number power(number a, number b) {
    number p = {.f = pow(a.f, b.f), .i = 1};
    for (int64_t i = 0; i < b.i; i++)
        p.i = (int64_t)((uint64_t)p.i * (uint64_t)a.i);
    if (b.i < 0)
        p.i = a.i == 1 ? 1 : a.i == -1 ? (b.i % 2 ? -1 : 1) : 0;
    return p;
}

static number equal(number a, number b) {
    return (number){.i = a.f == b.f && a.i == b.i};
}

static number less(number a, number b) {
    return (number){.i = a.f < b.f || a.i < b.i};
}

static number bit_and(number a, number b) {
    return (number){.i = a.i & b.i};
}

static number bit_or(number a, number b) {
    return (number){.i = a.i | b.i};
}

static number bit_xor(number a, number b) {
    return (number){.i = a.i ^ b.i};
}

static const struct binary {
    const char *op;
    number (*reference)(number a, number b);
    uint64_t dtypes;
    double low, high; /* of both operands */
    double int_low, int_high;
    double ulps;
    bool alpha, to_bool;
} binaries[] = {
    {"add", add_twice, TN_DTYPES_ALL, 0, 10, -1e18, 1e18, 1, true, false},
    {"mul", mul, TN_DTYPES_ALL, -10, 10, -1e18, 1e18, 0, false, false},
    {"div", divide, TN_DTYPES_FLOAT, 0.5, 10, 0, 0, 0, false, false},
    {"floor_divide", floor_divide, TN_DTYPES_NUMBER, -50, 50, -120, 120, 0, false, false},
    {"maximum", maximum, TN_DTYPES_ALL, -10, 10, -100, 100, 0, false, false},
    {"pow", power, TN_DTYPES_NUMBER, 0.1, 4, -9, 9, 1, false, false},
    {"eq", equal, TN_DTYPES_ALL, -1, 1, -3, 3, 0, false, true},
    {"lt", less, TN_DTYPES_ALL, -1, 1, -3, 3, 0, false, true},
    {"bitwise_and", bit_and, TN_DTYPES_INT | TN_DTYPE_BIT(TN_BOOL), 0, 0, -1e18, 1e18, 0, 0, 0},
    {"bitwise_or", bit_or, TN_DTYPES_INT | TN_DTYPE_BIT(TN_BOOL), 0, 0, -1e18, 1e18, 0, 0, 0},
    {"bitwise_xor", bit_xor, TN_DTYPES_INT | TN_DTYPE_BIT(TN_BOOL), 0, 0, -1e18, 1e18, 0, 0, 0},
};

static const struct binary *binary; /* the one under test */

static void check_binary(const array *a, const array *b) {
    const tn_dtype dtype = a->dtype, to = binary->to_bool ? TN_BOOL : dtype;
    array z = array_create(to, 1, &a->numel);
    const tn_cell args[] = {mini_view(a->tensor), mini_view(b->tensor),
                            is_float(dtype) ? mini_f64(2) : mini_i64(2)};
    run(binary->op, dtype, binary->alpha ? 3 : 2, args, 1, &z.tensor);
    array_download(&z);
    for (int64_t i = 0; i < a->numel; i++)
        check(binary->op, to, z.host, i,
              binary->reference(get(dtype, a->host, i), get(dtype, b->host, i)), binary->ulps);
    array_free_host(&z);
}

static void test_binary(tn_dtype dtype) {
    const int64_t n = MANY;
    const double low = is_float(dtype) ? binary->low : binary->int_low;
    const double high = is_float(dtype) ? binary->high : binary->int_high;
    array a = array_random(dtype, 1, &n, low, high), b = array_random(dtype, 1, &n, low, high);
    check_binary(&a, &b);
    array_free_host(&a);
    array_free_host(&b);
}

static void binary_operators_agree_with_the_reference(void **state) {
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++) {
        binary = &binaries[i];
        for_dtypes(binary->dtypes, test_binary);
    }
}

static void test_special_values(tn_dtype dtype) {
    static const double values[] = {NAN, INFINITY, -INFINITY, -2, 0, 0.5, 3};
    double a[49], b[49];
    for (int i = 0; i < 49; i++) {
        a[i] = values[i / 7];
        b[i] = values[i % 7];
    }
    array x = array_of(dtype, 49, a), y = array_of(dtype, 49, b);
    static const char *const ops[] = {"add", "mul", "div", "maximum", "pow", "eq", "lt"};
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++)
        for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++)
            if (strcmp(binaries[i].op, ops[k]) == 0) {
                binary = &binaries[i];
                check_binary(&x, &y);
            }
    array_free_host(&x);
    array_free_host(&y);
}

static void nan_and_infinity_behave(void **state) {
    for_dtypes(TN_DTYPES_FLOAT, test_special_values);
}

static void test_integer_division(tn_dtype dtype) {
    const double lowest = dtype == TN_I8    ? INT8_MIN
                          : dtype == TN_I16 ? INT16_MIN
                          : dtype == TN_I32 ? INT32_MIN
                                            : (double)INT64_MIN;
    array a = array_of(dtype, 4, (double[]){lowest, 5, lowest, 0});
    array b = array_of(dtype, 4, (double[]){-1, 0, 0, 0}), z = array_create(dtype, 1, &a.numel);
    const tn_cell args[] = {mini_view(a.tensor), mini_view(b.tensor)};
    run("floor_divide", dtype, 2, args, 1, &z.tensor);
    array_download(&z);
    assert_true(get(dtype, z.host, 0).i == (int64_t)lowest);
    for (int i = 1; i < 4; i++)
        assert_int_equal(get(dtype, z.host, i).i, 0);
    array_free_host(&a);
    array_free_host(&b);
    array_free_host(&z);
}

static void integer_division_never_traps(void **state) {
    for_dtypes(TN_DTYPES_INT & ~TN_DTYPE_BIT(TN_U8), test_integer_division);
}

static void floor_division_is_python_s(void **state) {
    array a = array_of(TN_F64, 4, (double[]){1, -1, 5, -7});
    array b = array_of(TN_F64, 4, (double[]){0.1, 0.1, INFINITY, 2});
    array z = array_create(TN_F64, 1, &a.numel);
    const double expected[] = {9, -10, 0, -4};
    const tn_cell args[] = {mini_view(a.tensor), mini_view(b.tensor)};
    run("floor_divide", TN_F64, 2, args, 1, &z.tensor);
    array_download(&z);
    for (int i = 0; i < 4; i++)
        assert_true(get(TN_F64, z.host, i).f == expected[i]);
    array_free_host(&a);
    array_free_host(&b);
    array_free_host(&z);
}

static const struct unary {
    const char *op;
    double (*reference)(double);
    double low, high;
} unaries[] = {
    {"exp", exp, -8, 8},   {"log", log, 0.01, 50},    {"sqrt", sqrt, 0, 100},
    {"sin", sin, -20, 20}, {"cos", cos, -20, 20},     {"tanh", tanh, -3, 3},
    {"erf", erf, -3, 3},   {"floor", floor, -30, 30},
};

static const struct unary *unary;

static void test_unary(tn_dtype dtype) {
    static const double special[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e-3};
    const int64_t n = MANY;
    array a = array_random(dtype, 1, &n, unary->low, unary->high);
    for (int i = 0; i < 6; i++)
        set(dtype, a.host, i, (number){.f = special[i]});
    array_upload(&a);
    array z = array_create(dtype, 1, &n);
    run(unary->op, dtype, 1, (tn_cell[]){mini_view(a.tensor)}, 1, &z.tensor);
    array_download(&z);
    for (int64_t i = 0; i < n; i++)
        check(unary->op, dtype, z.host, i, (number){.f = unary->reference(get(dtype, a.host, i).f)},
              1);
    array_free_host(&a);
    array_free_host(&z);
}

static void functions_agree_with_the_reference(void **state) {
    for (size_t i = 0; i < sizeof unaries / sizeof unaries[0]; i++) {
        unary = &unaries[i];
        for_dtypes(TN_DTYPES_FLOAT, test_unary);
    }
}

static void test_where(tn_dtype dtype) {
    const int64_t n = MANY;
    array c = array_random(TN_BOOL, 1, &n, 0, 1), a = array_random(dtype, 1, &n, -100, 100);
    array b = array_random(dtype, 1, &n, -100, 100), z = array_create(dtype, 1, &n);
    const tn_cell args[] = {mini_view(c.tensor), mini_view(a.tensor), mini_view(b.tensor)};
    run("where", dtype, 3, args, 1, &z.tensor);
    array_download(&z);
    for (int64_t i = 0; i < n; i++)
        check("where", dtype, z.host, i, get(dtype, get(TN_BOOL, c.host, i).i ? a.host : b.host, i),
              0);
    array_free_host(&c);
    array_free_host(&a);
    array_free_host(&b);
    array_free_host(&z);
}

static void where_selects(void **state) {
    for_dtypes(TN_DTYPES_ALL, test_where);
}

/* ---- filling ---- */

static void test_fill(tn_dtype dtype) {
    const int64_t n = 77;
    array z = array_create(dtype, 1, &n);
    run("fill", dtype, 1, (tn_cell[]){is_float(dtype) ? mini_f64(-2.75) : mini_i64(-3)}, 1,
        &z.tensor);
    array_download(&z);
    for (int64_t i = 0; i < n; i++)
        check("fill", dtype, z.host, i, (number){-2.75, -3}, 0);
    array_free_host(&z);
}

static void fill_writes_one_value(void **state) {
    for_dtypes(TN_DTYPES_ALL, test_fill);
}

static void test_arange(tn_dtype dtype) {
    const int64_t n = 300;
    array z = array_create(dtype, 1, &n);
    const tn_cell args[] = {is_float(dtype) ? mini_f64(1.1) : mini_i64(-7),
                            is_float(dtype) ? mini_f64(0.37) : mini_i64(3)};
    run("arange", dtype, 2, args, 1, &z.tensor);
    array_download(&z);
    for (int64_t i = 0; i < n; i++)
        check("arange", dtype, z.host, i, (number){1.1 + (double)i * 0.37, -7 + 3 * i}, 0);
    array_free_host(&z);
}

static void arange_is_rounded_once(void **state) {
    for_dtypes(TN_DTYPES_NUMBER, test_arange);
}

static void random_bits_are_philox(void **state) {
    /* Known answer of Random123: key 0, counter 0. */
    static const uint32_t known[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    array words = array_create(TN_I32, 1, (int64_t[]){13});
    run("random_bits", TN_I32, 2, (tn_cell[]){mini_i64(0), mini_i64(0)}, 1, &words.tensor);
    array_download(&words);
    assert_memory_equal(words.host, known, sizeof known);

    /* An offset skips blocks of four words; i64 elements are two words each, the low one first. */
    array later = array_create(TN_I32, 1, (int64_t[]){9});
    array pairs = array_create(TN_I64, 1, (int64_t[]){4});
    run("random_bits", TN_I32, 2, (tn_cell[]){mini_i64(0), mini_i64(1)}, 1, &later.tensor);
    run("random_bits", TN_I64, 2, (tn_cell[]){mini_i64(0), mini_i64(1)}, 1, &pairs.tensor);
    array_download(&later);
    array_download(&pairs);
    assert_memory_equal(later.host, (char *)words.host + 16, 36);
    for (int i = 0; i < 4; i++)
        assert_true((uint64_t)((int64_t *)pairs.host)[i] ==
                    (((uint32_t *)later.host)[2 * i] | (uint64_t)((uint32_t *)later.host)[2 * i + 1]
                                                           << 32));

    /* Known answer again: all ones in key and the two words of the counter that an offset reaches
     * must differ from key 0. */
    run("random_bits", TN_I32, 2, (tn_cell[]){mini_i64(-1), mini_i64(-1)}, 1, &later.tensor);
    array_download(&later);
    assert_memory_not_equal(later.host, words.host, 16);
    array_free_host(&words);
    array_free_host(&later);
    array_free_host(&pairs);
}

/* ---- copy ---- */

static tn_dtype copy_from;

static void test_conversion(tn_dtype to) {
    const int64_t n = MANY;
    /* Values that every dtype but bool can hold in its range: what does not fit is unspecified. */
    array a = array_random(copy_from, 1, &n, 0, 100), z = array_create(to, 1, &n);
    run("copy", copy_from, 1, (tn_cell[]){mini_view(a.tensor)}, 1, &z.tensor);
    array_download(&z);
    for (int64_t i = 0; i < n; i++) {
        number x = get(copy_from, a.host, i);
        if (is_float(copy_from))
            x.i = to == TN_BOOL ? x.f != 0 : (int64_t)x.f;
        else
            x.f = (double)x.i;
        check("copy", to, z.host, i, x, 0);
    }
    array_free_host(&a);
    array_free_host(&z);
}

static void copy_converts_every_pair(void **state) {
    for (copy_from = 0; copy_from < TN_DTYPE_COUNT; copy_from++)
        for_dtypes(TN_DTYPES_ALL, test_conversion);
}

static void copy_of_what_does_not_fit_is_no_trap(void **state) {
    array a = array_of(TN_F64, 5, (double[]){NAN, INFINITY, -INFINITY, 1e300, -1e19});
    for (tn_dtype to = 0; to < TN_DTYPE_COUNT; to++) {
        array z = array_create(to, 1, &a.numel);
        run("copy", TN_F64, 1, (tn_cell[]){mini_view(a.tensor)}, 1, &z.tensor);
        array_free_host(&z);
    }
    array_free_host(&a);
}

/* Every bit pattern of a 16-bit dtype, and everything half way between two of them, both from f64
 * and from f32. */
static void test_rounding(tn_dtype dtype) {
    const int64_t n = 65536 * 3;
    array a = array_create(TN_F64, 1, &n), b = array_create(TN_F32, 1, &n);
    array z = array_create(dtype, 1, &n);
    for (int64_t h = 0; h < 65536; h++) {
        uint16_t pair[2] = {(uint16_t)h, (uint16_t)(h ^ 0x8000 ? h + 1 : h)};
        const double x = get(dtype, pair, 0).f, y = get(dtype, pair, 1).f;
        const double middle = isfinite(x) && isfinite(y) ? x + (y - x) / 2 : x;
        ((double *)a.host)[3 * h] = x;
        ((double *)a.host)[3 * h + 1] = middle;
        ((double *)a.host)[3 * h + 2] = middle * (1 + 0x1p-52); /* lost if rounded to f32 first */
    }
    for (int64_t i = 0; i < n; i++)
        ((float *)b.host)[i] = (float)((double *)a.host)[i];
    array_upload(&a);
    array_upload(&b);
    run("copy", TN_F64, 1, (tn_cell[]){mini_view(a.tensor)}, 1, &z.tensor);
    array_download(&z);
    for (int64_t i = 0; i < n; i++)
        check("copy of f64", dtype, z.host, i, get(TN_F64, a.host, i), 0);
    run("copy", TN_F32, 1, (tn_cell[]){mini_view(b.tensor)}, 1, &z.tensor);
    array_download(&z);
    for (int64_t i = 0; i < n; i++)
        check("copy of f32", dtype, z.host, i, get(TN_F32, b.host, i), 0);
    array_free_host(&a);
    array_free_host(&b);
    array_free_host(&z);
}

static void copy_rounds_to_nearest_even(void **state) {
    for_dtypes(TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16), test_rounding);
}

/* A [3, 5, 2] view of a larger storage: permuted, stepped, shifted; and one of a single row. */
static void test_strides(tn_dtype dtype) {
    const int64_t sizes[] = {3, 5, 2}, from_strides[] = {2, 13, 6}, to_strides[] = {1, 8, 48};
    const int64_t broadcast[] = {0, 7, 0};
    const tn_dtype to = dtype == TN_F32 ? TN_I32 : TN_F32;
    const tn_dtype targets[] = {dtype, to};
    for (int k = 0; k < 4; k++) {
        const tn_dtype target = targets[k % 2];
        const int64_t *strides = k < 2 ? from_strides : broadcast;
        mini_tensor *a = mini_tensor_create(&rig, dtype, 3, sizes, strides, 4);
        mini_tensor *z = mini_tensor_create(&rig, target, 3, sizes, to_strides, 9);
        void *x = calloc(1, a->bytes), *y = calloc(1, z->bytes);
        for (uint64_t i = 0; i < a->bytes / mini_dtype_bytes(dtype); i++)
            set_random(dtype, x, (int64_t)i, 0, 100);
        memset(y, 1, z->bytes);
        void *expected = calloc(1, z->bytes);
        memcpy(expected, y, z->bytes);
        assert_ok(mini_tensor_write(&rig, a, x));
        assert_ok(mini_tensor_write(&rig, z, y));
        run("copy", dtype, 1, (tn_cell[]){mini_view(a)}, 1, &z);
        assert_ok(mini_tensor_read(&rig, z, y));
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < 5; j++)
                for (int64_t l = 0; l < 2; l++) {
                    number v = get(dtype, x, 4 + i * strides[0] + j * strides[1] + l * strides[2]);
                    if (is_float(dtype))
                        v.i = (int64_t)v.f;
                    else
                        v.f = (double)v.i;
                    set(target, expected,
                        9 + i * to_strides[0] + j * to_strides[1] + l * to_strides[2], v);
                }
        assert_memory_equal(y, expected, z->bytes); /* the gaps as well: they are untouched */
        free(x);
        free(y);
        free(expected);
    }
}

static void copy_takes_any_strides(void **state) {
    for_dtypes(TN_DTYPES_ALL, test_strides);
}

/* ---- reductions ---- */

static const struct {
    int32_t rank;
    int64_t sizes[5];
    uint32_t n_dims;
    int64_t dims[5];
} reductions[] = {
    {1, {1000}, 1, {0}},
    {2, {7, 300}, 1, {1}},
    {2, {300, 7}, 1, {0}},
    {3, {4, 5, 6}, 1, {1}},
    {3, {4, 5, 6}, 2, {0, 2}},
    {4, {3, 1, 4, 5}, 2, {1, 2}},
    {5, {2, 3, 4, 5, 6}, 3, {0, 2, 4}},
    {2, {3, 4}, 2, {0, 1}},
    {3, {1, 1, 1}, 1, {1}},
};

/* Index of element `i` of a tensor of `sizes` in one where the dimensions of `dims` have size 1. */
static int64_t reduced_index(int32_t rank, const int64_t *sizes, uint32_t n_dims,
                             const int64_t *dims, int64_t i) {
    int64_t index = 0, stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        bool reduced = false;
        for (uint32_t k = 0; k < n_dims; k++)
            reduced |= dims[k] == d;
        if (!reduced) {
            index += i % sizes[d] * stride;
            stride *= sizes[d];
        }
        i /= sizes[d];
    }
    return index;
}

static const char *reduction;

static void test_reduction(tn_dtype dtype) {
    const bool sum = strcmp(reduction, "sum") == 0;
    for (size_t c = 0; c < sizeof reductions / sizeof reductions[0]; c++) {
        int64_t out_sizes[5];
        memcpy(out_sizes, reductions[c].sizes, sizeof out_sizes);
        for (uint32_t k = 0; k < reductions[c].n_dims; k++)
            out_sizes[reductions[c].dims[k]] = 1;
        array a = array_random(dtype, reductions[c].rank, reductions[c].sizes,
                               is_float(dtype) ? 0 : -1e5, is_float(dtype) ? 1 : 1e5);
        if (!sum && is_float(dtype)) {
            set(dtype, a.host, a.numel / 2, (number){.f = NAN});
            array_upload(&a);
        }
        array z = array_create(dtype, reductions[c].rank, out_sizes);
        number *expected = calloc((size_t)z.numel, sizeof *expected);
        bool *begun = calloc((size_t)z.numel, sizeof *begun);
        for (int64_t i = 0; i < a.numel; i++) {
            const int64_t at = reduced_index(reductions[c].rank, reductions[c].sizes,
                                             reductions[c].n_dims, reductions[c].dims, i);
            const number x = get(dtype, a.host, i), e = expected[at];
            expected[at] = !begun[at] ? x
                           : sum ? (number){e.f + x.f, (int64_t)((uint64_t)e.i + (uint64_t)x.i)}
                                 : maximum(e, x);
            begun[at] = true;
        }
        const tn_cell args[] = {mini_view(a.tensor),
                                mini_ints(reductions[c].dims, reductions[c].n_dims)};
        run(reduction, dtype, 2, args, 1, &z.tensor);
        array_download(&z);
        for (int64_t i = 0; i < z.numel; i++)
            check(reduction, dtype, z.host, i, expected[i], dtype == TN_F64 ? 100 : 1);
        free(expected);
        free(begun);
        array_free_host(&a);
        array_free_host(&z);
    }
}

static void sums_agree_with_the_reference(void **state) {
    reduction = "sum";
    for_dtypes(TN_DTYPES_NUMBER, test_reduction);
}

static void maxima_agree_with_the_reference(void **state) {
    reduction = "amax";
    for_dtypes(TN_DTYPES_ALL, test_reduction);
}

static void a_long_f64_sum_stays_accurate(void **state) {
    const int64_t n = 1 << 20, zero = 0, one = 1;
    array a = array_create(TN_F64, 1, &n), z = array_create(TN_F64, 1, &one);
    long double expected = 0;
    for (int64_t i = 0; i < n; i++) {
        ((double *)a.host)[i] = 0.1;
        expected += 0.1;
    }
    array_upload(&a);
    run("sum", TN_F64, 2, (tn_cell[]){mini_view(a.tensor), mini_ints(&zero, 1)}, 1, &z.tensor);
    array_download(&z);
    assert_true(fabs(*(double *)z.host / (double)expected - 1) < 1e-13);
    array_free_host(&a);
    array_free_host(&z);
}

/* ---- along one dimension ---- */

static const struct {
    int32_t rank;
    int64_t sizes[3];
    int64_t dim;
} lines[] = {
    {1, {257}, 0},      {2, {5, 33}, 1},   {2, {33, 5}, 0},
    {3, {3, 17, 4}, 1}, {3, {1, 1, 1}, 2}, {0, {0}, 0},
};

enum { N_LINES = sizeof lines / sizeof lines[0] };

/* Of lines[c]: how long a line is, and how far apart its elements are. */
static void line_shape(int c, int64_t *out_n, int64_t *out_inner) {
    *out_n = lines[c].rank ? lines[c].sizes[lines[c].dim] : 1;
    *out_inner = 1;
    for (int64_t d = lines[c].dim + 1; d < lines[c].rank; d++)
        *out_inner *= lines[c].sizes[d];
}

static void test_cumsum(tn_dtype dtype) {
    for (int c = 0; c < N_LINES; c++) {
        int64_t n, inner;
        line_shape(c, &n, &inner);
        array a = array_random(dtype, lines[c].rank, lines[c].sizes, is_float(dtype) ? 0 : -1e5,
                               is_float(dtype) ? 1 : 1e5);
        array z = array_create(dtype, lines[c].rank, lines[c].sizes);
        run("cumsum", dtype, 2, (tn_cell[]){mini_view(a.tensor), mini_i64(lines[c].dim)}, 1,
            &z.tensor);
        array_download(&z);
        for (int64_t i = 0; i < a.numel; i++) {
            number sum = {0};
            for (int64_t k = i; k >= i - i / inner % n * inner; k -= inner) {
                sum.f += get(dtype, a.host, k).f;
                sum.i = (int64_t)((uint64_t)sum.i + (uint64_t)get(dtype, a.host, k).i);
            }
            check("cumsum", dtype, z.host, i, sum, dtype == TN_F64 ? 300 : 1);
        }
        array_free_host(&a);
        array_free_host(&z);
    }
}

static void running_sums_agree_with_the_reference(void **state) {
    for_dtypes(TN_DTYPES_NUMBER, test_cumsum);
}

/* -1, 0, 1: a before, like, after b; NaN is the largest. */
static int order(number a, number b) {
    if (isnan(a.f) || isnan(b.f))
        return (isnan(a.f) != 0) - (isnan(b.f) != 0);
    if (a.f != b.f)
        return a.f < b.f ? -1 : 1;
    return (a.i > b.i) - (a.i < b.i);
}

static void test_sort(tn_dtype dtype) {
    for (int c = 0; c < 2 * N_LINES; c++) {
        const bool descending = c % 2;
        int64_t n, inner;
        line_shape(c / 2, &n, &inner);
        /* Few different values, so that stability shows. */
        array a = array_random(dtype, lines[c / 2].rank, lines[c / 2].sizes, -10, 10);
        for (int64_t i = 0; is_float(dtype) && i < a.numel; i++) {
            number x = get(dtype, a.host, i);
            x.f = i % 11 == 7 ? NAN : floor(x.f);
            set(dtype, a.host, i, x);
        }
        array_upload(&a);
        array z = array_create(dtype, lines[c / 2].rank, lines[c / 2].sizes);
        array from = array_create(TN_I64, lines[c / 2].rank, lines[c / 2].sizes);
        const tn_cell args[] = {mini_view(a.tensor), mini_i64(lines[c / 2].dim),
                                mini_bool(descending)};
        run("sort", dtype, 3, args, 2, (mini_tensor *[]){z.tensor, from.tensor});
        array_download(&z);
        array_download(&from);
        for (int64_t i = 0; i < a.numel; i++) {
            const int64_t start = i - i / inner % n * inner, at = get(TN_I64, from.host, i).i;
            assert_true(at >= 0 && at < n);
            const number value = get(dtype, z.host, i);
            check("sort", dtype, z.host, i, get(dtype, a.host, start + at * inner), 0);
            if (i == start)
                continue;
            /* In order, and equal ones in the order they came: so all sources are distinct. */
            const int before = order(get(dtype, z.host, i - inner), value);
            assert_true(before == 0 ? get(TN_I64, from.host, i - inner).i < at
                                    : (before < 0) == !descending);
        }
        array_free_host(&a);
        array_free_host(&z);
        array_free_host(&from);
    }
}

static void sorting_is_stable_with_nan_largest(void **state) {
    for_dtypes(TN_DTYPES_ALL, test_sort);
}

/* ---- indexing ---- */

static const struct {
    int32_t rank;
    int64_t self[3], index[3], src[3];
    int64_t dim;
} indexings[] = {
    {1, {9}, {30}, {30}, 0},
    {2, {6, 5}, {11, 5}, {11, 6}, 0},
    {2, {6, 5}, {4, 9}, {4, 9}, 1},
    {3, {4, 6, 5}, {3, 8, 2}, {4, 9, 3}, 1},
    {3, {4, 3, 5}, {4, 3, 7}, {4, 3, 7}, 2},
    {0, {0}, {0}, {0}, 0},
};

enum { N_INDEXINGS = sizeof indexings / sizeof indexings[0] };

/* Where element `i` of a tensor of `sizes` lies in one of `in`, moved to `at` along dim unless
 * dim is -1. */
static int64_t position(int32_t rank, const int64_t *sizes, const int64_t *in, int64_t dim,
                        int64_t at, int64_t i) {
    int64_t result = 0, stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        result += (d == dim ? at : i % sizes[d]) * stride;
        stride *= in[d];
        i /= sizes[d];
    }
    return result;
}

static void test_indexing(tn_dtype dtype) {
    for (int c = 0; c < N_INDEXINGS; c++) {
        const int32_t rank = indexings[c].rank;
        const int64_t *sizes = indexings[c].index, dim = indexings[c].dim;
        const int64_t n = rank ? indexings[c].self[dim] : 1;
        array self = array_random(dtype, rank, indexings[c].self, 0, 1);
        array index = array_random(TN_I64, rank, sizes, 0, (double)(n - 1));
        array src = array_random(dtype, rank, indexings[c].src, 0, is_float(dtype) ? 1 : 100);
        array gathered = array_create(dtype, rank, sizes);
        array sum = array_create(dtype, rank, indexings[c].self);

        const tn_cell gather[] = {mini_view(self.tensor), mini_i64(dim), mini_view(index.tensor)};
        run("gather", dtype, 3, gather, 1, &gathered.tensor);
        array_download(&gathered);
        for (int64_t i = 0; i < index.numel; i++)
            check(
                "gather", dtype, gathered.host, i,
                get(dtype, self.host,
                    position(rank, sizes, indexings[c].self, dim, get(TN_I64, index.host, i).i, i)),
                0);

        const tn_cell scatter[] = {mini_view(self.tensor), mini_i64(dim), mini_view(index.tensor),
                                   mini_view(src.tensor)};
        run("scatter_add", dtype, 4, scatter, 1, &sum.tensor);
        array_download(&sum);
        number *expected = calloc((size_t)self.numel, sizeof *expected);
        for (int64_t i = 0; i < self.numel; i++)
            expected[i] = get(dtype, self.host, i);
        for (int64_t i = 0; i < index.numel; i++) {
            const number x =
                get(dtype, src.host, position(rank, sizes, indexings[c].src, -1, 0, i));
            number *to = &expected[position(rank, sizes, indexings[c].self, dim,
                                            get(TN_I64, index.host, i).i, i)];
            to->f += x.f;
            to->i = (int64_t)((uint64_t)to->i + (uint64_t)x.i);
        }
        for (int64_t i = 0; i < self.numel; i++)
            check("scatter_add", dtype, sum.host, i, expected[i], 8);
        free(expected);
        array_free_host(&self);
        array_free_host(&index);
        array_free_host(&src);
        array_free_host(&gathered);
        array_free_host(&sum);
    }
}

static void gather_and_scatter_add_agree_with_the_reference(void **state) {
    for_dtypes(TN_DTYPES_ALL, test_indexing);
}

static void scatter_add_with_a_bad_index_writes_nothing(void **state) {
    const int64_t n = 4;
    array self = array_random(TN_F32, 1, &n, 0, 1), src = array_random(TN_F32, 1, &n, 0, 1);
    array index = array_of(TN_I64, 4, (double[]){0, 1, 2, 4});
    array out = array_of(TN_F32, 4, (double[]){7, 7, 7, 7});
    const tn_cell args[] = {mini_view(self.tensor), mini_i64(0), mini_view(index.tensor),
                            mini_view(src.tensor)};
    const tn_kernel *kernel = mini_find(&rig, "scatter_add", TN_F32, TN_DTYPE_NONE);
    assert_status(mini_run(&rig, kernel, 4, args, 1, &out.tensor), TN_INDEX_OUT_OF_RANGE);
    assert_message("scatter_add: index 4");
    array_download(&out);
    for (int i = 0; i < 4; i++)
        assert_true(get(TN_F32, out.host, i).f == 7);
    array_free_host(&self);
    array_free_host(&src);
    array_free_host(&index);
    array_free_host(&out);
}

/* ---- bmm ---- */

static void test_bmm(tn_dtype dtype) {
    static const int64_t shapes[][4] = {/* B, M, K, N */
                                        {1, 1, 1, 1},    {2, 3, 5, 4},    {1, 70, 300, 19},
                                        {3, 64, 256, 8}, {1, 65, 257, 9}, {2, 1, 600, 1}};
    for (size_t c = 0; c < sizeof shapes / sizeof shapes[0]; c++) {
        const int64_t batch = shapes[c][0], m = shapes[c][1], depth = shapes[c][2],
                      n = shapes[c][3];
        array a =
            array_random(dtype, 3, (int64_t[]){batch, m, depth}, 0, is_float(dtype) ? 1 : 1e9);
        array b =
            array_random(dtype, 3, (int64_t[]){batch, depth, n}, 0, is_float(dtype) ? 1 : 1e9);
        array z = array_create(dtype, 3, (int64_t[]){batch, m, n});
        run("bmm", dtype, 2, (tn_cell[]){mini_view(a.tensor), mini_view(b.tensor)}, 1, &z.tensor);
        array_download(&z);
        for (int64_t i = 0; i < z.numel; i++) {
            number sum = {0};
            for (int64_t k = 0; k < depth; k++) {
                const number x = get(dtype, a.host, i / n * depth + k);
                const number y = get(dtype, b.host, (i / (m * n) * depth + k) * n + i % n);
                sum.f += x.f * y.f;
                sum.i = (int64_t)((uint64_t)sum.i + (uint64_t)x.i * (uint64_t)y.i);
            }
            check("bmm", dtype, z.host, i, sum, dtype == TN_F32 || dtype == TN_F64 ? 40 : 1);
        }
        array_free_host(&a);
        array_free_host(&b);
        array_free_host(&z);
    }
}

static void products_agree_with_the_reference(void **state) {
    for_dtypes(TN_DTYPES_NUMBER, test_bmm);
}

/* ---- what a host must not do ---- */

static void broken_promises_are_refused(void **state) {
    const int64_t four[] = {4}, two_two[] = {2, 2}, transposed[] = {1, 2}, zero[] = {0, 1};
    mini_tensor *a = mini_tensor_create(&rig, TN_F32, 1, four, NULL, 0);
    mini_tensor *b = mini_tensor_create(&rig, TN_F32, 1, (int64_t[]){3}, NULL, 0);
    mini_tensor *i = mini_tensor_create(&rig, TN_I32, 1, four, NULL, 0);
    mini_tensor *t = mini_tensor_create(&rig, TN_F32, 2, two_two, transposed, 0);
    mini_tensor *r = mini_tensor_create(&rig, TN_F32, 2, two_two, zero, 0);
    mini_tensor *z = mini_tensor_create(&rig, TN_F32, 2, two_two, NULL, 0);
    mini_tensor *q = mini_tensor_create(&rig, TN_F32, 1, four, NULL, 0);
    const struct {
        const char *op;
        mini_tensor *x, *y, *out;
        const char *message;
        tn_status status;
    } calls[] = {
        {"mul", t, z, z, "not contiguous", TN_INVALID_ARGUMENT},
        {"mul", z, r, z, "stride of zero", TN_INVALID_ARGUMENT},
        {"mul", a, a, a, "shares memory", TN_INVALID_ARGUMENT},
        {"mul", a, b, q, "argument 1 has 3 elements", TN_SHAPE},
        {"mul", a, i, q, "argument 1 is i32 and should be f32", TN_DTYPE},
        {"mul", a, a, i, "output 0 is i32", TN_DTYPE},
        {"eq", a, a, q, "should be bool", TN_DTYPE},
        {"div", i, i, i, "no kernel for i32", TN_DTYPE},
        {"mul", a, NULL, q, "argument 1 is no tensor", TN_INVALID_ARGUMENT},
    };
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        const tn_cell args[] = {mini_view(calls[c].x), mini_view(calls[c].y)};
        const tn_status status =
            rig_launch(calls[c].op, rig.device, rig.stream, 2, args, &calls[c].out->view);
        if (status != calls[c].status)
            fail_msg("call %zu: status %d", c, status);
        assert_message(calls[c].message);
    }
    /* A view that reaches past its allocation, and one that starts within an element. */
    tn_tensor_view view = a->view;
    const tn_cell args[] = {mini_f64(0)};
    view.offset = 4;
    assert_status(rig_launch("fill", rig.device, rig.stream, 1, args, &view), TN_INVALID_ARGUMENT);
    assert_message("[4, 20)");
    view.offset = 2;
    assert_status(rig_launch("fill", rig.device, rig.stream, 1, args, &view), TN_INVALID_ARGUMENT);
    assert_message("within a f32");
    /* Values of the wrong kind, and the wrong number of them. */
    assert_status(rig_launch("fill", rig.device, rig.stream, 1, (tn_cell[]){mini_none()}, &a->view),
                  TN_INVALID_ARGUMENT);
    assert_status(rig_launch("fill", rig.device, rig.stream, 0, NULL, &a->view),
                  TN_INVALID_ARGUMENT);
    /* sort without its workspace */
    array s = array_create(TN_F32, 1, four), from = array_create(TN_I64, 1, four);
    const tn_tensor_view *outs[] = {&s.tensor->view, &from.tensor->view};
    const tn_cell sort[] = {mini_view(a), mini_i64(0), mini_bool(false)};
    const tn_kernel *kernel = mini_find(&rig, "sort", TN_F32, TN_DTYPE_NONE);
    const tn_call call = {.struct_size = sizeof call,
                          .device = rig.device,
                          .stream = rig.stream,
                          .user = kernel->user,
                          .args = sort,
                          .outs = outs,
                          .n_args = 3,
                          .n_outs = 2};
    assert_status(kernel->run(&call), TN_INVALID_ARGUMENT);
    assert_message("workspace");
    assert_ok(mini_synchronize(&rig));
    array_free_host(&s);
    array_free_host(&from);
}

int all_tests(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(binary_operators_agree_with_the_reference),
        TEST(nan_and_infinity_behave),
        TEST(integer_division_never_traps),
        TEST(floor_division_is_python_s),
        TEST(functions_agree_with_the_reference),
        TEST(where_selects),
        TEST(fill_writes_one_value),
        TEST(arange_is_rounded_once),
        TEST(random_bits_are_philox),
        TEST(copy_converts_every_pair),
        TEST(copy_of_what_does_not_fit_is_no_trap),
        TEST(copy_rounds_to_nearest_even),
        TEST(copy_takes_any_strides),
        TEST(sums_agree_with_the_reference),
        TEST(maxima_agree_with_the_reference),
        TEST(a_long_f64_sum_stays_accurate),
        TEST(running_sums_agree_with_the_reference),
        TEST(sorting_is_stable_with_nan_largest),
        TEST(gather_and_scatter_add_agree_with_the_reference),
        TEST(scatter_add_with_a_bad_index_writes_nothing),
        TEST(products_agree_with_the_reference),
        TEST(broken_promises_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
