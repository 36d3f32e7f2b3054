/* What addmm makes of NaN and infinity must not depend on the kernels that OpenBLAS chooses for the
 * processor (OPENBLAS_CORETYPE): beta * self + alpha * (mat1 @ mat2) in full, as the processor
 * computes each part. The other numbers are small integers, with which every order of the sum is
 * exact. */
#include "tests/cpu/cpu_test.h"

#include <math.h>
#include <string.h>

enum { DENSE, TRANSPOSED, STEPS, N_WAYS };

typedef struct operand {
    mini_tensor *tensor;
    const double *values; /* [rows, columns] */
} operand;

static double next_number(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 24) / 64 - 2;
}

static operand matrix(tn_dtype dtype, int64_t rows, int64_t columns, int way) {
    const int64_t strides[N_WAYS][2] = {{columns, 1}, {1, rows}, {4 * columns, 2}};
    double *values = scratch(sizeof *values * (size_t)(rows * columns));
    mini_tensor *t =
        mini_tensor_create(&cpu, dtype, 2, (int64_t[]){rows, columns}, strides[way], 0);
    assert_non_null(t);
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = trunc(next_number());
    return (operand){t, values};
}

/* Places that lie in different rows, columns and blocks of a sum. */
static void spoil(operand *x, int64_t at, double value) {
    ((double *)(uintptr_t)x->values)[at % (x->tensor->sizes[0] * x->tensor->sizes[1])] = value;
}

