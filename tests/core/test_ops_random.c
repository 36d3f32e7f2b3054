/* Random tensors: the words are Philox's, the same on every device, and what is made of them has
 * the range, the moments and the independence that it should. */
#include "tests/core/ops_test.h"

/* Known answers of Philox 4x32-10 (Salmon et al., 2011; Random123's kat_vectors): key and counter
 * zero; here the counter's upper words are always zero. */
static void words_are_philox_s(void **state) {
    tn_tensor *w = tn_random_bits(TN_SHAPE(4), 0, 0, TN_I32);
    assert_elements(w, TN_SHAPE(4), (int32_t)0x6627e8d5, (int32_t)0xe169c58d, (int32_t)0xbc57ac4c,
                    (int32_t)0x9b00dbd8);
    tn_tensor *wide = tn_random_bits(TN_SHAPE(2), 0, 0);
    int64_t pair[2];
    assert_ok(tn_to_host(wide, pair, sizeof pair));
    assert_int_equal((uint64_t)pair[0], 0xe169c58d6627e8d5);
    assert_int_equal((uint64_t)pair[1], 0x9b00dbd8bc57ac4c);
    tn_tensor *later = tn_random_bits(TN_SHAPE(2, 3), 7, 2, TN_I32);
    assert_same(tn_reshape(later, TN_SHAPE(6)),
                tn_slice(tn_random_bits(TN_SHAPE(14), 7, 0, TN_I32), 0, 8));
    assert_fails(tn_random_bits(TN_SHAPE(1), 0, 0, TN_F32), TN_ERR_DTYPE, "tn_random_bits", "f32");
    assert_fails(tn_random_bits(TN_SHAPE(-1), 0, 0), TN_ERR_SHAPE, "tn_random_bits");
    assert_fails(tn_random_bits(tn_no_ints(), 0, 0), TN_ERR_SHAPE, "tn_random_bits");
}

