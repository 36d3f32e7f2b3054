/* Convolutions by cuDNN, on its double: what is handed to it, which engines are taken, and what comes
 * of calls that fail. */
#include "tests/cuda/libraries_rig.h"

static const tn_dtype dtypes[] = {TN_F32, TN_F16, TN_BF16};
enum { DTYPES = 3 };

typedef enum direction { FORWARD, TO_INPUT, TO_WEIGHT, DIRECTIONS } direction;
enum { X, W, Y };

/* How a tensor lies: as its sizes have it, with channels last, or with gaps. */
typedef enum form { NCHW, NHWC, GAPS } form;

typedef struct convolution {
    direction direction;
    tn_dtype dtype;
    int64_t images, channels, outs, groups;
    int64_t in[2], kernel[2], stride[2], padding[2], dilation[2];
    form form;
    int64_t offset; /* of each tensor, in elements */
    bool has_bias;
} convolution;

static const convolution plain = {.dtype = TN_F32,
                                  .images = 2,
                                  .channels = 2,
                                  .outs = 3,
                                  .groups = 1,
                                  .in = {5, 6},
                                  .kernel = {3, 2},
                                  .stride = {1, 1},
                                  .dilation = {1, 1}};

static int64_t out_size(const convolution *c, int d) {
    return (c->in[d] + 2 * c->padding[d] - c->dilation[d] * (c->kernel[d] - 1) - 1) / c->stride[d] +
           1;
}

static void sizes_of(const convolution *c, int64_t sizes[3][4]) {
    const int64_t all[3][4] = {{c->images, c->channels, c->in[0], c->in[1]},
                               {c->outs, c->channels / c->groups, c->kernel[0], c->kernel[1]},
                               {c->images, c->outs, out_size(c, 0), out_size(c, 1)}};
    memcpy(sizes, all, sizeof all);
}

/* Slow and obvious, from the definition. */
static void expect(const convolution *c, const double *values[3], const double *bias, double *out) {
    int64_t s[3][4];
    sizes_of(c, s);
    int to = c->direction == FORWARD ? Y : c->direction == TO_INPUT ? X : W;
    int64_t depth = s[W][1], width = c->outs / c->groups;
    for (int64_t i = 0; i < s[to][0] * s[to][1] * s[to][2] * s[to][3]; i++)
        out[i] = bias ? bias[i / (s[Y][2] * s[Y][3]) % c->outs] : 0;
    for (int64_t n = 0; n < s[Y][0]; n++)
        for (int64_t o = 0; o < s[Y][1]; o++)
            for (int64_t p = 0; p < s[Y][2] * s[Y][3]; p++)
                for (int64_t k = 0; k < depth * s[W][2] * s[W][3]; k++) {
                    int64_t tap = k % (s[W][2] * s[W][3]), channel = k / (s[W][2] * s[W][3]);
                    int64_t h = p / s[Y][3] * c->stride[0] + tap / s[W][3] * c->dilation[0] -
                                c->padding[0],
                            w = p % s[Y][3] * c->stride[1] + tap % s[W][3] * c->dilation[1] -
                                c->padding[1];
                    if (h < 0 || h >= s[X][2] || w < 0 || w >= s[X][3])
                        continue;
                    int64_t at[3] = {
                        ((n * c->channels + o / width * depth + channel) * s[X][2] + h) * s[X][3] +
                            w,
                        o * depth * s[W][2] * s[W][3] + k,
                        (n * c->outs + o) * s[Y][2] * s[Y][3] + p};
                    int a = to == X ? W : X, b = to == Y ? W : Y;
                    out[at[to]] += values[a][at[a]] * values[b][at[b]];
                }
}

static rig_tensor tensor(mini *m, const convolution *c, const int64_t *sizes, unsigned seed) {
    int64_t nchw[] = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1},
            nhwc[] = {sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1]},
            gaps[] = {2 * nchw[0], 2 * nchw[1], 2 * nchw[2], 2};
    return rig_make(m, c->dtype, 4, sizes,
                    c->form == NCHW   ? nchw
                    : c->form == NHWC ? nhwc
                                      : gaps,
                    c->offset, seed);
}

