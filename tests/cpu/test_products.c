/* What addmm makes of NaN and infinity must not depend on the kernels that OpenBLAS chooses for the
 * processor (OPENBLAS_CORETYPE): beta * self + alpha * (mat1 @ mat2) in full, as the processor
 * computes each part. The other numbers are small integers, with which every order of the sum is
 * exact. */
#include "tests/cpu/cpu_test.h"

#include <math.h>

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

static void store(const operand *x, tn_dtype dtype) {
    const mini_tensor *t = x->tensor;
    for (int64_t i = 0; i < t->sizes[0]; i++)
        for (int64_t j = 0; j < t->sizes[1]; j++) {
            int64_t at = i * t->strides[0] + j * t->strides[1];
            if (dtype == TN_F32)
                ((float *)t->host)[at] = (float)x->values[i * t->sizes[1] + j];
            else
                ((double *)t->host)[at] = x->values[i * t->sizes[1] + j];
        }
}

static double result(const mini_tensor *t, tn_dtype dtype, int64_t at) {
    return dtype == TN_F32 ? (double)((float *)t->host)[at] : ((double *)t->host)[at];
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
        if (isnan(want) ? !isnan(got) : got != want)
            fail_msg("%s [%d, %d] x [%d, %d], strides (%d, %d) and (%d, %d), beta %g, alpha %g: "
                     "element %d is %g and should be %g",
                     dtype == TN_F32 ? "f32" : "f64", (int)m, (int)k, (int)k, (int)n,
                     (int)a->tensor->strides[0], (int)a->tensor->strides[1],
                     (int)b->tensor->strides[0], (int)b->tensor->strides[1], beta, alpha, (int)at,
                     got, want);
    }
}

/* Too small for BLAS, a matrix, several tiles, a row, a column, and several panels of a sum. */
static const int64_t shapes[][3] = {{5, 6, 7},    {21, 34, 45}, {3, 300, 20},
                                    {1, 90, 100}, {90, 1, 100}, {3, 4, 2100}};

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
        }
}

int test_products(void) {
    const struct CMUnitTest tests[] = {TEST(products_keep_nan_and_infinity)};
    return cmocka_run_group_tests_name("products", tests, NULL, NULL);
}