/* All draws of one program, in order. */
enum { N_DRAWS = 10 };
static void draw_all(tn_device where, tn_tensor **out) {
    tn_manual_seed(42);
    const tn_dtype floats[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    for (int i = 0; i < 4; i++)
        out[i] = tn_rand(TN_SHAPE(33, 7), floats[i], where);
    out[4] = tn_randint(-5, 1000, TN_SHAPE(99), TN_DTYPE_NONE, where);
    out[5] = tn_randint(0, 200, TN_SHAPE(9), TN_U8, where);
    out[6] = tn_randperm(100, TN_DTYPE_NONE, where);
    out[7] = tn_bernoulli_mask(TN_SHAPE(500), 0.3, where);
    out[8] = tn_dropout(tn_ones(TN_SHAPE(40), TN_F32, where), 0.5);
    out[9] = tn_uniform_(tn_empty(TN_SHAPE(40), TN_F32, where), 0, 8);
}

static void every_device_draws_the_same(void **state) {
    tn_tensor *here[N_DRAWS], *there[N_DRAWS];
    draw_all(dev, here);
    draw_all(tn_device_parse("cpu:0"), there);
    for (int i = 0; i < N_DRAWS; i++)
        assert_same(here[i], there[i]);
    tn_manual_seed(42);
    tn_tensor *z = tn_randn(TN_SHAPE(2000));
    tn_manual_seed(42);
    double *other = values_of(tn_randn(TN_SHAPE(2000), TN_F32, tn_device_parse("cpu:0")));
    assert_values(z, TN_SHAPE(2000), 2e-6, other);
    free(other);
}

static void the_seed_decides(void **state) {
    tn_manual_seed(1);
    tn_tensor *a = tn_rand(TN_SHAPE(2, 3)), *b = tn_rand(TN_SHAPE(6));
    tn_manual_seed(1);
    tn_tensor *again = tn_rand(TN_SHAPE(6));
    assert_same(tn_reshape(a, TN_SHAPE(6)), again); /* by logical index, whatever the shape */
    double *va = values_of(a), *vb = values_of(b);
    for (int i = 0; i < 6; i++)
        assert_true(va[i] != vb[i]);
    free(va);
    free(vb);
    tn_manual_seed(1);
    tn_tensor *turned = tn_t(tn_empty(TN_SHAPE(3, 2)));
    tn_uniform_(turned);
    assert_same(tn_contiguous(turned), a);
    uint64_t seed, offset;
    tn_manual_seed(9);
    tn_rand(TN_SHAPE(5));                         /* 5 words: 2 blocks */
    tn_rand(TN_SHAPE(3), TN_F64);                 /* 6 words: 2 blocks */
    tn_rand(TN_SHAPE(0));                         /* none */
    tn_dropout(tn_ones(TN_SHAPE(4)), 0.5, false); /* none */
    assert_ok(tn_generator_get(dev, &seed, &offset));
    assert_int_equal(seed, 9);
    assert_int_equal(offset, 4);
}

static double mean_of(tn_tensor *t) {
    double value = NAN;
    assert_ok(tn_item(tn_mean(tn_to_dtype(t, TN_F64)), &value));
    return value;
}

static void uniform_numbers_fill_their_range(void **state) {
    const tn_dtype floats[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    tn_manual_seed(5);
    for (int i = 0; i < 4; i++) {
        tn_tensor *u = tn_rand(TN_SHAPE(20000), floats[i]);
        double *v = values_of(u), least = 1, most = 0;
        for (int k = 0; k < 20000; k++) {
            least = v[k] < least ? v[k] : least;
            most = v[k] > most ? v[k] : most;
        }
        free(v);
        assert_true(least >= 0 && least < 0.01 && most < 1 && most > 0.99);
        assert_true(fabs(mean_of(u) - 0.5) < 0.01);
        assert_true(fabs(mean_of(tn_mul(u, u)) - 1.0 / 3) < 0.01);
    }
    tn_tensor *like = tn_rand_like(tn_ones(TN_SHAPE(2, 3), TN_F16));
    assert_shape(like, 2, 3);
    assert_int_equal(tn_dtype_of(like), TN_F16);
    assert_fails(tn_rand(TN_SHAPE(1), TN_I64), TN_ERR_DTYPE, "tn_rand: i64 is not floating",
                 "tn_randint");
    assert_fails(tn_rand(TN_SHAPE(-1)), TN_ERR_SHAPE, "tn_rand: size [-1]");
    assert_fails(tn_rand(tn_no_ints()), TN_ERR_SHAPE, "tn_rand: size");
}

/* In [1, 2) every second number of [0, 1) is half way between two: many sums round up to 2. In bf16
 * that is one in 256, so some of so many would be. */
static void uniform_never_reaches_its_end(void **state) {
    tn_manual_seed(2);
    double *v = values_of(tn_uniform_(tn_empty(TN_SHAPE(20000), TN_BF16), 1, 2));
    for (int i = 0; i < 20000; i++)
        assert_true(v[i] >= 1 && v[i] < 2);
    free(v);
    assert_elements(tn_uniform_(tn_empty(TN_SHAPE(2)), 3, 3), TN_SHAPE(2), 3, 3);
    tn_tensor *x = tn_ones(TN_SHAPE(1));
    assert_fails(tn_uniform_(x, 1, 0), TN_ERR_INVALID_ARGUMENT, "tn_uniform_: [1, 0)");
    assert_fails(tn_uniform_(x, 0, INFINITY), TN_ERR_INVALID_ARGUMENT, "tn_uniform_");
    assert_fails(tn_uniform_(tn_ones(TN_SHAPE(1), TN_I32)), TN_ERR_DTYPE, "tn_uniform_: i32");
    assert_fails(tn_uniform_(tn_expand(x, TN_SHAPE(2))), TN_ERR_SHAPE, "tn_uniform_", "tn_clone");
}

static void normal_numbers_have_their_moments(void **state) {
    const tn_dtype floats[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    tn_manual_seed(6);
    for (int i = 0; i < 4; i++) {
        tn_tensor *z = tn_to_dtype(tn_randn(TN_SHAPE(40000), floats[i]), TN_F64);
        tn_tensor *square = tn_mul(z, z);
        assert_true(fabs(mean_of(z)) < 0.02);
        assert_true(fabs(mean_of(square) - 1) < 0.03);
        assert_true(fabs(mean_of(tn_mul(square, z))) < 0.06);
        assert_true(fabs(mean_of(tn_mul(square, square)) - 3) < 0.2);
    }
    tn_tensor *x = tn_normal_(tn_empty(TN_SHAPE(40000)), 5, 0.5);
    assert_true(fabs(mean_of(x) - 5) < 0.01);
    assert_true(fabs(mean_of(tn_mul(x, x)) - 25.25) < 0.1);
    assert_fails(tn_normal_(x, 0, -1), TN_ERR_INVALID_ARGUMENT, "tn_normal_: std is -1");
    assert_fails(tn_randn(TN_SHAPE(1), TN_I32), TN_ERR_DTYPE, "tn_randn: i32");
    assert_fails(tn_randn_like(tn_ones(TN_SHAPE(1), TN_BOOL)), TN_ERR_DTYPE, "tn_randn_like: bool");
    assert_shape(tn_randn(TN_SHAPE(0, 2)), 0, 2);
}

static void like_another_tensor_but_for_what_is_said(void **state) {
    tn_tensor *whole = tn_zeros(TN_SHAPE(2, 3), TN_I32);
    tn_device cpu = tn_device_parse("cpu:0");
    tn_tensor *(*const makers[])(tn_tensor *, tn_dtype, tn_device) = {(tn_rand_like),
                                                                      (tn_randn_like)};
    tn_tensor *(*const plain[])(tn_ints, tn_dtype, tn_device) = {(tn_rand), (tn_randn)};
    for (int i = 0; i < 2; i++) {
        tn_manual_seed(5);
        tn_tensor *x = makers[i](whole, TN_F64, cpu);
        assert_true(tn_device_equal(tn_device_of(x), cpu));
        tn_manual_seed(5);
        assert_same(x, plain[i](TN_SHAPE(2, 3), TN_F64, cpu));
        x = makers[i](tn_ones(TN_SHAPE(2), TN_BF16), TN_DTYPE_NONE, tn_no_device());
        assert_true(tn_device_equal(tn_device_of(x), dev) && tn_dtype_of(x) == TN_BF16);
    }
    assert_fails(tn_rand_like(whole), TN_ERR_DTYPE, "tn_rand_like: i32 is not floating");
}

static void integers_cover_their_range(void **state) {
    tn_manual_seed(3);
    int seen[7] = {0};
    double *v = values_of(tn_randint(-3, 4, TN_SHAPE(7000)));
    for (int i = 0; i < 7000; i++) {
        assert_true(v[i] >= -3 && v[i] < 4);
        seen[(int)v[i] + 3]++;
    }
    free(v);
    for (int i = 0; i < 7; i++)
        assert_true(seen[i] > 850 && seen[i] < 1150);
    assert_int_equal(tn_dtype_of(tn_randint(0, 2, TN_SHAPE(1))), TN_I64);
    assert_int_equal(tn_dtype_of(tn_randint(0, 2, TN_SHAPE(1), TN_F32)), TN_F32);
    assert_non_null(tn_randint(INT64_MIN / 2, INT64_MAX / 2, TN_SHAPE(2)));
    assert_fails(tn_randint(2, 2, TN_SHAPE(1)), TN_ERR_INVALID_ARGUMENT, "tn_randint: [2, 2)");
    assert_fails(tn_randint(INT64_MIN, INT64_MAX, TN_SHAPE(1)), TN_ERR_INVALID_ARGUMENT,
                 "too wide");
    assert_fails(tn_randint(0, 257, TN_SHAPE(1), TN_U8), TN_ERR_DTYPE, "tn_randint: u8");
    assert_fails(tn_randint(-129, 0, TN_SHAPE(1), TN_I8), TN_ERR_DTYPE, "tn_randint: i8");
}

static void a_permutation_has_every_number_once(void **state) {
    int moved = 0, seen[1000] = {0};
    double *v = values_of(tn_randperm(1000));
    for (int i = 0; i < 1000; i++) {
        assert_true(v[i] >= 0 && v[i] < 1000 && !seen[(int)v[i]]++);
        moved += v[i] != i;
    }
    free(v);
    assert_true(moved > 950);
    assert_shape(tn_randperm(0), 0);
    assert_int_equal(tn_dtype_of(tn_randperm(3, TN_I32)), TN_I32);
    assert_fails(tn_randperm(-1), TN_ERR_INVALID_ARGUMENT, "tn_randperm: n is -1");
    assert_fails(tn_randperm(257, TN_U8), TN_ERR_DTYPE, "tn_randperm: u8");
}

/* How often each of 4 indices is in x, whose rows have `width`; *twice counts those that follow another
 * in their row. */
static void count_draws(tn_tensor *x, int64_t width, int counts[4], int *twice) {
    double *v = values_of(x);
    for (int64_t i = 0; i < tn_numel(x); i++) {
        assert_true(v[i] >= 0 && v[i] < 4);
        counts[(int)v[i]]++;
        for (int64_t k = i - i % width; k < i; k++)
            *twice += v[k] == v[i];
    }
    free(v);
}

static void draws_are_as_frequent_as_their_weights(void **state) {
    const tn_dtype floats[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    tn_manual_seed(8);
    for (int i = 0; i < 4; i++)
        for (int again = 0; again < 2; again++) {
            int counts[4] = {0}, twice = 0;
            tn_tensor *w = of(floats[i], TN_SHAPE(4), 2, 0, 1, 5);
            w = again ? w : tn_contiguous(tn_expand(w, TN_SHAPE(8000, 4)));
            tn_tensor *x = tn_multinomial(w, again ? 8000 : 1, again);
            assert_int_equal(tn_dtype_of(x), TN_I64);
            count_draws(x, 1, counts, &twice);
            assert_true(abs(counts[0] - 2000) < 200 && counts[1] == 0);
            assert_true(abs(counts[2] - 1000) < 150 && abs(counts[3] - 5000) < 250);
        }
}

static void draws_without_replacement_are_distinct(void **state) {
    tn_manual_seed(9);
    int counts[4] = {0}, twice = 0, first[4] = {0};
    tn_tensor *w = tn_expand(of(TN_F32, TN_SHAPE(4), 1, 3, 0, 4), TN_SHAPE(4000, 4));
    tn_tensor *x = tn_multinomial(tn_contiguous(w), 3);
    assert_shape(x, 4000, 3);
    count_draws(x, 3, counts, &twice);
    assert_true(twice == 0 && counts[0] == 4000 && counts[1] == 4000 && counts[3] == 4000);
    count_draws(tn_contiguous(tn_select(x, 1, 0)), 1, first, &twice);
    assert_true(abs(first[0] - 500) < 100 && abs(first[1] - 1500) < 150);
    /* weights at the ends of the dtype */
    int huge[4] = {0}, again = 0;
    w = tn_expand(of(TN_F32, TN_SHAPE(4), 3e38, 3e38, 1e-30, 0), TN_SHAPE(4000, 4));
    count_draws(tn_multinomial(tn_contiguous(w), 1), 1, huge, &twice);
    count_draws(tn_multinomial(tn_contiguous(w), 4, true), 4, huge, &again);
    assert_true(huge[2] == 0 && huge[3] == 0 && abs(huge[0] - huge[1]) < 600);
    /* one vanishes beside the others, and is no 0 */
    int all[4] = {0};
    count_draws(tn_multinomial(tn_contiguous(w), 3), 3, all, &twice);
    assert_true(twice == 0 && all[2] == 4000 && all[3] == 0);
    assert_shape(tn_multinomial(tn_ones(TN_SHAPE(0, 3)), 2), 0, 2);
}

static void weights_that_cannot_be_drawn_say_why(void **state) {
    assert_fails(tn_multinomial(of(TN_F32, TN_SHAPE(2), 1, -1), 1), TN_ERR_INVALID_ARGUMENT,
                 "tn_multinomial", "negative");
    assert_fails(tn_multinomial(of(TN_F32, TN_SHAPE(2), 1, NAN), 1), TN_ERR_INVALID_ARGUMENT,
                 "NaN");
    assert_fails(tn_multinomial(of(TN_F32, TN_SHAPE(2), 1, INFINITY), 1), TN_ERR_INVALID_ARGUMENT,
                 "infinite");
    assert_fails(tn_multinomial(tn_zeros(TN_SHAPE(2, 3)), 4, true), TN_ERR_INVALID_ARGUMENT,
                 "0 weights above 0, of which 1 cannot be drawn");
    assert_fails(tn_multinomial(of(TN_F32, TN_SHAPE(3), 1, 0, 0), 2), TN_ERR_INVALID_ARGUMENT,
                 "1 weights above 0, of which 2", "with replacement");
    assert_fails(tn_multinomial(tn_ones(TN_SHAPE(3)), 4), TN_ERR_INVALID_ARGUMENT, "3 at most");
    assert_fails(tn_multinomial(tn_ones(TN_SHAPE(3)), 0, true), TN_ERR_INVALID_ARGUMENT,
                 "num_samples is 0");
    assert_fails(tn_multinomial(tn_ones(TN_SHAPE(1, 1, 3)), 1), TN_ERR_SHAPE, "[1, 1, 3]");
    assert_fails(tn_multinomial(tn_ones(TN_SHAPE(3), TN_I32), 1), TN_ERR_DTYPE, "i32");
}

static void masks_are_true_as_often_as_asked(void **state) {
    tn_manual_seed(4);
    assert_true(fabs(mean_of(tn_bernoulli_mask(TN_SHAPE(20000), 0.2)) - 0.2) < 0.01);
    assert_elements(tn_bernoulli_mask(TN_SHAPE(3), 1), TN_SHAPE(3), 1, 1, 1);
    assert_elements(tn_bernoulli_mask(TN_SHAPE(3), 0), TN_SHAPE(3), 0, 0, 0);
    assert_fails(tn_bernoulli_mask(TN_SHAPE(1), 1.5), TN_ERR_INVALID_ARGUMENT,
                 "tn_bernoulli_mask: p");
    assert_fails(tn_bernoulli_mask(TN_SHAPE(1), NAN), TN_ERR_INVALID_ARGUMENT,
                 "tn_bernoulli_mask: p");
}

static void dropout_scales_what_it_leaves(void **state) {
    tn_manual_seed(8);
    tn_tensor *x = tn_add_scalar(counting(TN_F32, TN_SHAPE(1000)), tn_int(1));
    tn_set_requires_grad(x, true);
    tn_tensor *y = tn_dropout(x, 0.2);
    assert_ok(tn_backward(tn_sum(y)));
    double *vy = values_of(y), *slope = values_of(tn_grad(x));
    int kept = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(vy[i] == 0 || fabs(vy[i] - 1.25 * (i + 1)) < 1e-3);
        assert_true(slope[i] == (vy[i] == 0 ? 0 : 1.25));
        kept += vy[i] != 0;
    }
    free(vy);
    free(slope);
    assert_true(kept > 760 && kept < 840);
    assert_ptr_equal(tn_dropout(x, 0), x);
    assert_ptr_equal(tn_dropout(x, 0.5, false), x);
    assert_elements(tn_dropout(tn_ones(TN_SHAPE(2)), 1), TN_SHAPE(2), 0, 0);
    assert_int_equal(tn_dtype_of(tn_dropout(tn_ones(TN_SHAPE(2), TN_BF16), 0.5)), TN_BF16);
    assert_fails(tn_dropout(x, 1.5), TN_ERR_INVALID_ARGUMENT, "tn_dropout: p is 1.5");
    assert_fails(tn_dropout(x, -0.1, false), TN_ERR_INVALID_ARGUMENT, "tn_dropout: p");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(words_are_philox_s),
        cmocka_unit_test_prestate_setup_teardown(every_device_draws_the_same, on_device,
                                                 leave_device, "sim:0"),
        OPS_TEST(the_seed_decides),
        OPS_TEST(uniform_numbers_fill_their_range),
        OPS_TEST(uniform_never_reaches_its_end),
        OPS_TEST(normal_numbers_have_their_moments),
        OPS_TEST(like_another_tensor_but_for_what_is_said),
        OPS_TEST(integers_cover_their_range),
        OPS_TEST(a_permutation_has_every_number_once),
        OPS_TEST(draws_are_as_frequent_as_their_weights),
        OPS_TEST(draws_without_replacement_are_distinct),
        OPS_TEST(weights_that_cannot_be_drawn_say_why),
        OPS_TEST(masks_are_true_as_often_as_asked),
        OPS_TEST(dropout_scales_what_it_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