static const char *const ops[] = {"convolution", "convolution_backward_input",
                                  "convolution_backward_weight"};

/* Computes it by the first record, and compares; the record's status. */
static tn_status compute(mini *m, const convolution *c) {
    int64_t s[3][4];
    sizes_of(c, s);
    rig_tensor t[3], bias = {NULL, NULL};
    for (int i = 0; i < 3; i++)
        t[i] = tensor(m, c, s[i], (unsigned)i + 5);
    if (c->has_bias)
        bias = rig_make(m, c->dtype, 1, &c->outs, NULL, 0, 21);
    int to = c->direction == FORWARD ? Y : c->direction == TO_INPUT ? X : W;
    const tn_kernel *kernel = mini_find(m, ops[c->direction], c->dtype, TN_DTYPE_NONE);
    assert_non_null(kernel);
    tn_cell first = mini_view(t[c->direction == FORWARD ? X : Y].t),
            second = mini_view(t[c->direction == TO_WEIGHT ? X : W].t),
            third = c->direction == FORWARD ? mini_view(bias.t) : mini_ints(s[to], 4);
    tn_cell args[] = {first,
                      second,
                      third,
                      mini_ints(c->stride, 2),
                      mini_ints(c->padding, 2),
                      mini_ints(c->dilation, 2),
                      mini_i64(c->groups)};
    tn_status status = mini_run(m, kernel, 7, args, 1, (mini_tensor *[]){t[to].t});
    const double *values[] = {t[X].values, t[W].values, t[Y].values};
    double *expected = malloc((size_t)t[to].t->view.numel * sizeof *expected);
    expect(c, values, bias.values, expected);
    rig_compare(m, &t[to], status == TN_OK ? expected : t[to].values);
    free(expected);
    for (int i = 0; i < 3; i++)
        rig_free(&t[i]);
    rig_free(&bias);
    return status;
}

/* ---- shapes ------------------------------------------------------------------------------ */

static void every_direction_dtype_and_layout(void **state) {
    mini m;
    rig_open(&m);
    for (direction d = FORWARD; d < DIRECTIONS; d++)
        for (int i = 0; i < DTYPES; i++)
            for (form f = NCHW; f <= NHWC; f++) {
                convolution c = plain;
                c.direction = d;
                c.dtype = dtypes[i];
                c.form = f;
                assert_ok(compute(&m, &c));
            }
    rig_close(&m);
}

static void strides_padding_dilation_and_groups(void **state) {
    static const convolution cases[] = {
        {.images = 1,
         .channels = 4,
         .outs = 6,
         .groups = 2,
         .in = {7, 5},
         .kernel = {3, 3},
         .stride = {2, 1},
         .padding = {1, 2},
         .dilation = {1, 1}},
        {.images = 2,
         .channels = 3,
         .outs = 3,
         .groups = 3,
         .in = {6, 6},
         .kernel = {2, 3},
         .stride = {1, 2},
         .padding = {0, 1},
         .dilation = {2, 1}},
        {.images = 3,
         .channels = 1,
         .outs = 2,
         .groups = 1,
         .in = {4, 4},
         .kernel = {1, 1},
         .stride = {3, 3},
         .dilation = {1, 1}},
        {.images = 1,
         .channels = 2,
         .outs = 2,
         .groups = 1,
         .in = {5, 5},
         .kernel = {2, 2},
         .stride = {2, 2},
         .dilation = {1, 1}}, /* the last row and column are seen by nothing */
        {.images = 1,
         .channels = 2,
         .outs = 1,
         .groups = 1,
         .in = {2, 3},
         .kernel = {3, 3},
         .stride = {1, 1},
         .padding = {2, 2},
         .dilation = {1, 2}},
    };
    mini m;
    rig_open(&m);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (direction d = FORWARD; d < DIRECTIONS; d++) {
            convolution c = cases[i];
            c.direction = d;
            assert_ok(compute(&m, &c));
        }
    rig_close(&m);
}

