/* Tensors as text: the expected strings are what PyTorch prints, but for the names of dtypes. */
#include "tests/core/core_test.h"

#include "core/autograd/autograd.h"
#include "core/tensor/tensor.h"

#include <math.h>

static tni_device *open_as_cpu(void) {
    tni_device *d = open_fake();
    d->is_cpu = true;
    d->dtypes = TN_DTYPES_ALL;
    return d;
}

static void check(tn_tensor *t, const char *want) {
    char *text = tn_to_string(t);
    assert_string_equal(tn_error_message(), "");
    assert_string_equal(text, want);
    tn_string_free(text);
}

#define CHECK(want, type, DTYPE, shape, ...) \
    do { \
        TN_SCOPE; \
        type values[] = {__VA_ARGS__}; \
        check(tn_from_data(values, shape, DTYPE, d->id), want); \
    } while (0)
#define FLOATS(want, shape, ...) CHECK(want, float, TN_F32, shape, __VA_ARGS__)
#define INTS(want, shape, ...) CHECK(want, int64_t, TN_I64, shape, __VA_ARGS__)

/* 0, step, 2 * step, ... */
static tn_tensor *counting_floats(tni_device *d, tn_ints shape, float step) {
    int64_t n;
    assert_true(tni_numel((int32_t)shape.n, shape.data, 4, &n));
    float *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)i * step;
    tn_tensor *t = tn_from_data(values, shape, TN_F32, d->id);
    free(values);
    return t;
}

static tn_tensor *counting(tni_device *d, tn_ints shape) {
    int64_t n;
    assert_true(tni_numel((int32_t)shape.n, shape.data, 8, &n));
    int64_t *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = i;
    tn_tensor *t = tn_from_data(values, shape, TN_I64, d->id);
    free(values);
    return t;
}

static void floats_share_one_format(void **state) {
    tni_device *d = open_as_cpu();
    FLOATS("tensor([1., 2., 3.])", TN_SHAPE(3), 1, 2, 3);
    FLOATS("tensor([ 0.1000,  0.2500, -3.0000])", TN_SHAPE(3), 0.1f, 0.25f, -3);
    FLOATS("tensor([ 0., 10.])", TN_SHAPE(2), 0, 10);
    FLOATS("tensor([0., 0.])", TN_SHAPE(2), 0, 0);
    FLOATS("tensor([-0., 1.])", TN_SHAPE(2), -0.0f, 1);
    FLOATS("tensor([   1., 1000.])", TN_SHAPE(2), 1, 1000);
    FLOATS("tensor([100000000.])", TN_SHAPE(1), 1e8f);
    FLOATS("tensor([999.5000,   1.0000])", TN_SHAPE(2), 999.5f, 1);
}

static void a_wide_range_is_scientific(void **state) {
    tni_device *d = open_as_cpu();
    FLOATS("tensor([1.0000e+00, 2.0000e+03])", TN_SHAPE(2), 1, 2000);
    FLOATS("tensor([1.0000e-05, 1.0000e+00])", TN_SHAPE(2), 1e-5f, 1);
    FLOATS("tensor([1.2346e+08])", TN_SHAPE(1), 123456789);
    FLOATS("tensor([9.0000e-05])", TN_SHAPE(1), 9e-5f);
    FLOATS("tensor([-1.5000e+04,  0.0000e+00,  2.0000e+00])", TN_SHAPE(3), -15000, 0, 2);
    FLOATS("tensor([1.0000e+10,        nan,        inf])", TN_SHAPE(3), 1e10f, NAN, INFINITY);
}

static void what_is_not_finite_has_no_say_in_the_format(void **state) {
    tni_device *d = open_as_cpu();
    FLOATS("tensor([nan, 1., inf])", TN_SHAPE(3), NAN, 1, INFINITY);
    FLOATS("tensor([   nan, 1.5000,   -inf])", TN_SHAPE(3), NAN, 1.5f, -INFINITY);
    FLOATS("tensor([nan, nan])", TN_SHAPE(2), NAN, -NAN);
    FLOATS("tensor([inf, -inf, 0.])", TN_SHAPE(3), INFINITY, -INFINITY, 0);
}

