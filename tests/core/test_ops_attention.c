/* Attention: the fused kernels and what they stand for. Expected values come from the definitions, and from
 * the composition, which a mask that needs a gradient asks for. */
#include "tests/core/ops_test.h"

#include <string.h>

/* query [2, 4, 7, 5], key [2, 2, 9, 5], value [2, 2, 9, 6], of views [batch, places, heads, features] */
typedef struct operands {
    tn_tensor *query, *key, *value;
} operands;

static tn_tensor *by_places(tn_dtype dtype, int64_t heads, int64_t places, int64_t features,
                            uint32_t seed) {
    return tn_transpose(noise(dtype, TN_SHAPE(2, places, heads, features), seed), 1, 2);
}

static operands make(tn_dtype dtype) {
    return (operands){by_places(dtype, 4, 7, 5, 1), by_places(dtype, 2, 9, 5, 2),
                      by_places(dtype, 2, 9, 6, 3)};
}

/* Scores of f64, [2, 4, 7, 9]. */
static tn_tensor *scores_of(operands x, double scale) {
    tn_tensor *key = tn_repeat_interleave_int(tn_to_dtype(x.key, TN_F64), 2, 1);
    return tn_mul_scalar(tn_matmul(tn_to_dtype(x.query, TN_F64), tn_transpose(key, -1, -2)),
                         tn_float(scale));
}

static tn_tensor *weighed(tn_tensor *scores, operands x) {
    tn_tensor *value = tn_repeat_interleave_int(tn_to_dtype(x.value, TN_F64), 2, 1);
    return tn_matmul(tn_softmax(scores, -1), value);
}

static void check_near(tn_tensor *got, tn_tensor *want, double tolerance) {
    tn_tensor *off = tn_abs(tn_sub(tn_to_dtype(got, TN_F64), tn_to_dtype(want, TN_F64)));
    double most = NAN;
    assert_int_equal(tn_item(tn_max(off), &most), TN_OK);
    assert_true(most <= tolerance);
}

static void flash_attention_is_attention_in_every_dtype(void **state) {
    TN_SCOPE;
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    static const double tolerances[] = {2e-6, 1e-13, 2e-3, 2e-2};
    for (int i = 0; i < 4; i++) {
        tn_tensor *out, *sums;
        operands x = make(dtypes[i]);
        tn_tensor *scores = scores_of(x, 0.5);
        assert_int_equal(tn_scaled_dot_product_flash_attention(x.query, x.key, x.value, TN_NONE,
                                                               false, tn_float(0.5), &out, &sums),
                         TN_OK);
        assert_int_equal(tn_dtype_of(out), dtypes[i]);
        assert_int_equal(tn_dtype_of(sums), i == 1 ? TN_F64 : TN_F32);
        check_near(out, weighed(scores, x), tolerances[i]);
        check_near(sums, tn_logsumexp(scores, TN_SHAPE(-1)), i == 1 ? 1e-13 : 4e-6);
    }
}

static void masks_and_causality_add_up(void **state) {
    TN_SCOPE;
    operands x = make(TN_F32);
    tn_tensor *out, *sums, *seen = tn_gt_scalar(noise(TN_F32, TN_SHAPE(7, 9), 4), tn_float(-1));
    tn_tensor *earlier = tn_tril(tn_ones(TN_SHAPE(7, 9), TN_F32, dev));
    tn_tensor *both = tn_logical_and(seen, earlier);
    tn_tensor *row = tn_any_dim(both, TN_SHAPE(-1), true);
    tn_tensor *scores =
        tn_masked_fill_scalar(scores_of(x, 0.5), tn_logical_not(both), tn_float(-INFINITY));
    assert_int_equal(tn_scaled_dot_product_flash_attention(x.query, x.key, x.value, seen, true,
                                                           tn_float(0.5), &out, &sums),
                     TN_OK);
    tn_tensor *want = weighed(tn_where_scalarother(row, scores, tn_float(0)), x);
    check_near(out, tn_where_scalarother(row, want, tn_float(0)), 2e-6);
}