/* cuDNN has engines for such tensors, of which one was wrong. */
static void what_does_not_lie_dense_is_not_asked_for(void **state) {
    mini m;
    rig_open(&m);
    convolution c = plain;
    c.form = GAPS;
    for (direction d = FORWARD; d < DIRECTIONS; d++) {
        c.direction = d;
        assert_int_equal(compute(&m, &c), TN_ERR_UNSUPPORTED);
    }
    assert_int_equal(cudnn_double_calls(NULL), 0);
    rig_close(&m);
}

static void what_the_engines_cannot_is_declined_and_asked_once(void **state) {
    mini m;
    rig_open(&m);
    convolution c = plain;
    c.dtype = TN_F16;
    c.channels = c.outs = 4;
    c.groups = 2;
    c.has_bias = true; /* which f32 may get afterwards */
    assert_int_equal(compute(&m, &c), TN_ERR_UNSUPPORTED);
    cudnn_double_configure("");
    assert_int_equal(compute(&m, &c), TN_ERR_UNSUPPORTED);
    assert_int_equal(cudnn_double_calls(NULL), 0);
    rig_close(&m);
}

static void f64_is_left_to_our_own(void **state) {
    mini m;
    rig_open(&m);
    for (direction d = FORWARD; d < DIRECTIONS; d++)
        assert_non_null(mini_find(&m, ops[d], TN_F64, TN_DTYPE_NONE));
    const tn_kernel *kernel = mini_find(&m, ops[FORWARD], TN_F64, TN_DTYPE_NONE),
                    *of_library = mini_find(&m, ops[FORWARD], TN_F32, TN_DTYPE_NONE);
    assert_ptr_not_equal(kernel, of_library);
    rig_close(&m);
}

/* ---- engines ----------------------------------------------------------------------------- */

/* The first engine would give other bits each time, the second factors of 10 bits; neither is taken.
 * Halves lose nothing to tensor cores. */
static void engines_are_those_that_compute_as_a_kernel_is_to(void **state) {
    mini m;
    rig_open(&m);
    for (direction d = FORWARD; d < DIRECTIONS; d++)
        for (int i = 0; i < DTYPES; i++) {
            convolution c = plain;
            c.direction = d;
            c.dtype = dtypes[i];
            assert_ok(compute(&m, &c));
            assert_string_equal(cudnn_double_last(),
                                dtypes[i] == TN_F32 ? "plain" : "tensor cores");
        }
    rig_close(&m);
}

static void tf32_is_used_where_it_is_allowed(void **state) {
    mini m;
    mini_option("tf32", "1");
    rig_open(&m);
    assert_ok(compute(&m, &plain));
    assert_string_equal(cudnn_double_last(), "tf32");
    rig_close(&m);
}

/* Tensor cores want addresses of 16 bytes; another engine does not. */
static void alignments_are_told_apart(void **state) {
    mini m;
    rig_open(&m);
    for (int64_t offset = 0; offset < 9; offset++) {
        convolution c = plain;
        c.dtype = TN_F16;
        c.offset = offset;
        assert_ok(compute(&m, &c));
        assert_string_equal(cudnn_double_last(), offset % 8 ? "plain" : "tensor cores");
        c.has_bias = true;
        assert_ok(compute(&m, &c));
    }
    rig_close(&m);
}

/* One that says nothing of itself adds up in halves, for the gradient of the input in f16. */
static void f16_is_not_added_up_in_halves(void **state) {
    mini m;
    rig_open(&m);
    for (int i = 1; i < DTYPES; i++) {
        convolution c = plain;
        c.direction = TO_INPUT;
        c.dtype = dtypes[i];
        c.offset = 1; /* no tensor cores */
        assert_ok(compute(&m, &c));
        assert_string_equal(cudnn_double_last(), dtypes[i] == TN_F16 ? "last resort" : "plain");
    }
    rig_close(&m);
}

static void a_bias_is_part_of_the_graph(void **state) {
    mini m;
    rig_open(&m);
    for (int i = 0; i < DTYPES; i++) {
        convolution c = plain;
        c.dtype = dtypes[i];
        c.has_bias = true;
        assert_ok(compute(&m, &c));
        assert_string_equal(cudnn_double_last(), "bias");
    }
    rig_close(&m);
}