static void scalars_have_no_brackets(void **state) {
    tni_device *d = open_as_cpu();
    FLOATS("tensor(3.1416)", TN_SCALAR_SHAPE, 3.14159f);
    FLOATS("tensor(1.)", TN_SCALAR_SHAPE, 1);
    FLOATS("tensor(0.)", TN_SCALAR_SHAPE, 0);
    FLOATS("tensor(nan)", TN_SCALAR_SHAPE, NAN);
    INTS("tensor(-5)", TN_SCALAR_SHAPE, -5);
    CHECK("tensor(True)", bool, TN_BOOL, TN_SCALAR_SHAPE, true);
    CHECK("tensor(2., dtype=f64)", double, TN_F64, TN_SCALAR_SHAPE, 2);
}

static void integers_and_bools_are_aligned(void **state) {
    tni_device *d = open_as_cpu();
    INTS("tensor([  1, -20, 300])", TN_SHAPE(3), 1, -20, 300);
    INTS("tensor([-9223372036854775808,                    1])", TN_SHAPE(2), INT64_MIN, 1);
    CHECK("tensor([ True, False])", bool, TN_BOOL, TN_SHAPE(2), true, false);
    CHECK("tensor([True, True])", bool, TN_BOOL, TN_SHAPE(2), true, true);
}

static void dtypes_are_named_unless_they_show(void **state) {
    tni_device *d = open_as_cpu();
    CHECK("tensor([1, 2], dtype=i32)", int32_t, TN_I32, TN_SHAPE(2), 1, 2);
    CHECK("tensor([255], dtype=u8)", uint8_t, TN_U8, TN_SHAPE(1), 255);
    CHECK("tensor([-1], dtype=i8)", int8_t, TN_I8, TN_SHAPE(1), -1);
    CHECK("tensor([-300], dtype=i16)", int16_t, TN_I16, TN_SHAPE(1), -300);
    CHECK("tensor([1.5000], dtype=f64)", double, TN_F64, TN_SHAPE(1), 1.5);
    CHECK("tensor([0.1000], dtype=f16)", uint16_t, TN_F16, TN_SHAPE(1), 0x2e66);
    CHECK("tensor([3.1406], dtype=bf16)", uint16_t, TN_BF16, TN_SHAPE(1), 0x4049);
}