static void a_query_that_sees_no_key_gets_zeros(void **state) {
    TN_SCOPE;
    tn_tensor *x = noise(TN_F32, TN_SHAPE(1, 1, 2, 3), 1), *out, *sums;
    tn_tensor *mask = of(TN_F32, TN_SHAPE(2, 2), -INFINITY, -INFINITY, 0, -INFINITY);
    assert_int_equal(
        tn_scaled_dot_product_flash_attention(x, x, x, mask, false, tn_float(1), &out, &sums),
        TN_OK);
    double *values = values_of(out), *of_x = values_of(x), *of_sums = values_of(sums);
    for (int i = 0; i < 3; i++) {
        assert_true(values[i] == 0);
        assert_true(fabs(values[3 + i] - of_x[i]) < 1e-6);
    }
    assert_true(of_sums[0] == -INFINITY);
    free(values), free(of_x), free(of_sums);
    tn_tensor *query = requiring_grad(tn_clone(x));
    tn_tensor *y = tn_scaled_dot_product_attention(query, x, x, mask);
    assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
    double most;
    tn_item(tn_max(tn_abs(tn_select(tn_grad(query), 2, 0))), &most);
    assert_true(most == 0);
}

/* Gradients by query, key and value, with a mask that needs one (composed) and with one that does not. */
static void fused_gradients_are_the_compositions(void **state) {
    TN_SCOPE;
    tn_tensor *grads[2][3];
    for (int composed = 0; composed < 2; composed++) {
        operands x = make(TN_F64);
        tn_tensor *all[] = {requiring_grad(tn_clone(x.query)), requiring_grad(tn_clone(x.key)),
                            requiring_grad(tn_clone(x.value))};
        tn_tensor *mask = noise(TN_F64, TN_SHAPE(7, 9), 5);
        if (composed)
            mask = requiring_grad(mask);
        tn_tensor *y = tn_scaled_dot_product_attention(all[0], all[1], all[2], mask, 0, false,
                                                       tn_float(0.3), true);
        tn_tensor *upstream = noise(TN_F64, TN_SHAPE(2, 4, 7, 6), 6);
        assert_int_equal(tn_backward(tn_sum(tn_mul(y, upstream))), TN_OK);
        for (int i = 0; i < 3; i++)
            grads[composed][i] = tn_grad(all[i]);
        assert_true(!composed || tn_numel(tn_grad(mask)) == 63);
    }
    for (int i = 0; i < 3; i++)
        check_near(grads[0][i], grads[1][i], 1e-12);
}

/* What a device with the kernels needs beside its arguments is not of the scores' size. */
static void memory_does_not_grow_with_the_scores(void **state) {
    TN_SCOPE;
    if (strcmp(*state, "cpu:0") != 0)
        return;
    enum { PLACES = 2048 };
    tn_tensor *x = requiring_grad(noise(TN_F32, TN_SHAPE(1, 4, PLACES, 16), 1));
    tn_memory_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    tn_memory_reset_peaks(dev);
    tn_memory_stats_get(dev, &before);
    tn_tensor *y = tn_scaled_dot_product_attention(x, x, x, TN_NONE, 0, true);
    assert_int_equal(tn_backward(tn_sum(y)), TN_OK);
    tn_memory_stats_get(dev, &after);
    assert_true(after.allocated_peak > before.allocated_bytes);
    assert_true(after.allocated_peak - before.allocated_bytes < 4u * PLACES * PLACES);
}

static void flash_attention_refuses_what_does_not_fit(void **state) {
    TN_SCOPE;
    operands x = make(TN_F32);
    tn_tensor *out, *sums;
    assert_fails(tn_scaled_dot_product_flash_attention(x.query, x.key, tn_narrow(x.value, 2, 0, 8),
                                                       TN_NONE, false, tn_float(1), &out,
                                                       &sums) == TN_OK
                     ? out
                     : NULL,
                 TN_ERR_SHAPE, "key.size(-2)");
    assert_fails(tn_scaled_dot_product_flash_attention(x.query, x.key, x.value,
                                                       noise(TN_F32, TN_SHAPE(7, 8), 1), false,
                                                       tn_float(1), &out, &sums) == TN_OK
                     ? out
                     : NULL,
                 TN_ERR_SHAPE, "attn_mask", "[7, 8]");
    assert_fails(tn_scaled_dot_product_flash_attention(tn_narrow(x.query, 1, 0, 3), x.key, x.value,
                                                       TN_NONE, false, tn_float(1), &out,
                                                       &sums) == TN_OK
                     ? out
                     : NULL,
                 TN_ERR_SHAPE, "heads");
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        OPS_TEST(flash_attention_is_attention_in_every_dtype),
        OPS_TEST(masks_and_causality_add_up),
        OPS_TEST(a_query_that_sees_no_key_gets_zeros),
        OPS_TEST(fused_gradients_are_the_compositions),
        OPS_TEST(memory_does_not_grow_with_the_scores),
        OPS_TEST(flash_attention_refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