/* No engine of the double adds a bias to f32 in groups: our own kernel does, in the same stream. */
static void a_bias_that_no_engine_adds_is_added_to_f32(void **state) {
    mini m;
    rig_open(&m);
    convolution c = plain;
    c.channels = c.outs = 4;
    c.groups = 2;
    c.has_bias = true;
    uint64_t before = double_kernels();
    tn_status status = compute(&m, &c);
    if (status == TN_ERR_NOT_FOUND) { /* no NVRTC */
        rig_close(&m);
        skip();
    }
    assert_ok(status);
    assert_int_equal(double_kernels(), before + 1);
    assert_string_equal(cudnn_double_last(), "plain");
    rig_close(&m);
}

/* ---- plans ------------------------------------------------------------------------------- */

static void a_convolution_that_is_known_is_executed(void **state) {
    mini m;
    rig_open(&m);
    assert_ok(compute(&m, &plain));
    cudnn_double_configure("");
    assert_ok(compute(&m, &plain));
    assert_int_equal(cudnn_double_calls("cudnnBackendExecute"), 1);
    assert_int_equal(cudnn_double_calls("cudnnSetStream"), 1);
    /* The pack of its addresses. */
    assert_int_equal(cudnn_double_calls("cudnnBackendCreateDescriptor"), 1);
    assert_int_equal(cudnn_double_calls("cudnnBackendSetAttribute"), 3);
    assert_int_equal(cudnn_double_calls("cudnnBackendFinalize"), 1);
    assert_int_equal(cudnn_double_calls("cudnnBackendDestroyDescriptor"), 1);
    assert_int_equal(cudnn_double_calls(NULL), 8);
    rig_close(&m);
}

static void a_convolution_is_recorded_and_run_again(void **state) {
    mini m;
    rig_open(&m);
    const convolution *c = &plain;
    int64_t s[3][4];
    sizes_of(c, s);
    rig_tensor t[3];
    for (int i = 0; i < 3; i++)
        t[i] = tensor(&m, c, s[i], (unsigned)i);
    tn_cell args[] = {mini_view(t[X].t),       mini_view(t[W].t),        mini_none(),
                      mini_ints(c->stride, 2), mini_ints(c->padding, 2), mini_ints(c->dilation, 2),
                      mini_i64(c->groups)};
    rig_replay(&m, mini_find(&m, ops[FORWARD], TN_F32, TN_DTYPE_NONE), 7, args, &t[Y], &t[X], 3);
    assert_int_equal(cudnn_double_calls("cudnnBackendExecute"), 1);
    const double *values[] = {t[X].values, t[W].values, t[Y].values};
    double expected[RIG_MAX / 16];
    expect(c, values, NULL, expected);
    rig_compare(&m, &t[Y], expected);
    for (int i = 0; i < 3; i++)
        rig_free(&t[i]);
    rig_close(&m);
}

/* Its plans may own code that queued work needs, so that none is made for one call. */
static void where_there_is_no_room_nothing_is_planned(void **state) {
    enum { SHAPES = 770, KEPT = 768 };
    mini m;
    rig_open(&m);
    for (int64_t i = 1; i <= SHAPES; i++) {
        convolution c = {.dtype = TN_F32,
                         .images = i,
                         .channels = 1,
                         .outs = 1,
                         .groups = 1,
                         .in = {1, 1},
                         .kernel = {1, 1},
                         .stride = {1, 1},
                         .dilation = {1, 1}};
        assert_int_equal(compute(&m, &c), i <= KEPT ? TN_OK : TN_ERR_UNSUPPORTED);
        mini_tensors_free(&m);
    }
    rig_close(&m);
}

/* ---- what is missing or fails ------------------------------------------------------------ */

static void the_first_convolution_opens_the_library(void **state) {
    mini m;
    rig_open(&m);
    assert_int_equal(cudnn_double_calls(NULL), 0);
    assert_ok(compute(&m, &plain));
    assert_ok(compute(&m, &plain));
    assert_int_equal(cudnn_double_calls("cudnnGetVersion"), 1);
    rig_close(&m);
}