static void dimensions_are_nested(void **state) {
    tni_device *d = open_as_cpu();
    FLOATS("tensor([[1., 2., 3.],\n"
           "        [4., 5., 6.]])",
           TN_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    INTS("tensor([[[0, 1],\n"
         "         [2, 3]],\n"
         "\n"
         "        [[4, 5],\n"
         "         [6, 7]]])",
         TN_SHAPE(2, 2, 2), 0, 1, 2, 3, 4, 5, 6, 7);
    INTS("tensor([[[[0]],\n"
         "\n"
         "         [[1]]],\n"
         "\n"
         "\n"
         "        [[[2]],\n"
         "\n"
         "         [[3]]]])",
         TN_SHAPE(2, 2, 1, 1), 0, 1, 2, 3);
}

static void empty_tensors_tell_their_size_and_dtype(void **state) {
    tni_device *d = open_as_cpu();
    TN_SCOPE;
    check(tn_from_data(NULL, TN_SHAPE(0), TN_F32, d->id), "tensor([])");
    check(tn_from_data(NULL, TN_SHAPE(0), TN_I64, d->id), "tensor([], dtype=i64)");
    check(tn_from_data(NULL, TN_SHAPE(0, 3), TN_F32, d->id), "tensor([], size=(0, 3))");
    check(tn_from_data(NULL, TN_SHAPE(2, 0), TN_F64, d->id), "tensor([], size=(2, 0), dtype=f64)");
}

static void long_vectors_are_wrapped_at_80_columns(void **state) {
    tni_device *d = open_as_cpu();
    TN_SCOPE;
    check(counting(d, TN_SHAPE(30)),
          "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
          "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])");
    check(counting_floats(d, TN_SHAPE(2, 12), 0.5f),
          "tensor([[ 0.0000,  0.5000,  1.0000,  1.5000,  2.0000,  2.5000,  3.0000,  3.5000,\n"
          "          4.0000,  4.5000,  5.0000,  5.5000],\n"
          "        [ 6.0000,  6.5000,  7.0000,  7.5000,  8.0000,  8.5000,  9.0000,  9.5000,\n"
          "         10.0000, 10.5000, 11.0000, 11.5000]])");
}

static void more_than_a_thousand_elements_are_summarised(void **state) {
    tni_device *d = open_as_cpu();
    TN_SCOPE;
    check(counting(d, TN_SHAPE(1001)), "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
    check(counting_floats(d, TN_SHAPE(501, 2), 0), "tensor([[0., 0.],\n"
                                                   "        [0., 0.],\n"
                                                   "        [0., 0.],\n"
                                                   "        ...,\n"
                                                   "        [0., 0.],\n"
                                                   "        [0., 0.],\n"
                                                   "        [0., 0.]])");
    check(counting(d, TN_SHAPE(100, 100)), "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
                                           "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
                                           "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
                                           "        ...,\n"
                                           "        [9700, 9701, 9702,  ..., 9797, 9798, 9799],\n"
                                           "        [9800, 9801, 9802,  ..., 9897, 9898, 9899],\n"
                                           "        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])");
    check(counting(d, TN_SHAPE(2, 7, 100)),
          "tensor([[[   0,    1,    2,  ...,   97,   98,   99],\n"
          "         [ 100,  101,  102,  ...,  197,  198,  199],\n"
          "         [ 200,  201,  202,  ...,  297,  298,  299],\n"
          "         ...,\n"
          "         [ 400,  401,  402,  ...,  497,  498,  499],\n"
          "         [ 500,  501,  502,  ...,  597,  598,  599],\n"
          "         [ 600,  601,  602,  ...,  697,  698,  699]],\n"
          "\n"
          "        [[ 700,  701,  702,  ...,  797,  798,  799],\n"
          "         [ 800,  801,  802,  ...,  897,  898,  899],\n"
          "         [ 900,  901,  902,  ...,  997,  998,  999],\n"
          "         ...,\n"
          "         [1100, 1101, 1102,  ..., 1197, 1198, 1199],\n"
          "         [1200, 1201, 1202,  ..., 1297, 1298, 1299],\n"
          "         [1300, 1301, 1302,  ..., 1397, 1398, 1399]]])");
}

static void a_large_tensor_is_read_at_its_edges(void **state) {
    tni_device *d = open_as_cpu();
    TN_SCOPE;
    tn_tensor *t = counting(d, TN_SHAPE(300, 300));
    check(t, "tensor([[    0,     1,     2,  ...,   297,   298,   299],\n"
             "        [  300,   301,   302,  ...,   597,   598,   599],\n"
             "        [  600,   601,   602,  ...,   897,   898,   899],\n"
             "        ...,\n"
             "        [89100, 89101, 89102,  ..., 89397, 89398, 89399],\n"
             "        [89400, 89401, 89402,  ..., 89697, 89698, 89699],\n"
             "        [89700, 89701, 89702,  ..., 89997, 89998, 89999]])");
    tn_tensor *turned =
        tni_scope_push(tni_tensor_view(t, 2, (int64_t[]){300, 300}, (int64_t[]){1, 300}, 0));
    check(turned, "tensor([[    0,   300,   600,  ..., 89100, 89400, 89700],\n"
                  "        [    1,   301,   601,  ..., 89101, 89401, 89701],\n"
                  "        [    2,   302,   602,  ..., 89102, 89402, 89702],\n"
                  "        ...,\n"
                  "        [  297,   597,   897,  ..., 89397, 89697, 89997],\n"
                  "        [  298,   598,   898,  ..., 89398, 89698, 89998],\n"
                  "        [  299,   599,   899,  ..., 89399, 89699, 89999]])");
    int64_t *zero = calloc(1, 8);
    tn_tensor *one = tn_from_data(zero, TN_SCALAR_SHAPE, TN_I64, d->id);
    free(zero);
    check(tni_scope_push(tni_tensor_view(one, 1, (int64_t[]){70000}, (int64_t[]){0}, 0)),
          "tensor([0, 0, 0,  ..., 0, 0, 0])");
}

static void views_print_what_they_show(void **state) {
    tni_device *d = open_as_cpu();
    TN_SCOPE;
    tn_tensor *t = counting(d, TN_SHAPE(2, 3));
    check(tni_scope_push(tni_tensor_view(t, 2, (int64_t[]){3, 2}, (int64_t[]){1, 3}, 0)),
          "tensor([[0, 3],\n"
          "        [1, 4],\n"
          "        [2, 5]])");
    check(tni_scope_push(tni_tensor_view(t, 1, (int64_t[]){2}, (int64_t[]){1}, 4)),
          "tensor([4, 5])");
}

static void suffixes_follow_in_order_and_wrap(void **state) {
    tni_device *d = open_as_cpu();
    TN_SCOPE;
    double values[9] = {.5, .5, .5, .5, .5, .5, .5, .5, .5};
    check(tn_from_data(values, TN_SHAPE(9), TN_F64, d->id),
          "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000],\n"
          "       dtype=f64)");
    check(tn_from_data(values, TN_SHAPE(7), TN_F64, d->id),
          "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000], dtype=f64)");
    d->is_cpu = false;
    check(tn_from_data(values, TN_SHAPE(1), TN_F64, d->id),
          "tensor([0.5000], device='fake:0', dtype=f64)");
    tni_device *meta = tni_device_get(tn_device_parse("meta"));
    check(tni_scope_push(tni_tensor_new(meta, TN_F32, 2, (int64_t[]){2, 3})),
          "tensor(..., device='meta', size=(2, 3))");
    check(tni_scope_push(tni_tensor_new(meta, TN_I64, 1, (int64_t[]){3})),
          "tensor(..., device='meta', size=(3,), dtype=i64)");
    check(tni_scope_push(tni_tensor_new(meta, TN_F32, 0, NULL)),
          "tensor(..., device='meta', size=())");
}

static void a_gradient_or_its_origin_is_shown(void **state) {
    tni_device *d = open_as_cpu();
    TN_SCOPE;
    float one = 1;
    tn_tensor *t = tn_from_data(&one, TN_SHAPE(1), TN_F32, d->id);
    tni_node_type type = {.name = "MulBackward"};
    tni_node node = {.refs = 1, .type = &type};
    tni_autograd history = {.requires_grad = true};
    t->autograd = &history;
    check(t, "tensor([1.], requires_grad=True)");
    history = (tni_autograd){.node = &node};
    check(t, "tensor([1.], grad_fn=<MulBackward>)");
    d->is_cpu = false;
    check(t, "tensor([1.], device='fake:0', grad_fn=<MulBackward>)");
    t->autograd = NULL;
}

static void printing_writes_a_line_to_standard_output(void **state) {
    tni_device *d = open_as_cpu();
    TN_SCOPE;
    char line[64] = "";
    tn_tensor *t = counting(d, TN_SHAPE(2));
    fflush(stdout);
    FILE *file = tmpfile();
    int before = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    tn_status status = tn_print(t);
    dup2(before, STDOUT_FILENO);
    close(before);
    rewind(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_int_equal(status, TN_OK);
    assert_string_equal(line, "tensor([0, 1])\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(floats_share_one_format),
        TEST(a_wide_range_is_scientific),
        TEST(what_is_not_finite_has_no_say_in_the_format),
        TEST(scalars_have_no_brackets),
        TEST(integers_and_bools_are_aligned),
        TEST(dtypes_are_named_unless_they_show),
        TEST(dimensions_are_nested),
        TEST(empty_tensors_tell_their_size_and_dtype),
        TEST(long_vectors_are_wrapped_at_80_columns),
        TEST(more_than_a_thousand_elements_are_summarised),
        TEST(a_large_tensor_is_read_at_its_edges),
        TEST(views_print_what_they_show),
        TEST(suffixes_follow_in_order_and_wrap),
        TEST(a_gradient_or_its_origin_is_shown),
        TEST(printing_writes_a_line_to_standard_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
