/* Matrix products against three nested loops: every layout, rank and dtype. */
#include "tests/core/ops_test.h"

/* out[m][n] = sum over k of x[m][k] * y[k][n] */
static double *product(const double *x, const double *y, int m, int k, int n) {
    double *out = calloc((size_t)(m * n), sizeof *out);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int l = 0; l < k; l++)
                out[i * n + j] += x[i * k + l] * y[l * n + j];
    return out;
}

/* Checks t [m, n] against x [m, k] times y [k, n]. */
static void assert_product(tn_tensor *t, tn_tensor *x, tn_tensor *y, double tolerance) {
    int m = (int)tn_size(x, 0), k = (int)tn_size(x, 1), n = (int)tn_size(y, 1);
    double *a = values_of(x), *b = values_of(y), *want = product(a, b, m, k, n);
    check_tensor(t, tn_dtype_of(x), TN_SHAPE(m, n), tolerance, want, (uint64_t)(m * n), __FILE__,
                 __LINE__);
    free(a);
    free(b);
    free(want);
}

static void products_of_any_layout(void **state) {
    TN_SCOPE;
    for (int i = 0; i < 4; i++) {
        tn_tensor *x = noise(TN_F64, TN_SHAPE(5, 7), 1), *y = noise(TN_F64, TN_SHAPE(7, 3), 2);
        x = i & 1 ? restrided(x) : x;
        y = i & 2 ? restrided(y) : y;
        assert_product(tn_mm(x, y), x, y, 1e-13);
    }
    tn_tensor *wide = noise(TN_F32, TN_SHAPE(4, 9), 3);
    tn_tensor *x = tn_slice(wide, 1, 0, 9, 2), *y = noise(TN_F32, TN_SHAPE(5, 2), 4);
    assert_product(tn_mm(x, y), x, y, 1e-5);
    tn_tensor *row = tn_expand(noise(TN_F32, TN_SHAPE(1, 5), 5), TN_SHAPE(3, 5));
    assert_product(tn_mm(row, y), row, y, 1e-5);
}

static void products_of_every_number_type(void **state) {
    static const tn_dtype dtypes[] = {TN_F16, TN_BF16, TN_I8, TN_U8, TN_I16, TN_I32, TN_I64};
    for (unsigned i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        TN_SCOPE;
        tn_tensor *x = of(dtypes[i], TN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
        tn_tensor *y = of(dtypes[i], TN_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
        assert_tensor(tn_mm(x, y), dtypes[i], TN_SHAPE(2, 2), 0, 22, 28, 49, 64);
    }
    TN_SCOPE;
    assert_tensor(tn_mm(of(TN_U8, TN_SHAPE(1, 2), 100, 100), of(TN_U8, TN_SHAPE(2, 1), 2, 1)),
                  TN_U8, TN_SHAPE(1, 1), 0, 300 % 256);
}

static void batches_are_multiplied_one_by_one(void **state) {
    TN_SCOPE;
    tn_tensor *x = noise(TN_F64, TN_SHAPE(3, 2, 4), 1), *y = noise(TN_F64, TN_SHAPE(3, 4, 5), 2);
    tn_tensor *whole = tn_bmm(x, tn_transpose(tn_contiguous(tn_transpose(y, 1, 2)), 1, 2));
    for (int i = 0; i < 3; i++)
        assert_product(tn_select(whole, 0, i), tn_select(x, 0, i), tn_select(y, 0, i), 1e-13);
    tn_tensor *same = tn_expand(tn_narrow(x, 0, 0, 1), TN_SHAPE(3, 2, 4));
    assert_product(tn_select(tn_bmm(same, y), 0, 2), tn_select(x, 0, 0), tn_select(y, 0, 2), 1e-13);
}

static void a_product_over_nothing_is_zero(void **state) {
    TN_SCOPE;
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 0), TN_F32, dev),
              *y = tn_zeros(TN_SHAPE(0, 2), TN_F32, dev);
    assert_tensor(tn_mm(x, y), TN_F32, TN_SHAPE(2, 2), 0, 0, 0, 0, 0);
    assert_int_equal(tn_numel(tn_mm(y, x)), 0);
    tn_tensor *bias = of(TN_F32, TN_SHAPE(2), 3, NAN);
    assert_tensor(tn_addmm(bias, x, y, tn_int(2)), TN_F32, TN_SHAPE(2, 2), 0, 6, NAN, 6, NAN);
    assert_tensor(tn_addmm(bias, x, y, tn_int(0)), TN_F32, TN_SHAPE(2, 2), 0, 0, 0, 0, 0);
}