/* Without the library its records leave each call to the next; the first says why. */
static void assert_left_out(const char *why) {
    mini m;
    rig_open(&m);
    size_t logged = strlen(mini_log());
    assert_int_equal(compute(&m, &plain), TN_ERR_UNSUPPORTED);
    assert_text(rig_logged(logged), "cuda:0: convolutions are our own, without cuDNN: ");
    assert_text(rig_logged(logged), why);
    logged = strlen(mini_log());
    assert_int_equal(compute(&m, &plain), TN_ERR_UNSUPPORTED);
    assert_string_equal(rig_logged(logged), "");
    assert_int_equal(cudnn_double_calls("cudnnCreate"), 0);
    rig_close(&m);
}

static void a_library_that_will_not_do_is_left_out(void **state) {
    mini_option("cudnn", "off");
    assert_left_out("switched off (TENON_CUDA_CUDNN)");
    mini_option("cudnn", "/nowhere/libcudnn.so");
    assert_left_out("/nowhere/libcudnn.so");
    mini_option("cudnn", rig_blaslt); /* another library */
    assert_left_out("it has no cudnnGetVersion");
    mini_option("cudnn", rig_dnn);
    cudnn_double_configure("version=8902");
    assert_left_out("it is of version 8902; 9 (90000) or later is needed");
}

static const char *const functions[] = {
    "cudnnCreate",
    "cudnnBackendCreateDescriptor",
    "cudnnBackendSetAttribute",
    "cudnnBackendGetAttribute",
    "cudnnBackendFinalize",
    "cudnnSetStream",
    "cudnnBackendExecute",
};

/* Each call fails once: while a plan is made the next record takes the call, or another engine; what
 * is queued fails so that the caller is told. What comes after is as if nothing had been. */
static void each_call_may_fail(void **state) {
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
        for (int n = 1;; n++) {
            mini m;
            char words[100];
            rig_open(&m);
            snprintf(words, sizeof words, "fail=%s:%d:4000", functions[f], n); /* INTERNAL_ERROR */
            cudnn_double_configure(words);
            convolution c = plain;
            c.dtype = TN_F16;
            c.has_bias = true;
            tn_status status = compute(&m, &c);
            bool failed = cudnn_double_calls(functions[f]) >= (uint64_t)n;
            if (status == TN_ERR_INTERNAL) {
                assert_text(mini_error(), "CUDNN_STATUS_INTERNAL_ERROR");
                assert_int_equal(cudnn_double_calls("cudnnSetStream"), 1); /* it was in run */
            } else if (status != TN_OK) {
                assert_int_equal(status, TN_ERR_UNSUPPORTED);
                assert_int_equal(cudnn_double_calls("cudnnSetStream"), 0);
            }
            cudnn_double_configure("");
            assert_ok(compute(&m, &c));
            rig_close(&m);
            assert_int_equal(cudnn_double_alive(), 0);
            if (!failed)
                break;
        }
}

static void host_memory_may_be_exhausted(void **state) {
    for (int n = 0;; n++) {
        mini m;
        rig_open(&m);
        mini_fail_alloc_after(n);
        tn_status status = compute(&m, &plain);
        mini_fail_alloc_after(-1);
        assert_true(status == TN_OK || status == TN_ERR_OUT_OF_MEMORY);
        assert_ok(compute(&m, &plain));
        rig_close(&m);
        if (status == TN_OK)
            break;
    }
}

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_direction_dtype_and_layout),
        TEST(strides_padding_dilation_and_groups),
        TEST(what_does_not_lie_dense_is_not_asked_for),
        TEST(what_the_engines_cannot_is_declined_and_asked_once),
        TEST(f64_is_left_to_our_own),
        TEST(engines_are_those_that_compute_as_a_kernel_is_to),
        TEST(f16_is_not_added_up_in_halves),
        TEST(tf32_is_used_where_it_is_allowed),
        TEST(alignments_are_told_apart),
        TEST(a_bias_is_part_of_the_graph),
        TEST(a_bias_that_no_engine_adds_is_added_to_f32),
        TEST(a_convolution_that_is_known_is_executed),
        TEST(a_convolution_is_recorded_and_run_again),
        TEST(where_there_is_no_room_nothing_is_planned),
        TEST(the_first_convolution_opens_the_library),
        TEST(a_library_that_will_not_do_is_left_out),
        TEST(each_call_may_fail),
        TEST(host_memory_may_be_exhausted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