/* Of a number that f32 has. */
static uint16_t to_bf16(double value) {
    float f = (float)value;
    uint32_t u;
    memcpy(&u, &f, 4);
    return isnan(f) ? 0x7fc0 : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static double from_bf16(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static void store(const operand *x, tn_dtype dtype) {
    const mini_tensor *t = x->tensor;
    for (int64_t i = 0; i < t->sizes[0]; i++)
        for (int64_t j = 0; j < t->sizes[1]; j++) {
            int64_t at = i * t->strides[0] + j * t->strides[1];
            double value = x->values[i * t->sizes[1] + j];
            if (dtype == TN_F32)
                ((float *)t->host)[at] = (float)value;
            else if (dtype == TN_BF16)
                ((uint16_t *)t->host)[at] = to_bf16(value);
            else
                ((double *)t->host)[at] = value;
        }
}

static double result(const mini_tensor *t, tn_dtype dtype, int64_t at) {
    return dtype == TN_F32    ? (double)((float *)t->host)[at]
           : dtype == TN_BF16 ? from_bf16(((uint16_t *)t->host)[at])
                              : ((double *)t->host)[at];
}

static void check(tn_dtype dtype, const int64_t *mnk, const operand *s, const operand *a,
                  const operand *b, double beta, double alpha) {
    int64_t m = mnk[0], n = mnk[1], k = mnk[2];
    mini_tensor *out = tensor_create(dtype, 2, (int64_t[]){m, n});
    assert_ok(mini_run(&cpu, mini_find(&cpu, "addmm", dtype, TN_DTYPE_NONE), 5,
                       (tn_cell[]){mini_view(s->tensor), mini_view(a->tensor), mini_view(b->tensor),
                                   mini_f64(beta), mini_f64(alpha)},
                       1, (mini_tensor *[]){out}));
    for (int64_t at = 0; at < m * n; at++) {
        double sum = 0, base = beta == 0 ? 0 : beta * s->values[at];
        for (int64_t p = 0; p < k; p++)
            sum += a->values[at / n * k + p] * b->values[p * n + at % n];
        double want = base + alpha * sum, got = result(out, dtype, at);
        if (dtype == TN_BF16)
            want = from_bf16(to_bf16(want));
        if (isnan(want) ? !isnan(got) : got != want)
            fail_msg("%s [%d, %d] x [%d, %d], strides (%d, %d) and (%d, %d), beta %g, alpha %g: "
                     "element %d is %g and should be %g",
                     dtype == TN_F32   ? "f32"
                     : dtype == TN_F64 ? "f64"
                                       : "bf16",
                     (int)m, (int)k, (int)k, (int)n, (int)a->tensor->strides[0],
                     (int)a->tensor->strides[1], (int)b->tensor->strides[0],
                     (int)b->tensor->strides[1], beta, alpha, (int)at, got, want);
    }
}

/* Too small for BLAS, a matrix, several tiles, a row, a column, and several panels of a sum. */
static const int64_t shapes[][3] = {{5, 6, 7},    {21, 34, 45}, {3, 300, 20}, {1, 90, 100},
                                    {90, 1, 100}, {3, 4, 2100}, {8, 70, 1101}};

static void products(tn_dtype dtype, const int64_t *mnk, int way_a, int way_b) {
    const double betas[] = {0, -0.0, 1, -1.5}, alphas[] = {1, -1.5, 0.25}; /* never 0 */
    operand s = matrix(dtype, mnk[0], mnk[1], DENSE);
    operand a = matrix(dtype, mnk[0], mnk[2], way_a), b = matrix(dtype, mnk[2], mnk[1], way_b);
    spoil(&s, 2, NAN);
    spoil(&s, 0, -INFINITY);
    spoil(&a, 1, INFINITY);
    spoil(&b, mnk[2] * mnk[1] - 1, NAN);
    spoil(&b, mnk[2] * mnk[1] / 2 + 1, -INFINITY);
    store(&s, dtype);
    store(&a, dtype);
    store(&b, dtype);
    for (int i = 0; i < LENGTH(betas); i++)
        for (int j = 0; j < LENGTH(alphas); j++)
            check(dtype, mnk, &s, &a, &b, betas[i], alphas[j]);
    test_end(NULL);
}

static void products_keep_nan_and_infinity(void **state) {
    for (int shape = 0; shape < LENGTH(shapes); shape++)
        for (int way = 0; way < N_WAYS * N_WAYS; way++) {
            products(TN_F32, shapes[shape], way % N_WAYS, way / N_WAYS);
            products(TN_F64, shapes[shape], way % N_WAYS, way / N_WAYS);
            products(TN_BF16, shapes[shape], way % N_WAYS, way / N_WAYS);
        }
}

/* One element is x * y + z * w, or a share of self; all others are 0. */
typedef struct faint {
    double x, y, z, w, self, alpha;
} faint;

/* Instructions for bf16 take subnormal numbers for 0: factors, products, sums, and what is left of a
 * sum of products that are not. */
static const faint faints[] = {
    {.x = 0x1p-133, .y = 0x1p100, .alpha = 1},
    {.x = 0x1p100, .y = -0x1p-130, .alpha = 1},
    {.x = 0x1p-70, .y = 0x1p-63, .alpha = 1},
    {.x = 0x1p-60, .y = 0x1p-60, .z = 0x1p-64, .w = 0x1p-64, .alpha = 1},
    {.x = 0x1.8p-60, .y = 0x1p-66, .z = -0x1.4p-60, .w = 0x1p-66, .alpha = 1},
    {.x = 0x1p-60, .y = 0x1.04p-53, .z = -0x1.02p-60, .w = 0x1.02p-53, .alpha = 1},
    {.x = 0x1p-60, .y = 0x1p-50, .alpha = 0x1p-20},
    {.x = 0, .y = 1, .self = 0x1p-133, .alpha = 1},
};

static void put(const operand *x, int64_t i, int64_t j, double value) {
    ((double *)(uintptr_t)x->values)[i * x->tensor->sizes[1] + j] = value;
}

static operand zeros(int64_t rows, int64_t columns, int way) {
    operand x = matrix(TN_BF16, rows, columns, way);
    memset((void *)(uintptr_t)x.values, 0, sizeof *x.values * (size_t)(rows * columns));
    return x;
}

static void keeps_faint(const faint *f, int way_a, int way_b, int64_t first, int64_t second,
                        bool is_last) {
    const int64_t mnk[] = {8, 21, 1101};
    operand s = zeros(mnk[0], mnk[1], DENSE), a = zeros(mnk[0], mnk[2], way_a),
            b = zeros(mnk[2], mnk[1], way_b);
    int64_t i = is_last ? mnk[0] - 1 : 0, j = is_last ? mnk[1] - 1 : 0;
    put(&s, i, j, f->self);
    put(&a, i, first, f->x);
    put(&b, first, j, f->y);
    put(&a, i, second, f->z);
    put(&b, second, j, f->w);
    store(&s, TN_BF16);
    store(&a, TN_BF16);
    store(&b, TN_BF16);
    check(TN_BF16, mnk, &s, &a, &b, 1, f->alpha);
    test_end(NULL);
}

static void products_of_bf16_keep_subnormal_numbers(void **state) {
    static const int64_t places[][2] = {{0, 1}, {2, 9}, {1100, 1099}, {700, 10}, {511, 512}};
    for (int n = 0; n < LENGTH(faints); n++)
        for (int place = 0; place < LENGTH(places); place++)
            for (int way = 0; way < N_WAYS * N_WAYS; way++)
                for (int last = 0; last < 2; last++)
                    keeps_faint(&faints[n], way % N_WAYS, way / N_WAYS, places[place][0],
                                places[place][1], last);
}

int test_products(void) {
    const struct CMUnitTest tests[] = {TEST(products_keep_nan_and_infinity),
                                       TEST(products_of_bf16_keep_subnormal_numbers)};
    return cmocka_run_group_tests_name("products", tests, NULL, NULL);
}