static void addmm_broadcasts_and_scales(void **state) {
    TN_SCOPE;
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 2), 1, 2, 3, 4),
              *one = of(TN_F32, TN_SHAPE(2, 2), 1, 0, 0, 1);
    tn_tensor *row = of(TN_F32, TN_SHAPE(2), 10, 20), *column = of(TN_F32, TN_SHAPE(2, 1), 10, 20);
    assert_tensor(tn_addmm(row, x, one), TN_F32, TN_SHAPE(2, 2), 0, 11, 22, 13, 24);
    assert_tensor(tn_addmm(column, x, one), TN_F32, TN_SHAPE(2, 2), 0, 11, 12, 23, 24);
    assert_tensor(tn_addmm(of(TN_F32, TN_SCALAR_SHAPE, 5), x, one, tn_float(0.5), tn_float(2)),
                  TN_F32, TN_SHAPE(2, 2), 0, 4.5, 6.5, 8.5, 10.5);
    tn_tensor *nan = of(TN_F32, TN_SHAPE(2), NAN, NAN);
    assert_tensor(tn_addmm(nan, x, one, tn_int(0)), TN_F32, TN_SHAPE(2, 2), 0, 1, 2, 3, 4);
    /* what f32 rounds to 0 is one */
    assert_tensor(tn_addmm(nan, x, one, tn_float(1e-60)), TN_F32, TN_SHAPE(2, 2), 0, 1, 2, 3, 4);
    tn_tensor *out = tn_zeros(TN_SHAPE(2, 2), TN_F32, dev);
    assert_ptr_equal(tn_addmm_out(row, x, one, tn_int(1), tn_int(1), out), out);
    assert_tensor(out, TN_F32, TN_SHAPE(2, 2), 0, 11, 22, 13, 24);
    assert_ptr_equal(tn_mm_out(out, one, out), out);
    assert_tensor(out, TN_F32, TN_SHAPE(2, 2), 0, 11, 22, 13, 24);
    tn_tensor *whole = of(TN_I32, TN_SHAPE(2, 2), 1, 2, 3, 4);
    assert_fails(tn_addmm(whole, whole, whole, tn_float(0.5)), TN_ERR_DTYPE, "tn_addmm",
                 "integers");
    assert_fails(tn_addmm(of(TN_F32, TN_SHAPE(3), 1, 2, 3), x, one), TN_ERR_SHAPE, "tn_addmm",
                 "[3]", "[2, 2]");
}

/* BLAS may leave such a product out or not; here it is left out on every device. */
static void addmm_with_alpha_zero_reads_no_product(void **state) {
    TN_SCOPE;
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_BF16};
    for (int i = 0; i < 3; i++) {
        if (!tn_device_has_dtype(dev, dtypes[i]))
            continue;
        tn_tensor *x = of(dtypes[i], TN_SHAPE(2, 2), NAN, INFINITY, -INFINITY, 4),
                  *row = of(dtypes[i], TN_SHAPE(2), 10, NAN);
        assert_tensor(tn_addmm(row, x, x, tn_int(2), tn_int(0)), dtypes[i], TN_SHAPE(2, 2), 0, 20,
                      NAN, 20, NAN);
        assert_tensor(tn_addmm(row, x, x, tn_int(0), tn_int(0)), dtypes[i], TN_SHAPE(2, 2), 0, 0, 0,
                      0, 0);
        double lost = dtypes[i] == TN_F64 ? 0.0 : 1e-60; /* of which f32 makes 0 */
        assert_tensor(tn_addmm(row, x, x, tn_int(1), tn_float(lost)), dtypes[i], TN_SHAPE(2, 2), 0,
                      10, NAN, 10, NAN);
    }
}

static void matmul_takes_all_ranks(void **state) {
    TN_SCOPE;
    tn_tensor *v = of(TN_F32, TN_SHAPE(2), 1, 2), *m = of(TN_F32, TN_SHAPE(2, 2), 1, 2, 3, 4);
    assert_tensor(tn_matmul(v, v), TN_F32, TN_SCALAR_SHAPE, 0, 5);
    assert_tensor(tn_matmul(m, v), TN_F32, TN_SHAPE(2), 0, 5, 11);
    assert_tensor(tn_matmul(v, m), TN_F32, TN_SHAPE(2), 0, 7, 10);
    tn_tensor *x = noise(TN_F64, TN_SHAPE(2, 1, 3, 4), 1), *y = noise(TN_F64, TN_SHAPE(5, 4, 2), 2);
    tn_tensor *z = tn_matmul(x, y);
    assert_int_equal(tn_rank(z), 4);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 5; j++)
            assert_product(tn_select(tn_select(z, 0, i), 0, j), tn_select(tn_select(x, 0, i), 0, 0),
                           tn_select(y, 0, j), 1e-13);
    tn_tensor *flat = noise(TN_F64, TN_SHAPE(4, 6), 3);
    z = tn_matmul(restrided(x), flat);
    assert_product(tn_select(tn_select(z, 0, 1), 0, 0), tn_select(tn_select(x, 0, 1), 0, 0), flat,
                   1e-13);
    z = tn_matmul(tn_transpose(flat, 0, 1), y);
    assert_product(tn_select(z, 0, 3), tn_transpose(flat, 0, 1), tn_select(y, 0, 3), 1e-13);
    assert_int_equal(tn_rank(tn_matmul(noise(TN_F64, TN_SHAPE(4), 1), y)), 2);
    assert_int_equal(tn_size(tn_matmul(x, noise(TN_F64, TN_SHAPE(4), 1)), -1), 3);
    assert_int_equal(tn_numel(tn_matmul(tn_zeros(TN_SHAPE(0, 3, 4), TN_F64, dev), flat)), 0);
    assert_tensor(
        tn_matmul(tn_zeros(TN_SHAPE(1, 2, 0), TN_F32, dev), tn_zeros(TN_SHAPE(0, 1), TN_F32, dev)),
        TN_F32, TN_SHAPE(1, 2, 1), 0, 0, 0);
}

static void linear_adds_its_bias(void **state) {
    TN_SCOPE;
    tn_tensor *weight = of(TN_F32, TN_SHAPE(2, 3), 1, 0, 0, 0, 1, 1),
              *bias = of(TN_F32, TN_SHAPE(2), 10, 20);
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 1, 3), 1, 2, 3, 4, 5, 6);
    assert_tensor(tn_linear(x, weight, bias), TN_F32, TN_SHAPE(2, 1, 2), 0, 11, 25, 14, 31);
    assert_tensor(tn_linear(tn_squeeze(x), weight), TN_F32, TN_SHAPE(2, 2), 0, 1, 5, 4, 11);
    assert_tensor(tn_linear(tn_select(tn_squeeze(x), 0, 1), weight, bias), TN_F32, TN_SHAPE(2), 0,
                  14, 31);
    assert_fails(tn_linear(bias, weight, bias), TN_ERR_SHAPE, "tn_linear", "[2] x [2, 3]",
                 "input.size(-1) must equal weight.size(1)");
    assert_fails(tn_linear(x, x), TN_ERR_SHAPE, "tn_linear", "weight [out, in]");
}

static void a_weight_may_be_a_row(void **state) {
    TN_SCOPE;
    tn_tensor *w = requiring_grad(of(TN_F32, TN_SHAPE(3), 1, 0, 2));
    tn_tensor *b = requiring_grad(of(TN_F32, TN_SCALAR_SHAPE, 10));
    tn_tensor *x = of(TN_F32, TN_SHAPE(2, 1, 3), 1, 2, 3, 4, 5, 6);
    tn_tensor *y = tn_linear(x, w, b);
    assert_tensor(y, TN_F32, TN_SHAPE(2, 1), 0, 17, 26);
    assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
    assert_tensor(tn_grad(w), TN_F32, TN_SHAPE(3), 0, 5, 7, 9);
    assert_tensor(tn_grad(b), TN_F32, TN_SCALAR_SHAPE, 0, 2);
    assert_tensor(tn_linear(tn_detach(w), w), TN_F32, TN_SCALAR_SHAPE, 0, 5);
    assert_int_equal(tn_numel(tn_linear(tn_zeros(TN_SHAPE(0, 3), TN_F32, dev), w)), 0);
    assert_fails(tn_linear(x, w, tn_ones(TN_SHAPE(1))), TN_ERR_SHAPE, "bias must be of rank 0",
                 "[3]", "[1]");
    assert_fails(tn_linear(x, tn_ones(TN_SHAPE(2))), TN_ERR_SHAPE, "[2, 1, 3] x [2]",
                 "weight.size(0)");
}

static void sizes_that_differ_are_named(void **state) {
    TN_SCOPE;
    tn_tensor *x = noise(TN_F32, TN_SHAPE(2, 3), 1), *y = noise(TN_F32, TN_SHAPE(4, 5), 1);
    assert_fails(tn_mm(x, y), TN_ERR_SHAPE, "tn_mm", "[2, 3] x [4, 5]",
                 "self.size(-1) must equal mat2.size(-2)");
    assert_fails(tn_mm(x, noise(TN_F32, TN_SHAPE(3), 1)), TN_ERR_SHAPE, "tn_mm", "rank 2",
                 "tn_matmul");
    assert_fails(tn_bmm(noise(TN_F32, TN_SHAPE(2, 2, 3), 1), noise(TN_F32, TN_SHAPE(3, 3, 2), 1)),
                 TN_ERR_SHAPE, "tn_bmm", "batch sizes differ", "[2, 2, 3] x [3, 3, 2]");
    assert_fails(tn_matmul(x, y), TN_ERR_SHAPE, "tn_matmul", "[2, 3] x [4, 5]");
    assert_fails(tn_matmul(x, noise(TN_F32, TN_SHAPE(2), 1)), TN_ERR_SHAPE, "other.size(0)");
    assert_fails(
        tn_matmul(noise(TN_F32, TN_SHAPE(2, 1, 3), 1), noise(TN_F32, TN_SHAPE(3, 3, 1), 1)),
        TN_ERR_SHAPE, "tn_matmul", "batch dimensions");
    assert_fails(tn_matmul(x, tn_sum(x)), TN_ERR_SHAPE, "tn_matmul", "tn_mul");
    assert_fails(tn_mm(x, noise(TN_F64, TN_SHAPE(3, 1), 1)), TN_ERR_DTYPE, "tn_mm", "f32", "f64");
    assert_fails(tn_mm(of(TN_BOOL, TN_SHAPE(1, 1), 1), of(TN_BOOL, TN_SHAPE(1, 1), 1)),
                 TN_ERR_DTYPE, "tn_mm", "bool");
}

static void products_of_a_batch_are_added(void **state) {
    tn_tensor *a = counting(TN_F32, TN_SHAPE(2, 1, 2)), *b = counting(TN_F32, TN_SHAPE(2, 2, 1));
    tn_tensor *x = of(TN_F32, TN_SHAPE(1, 1), 10), *v = of(TN_F32, TN_SHAPE(2), 1, 2);
    assert_elements(tn_addbmm(x, a, b), TN_SHAPE(1, 1), 10 + 1 + 4 + 9);
    assert_elements(tn_addr(x, v, v), TN_SHAPE(2, 2), 11, 12, 12, 14);
    assert_fails(tn_addbmm(x, a, a), TN_ERR_SHAPE, "tn_addbmm", "batch2 [2, 1, 2]");
    tn_tensor *truth = of(TN_BOOL, TN_SHAPE(2), 1, 0);
    assert_elements(tn_addr(truth, truth, truth), TN_SHAPE(2, 2), 1, 0, 1, 0);
    assert_fails(tn_addr(of(TN_F32, TN_SHAPE(3), 1, 2, 3), v, v), TN_ERR_SHAPE, "tn_addr",
                 "broadcast");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(products_of_any_layout),
        OPS_TEST(products_of_every_number_type),
        OPS_TEST(batches_are_multiplied_one_by_one),
        OPS_TEST(a_product_over_nothing_is_zero),
        OPS_TEST(addmm_broadcasts_and_scales),
        OPS_TEST(addmm_with_alpha_zero_reads_no_product),
        OPS_TEST(matmul_takes_all_ranks),
        OPS_TEST(linear_adds_its_bias),
        OPS_TEST(a_weight_may_be_a_row),
        OPS_TEST(sizes_that_differ_are_named),
        OPS_TEST(products_of_a_batch_are_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
