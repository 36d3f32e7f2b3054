/* Products by cuBLASLt, on its double: what is handed to it, what is left to our own kernels, and
 * what comes of calls that fail. */
#include "tests/cuda/libraries_rig.h"

#include <pthread.h>

static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
enum { DTYPES = 4 };

/* How a matrix lies: in rows, in columns, in rows with gaps behind them, with gaps in the rows too,
 * or as one for the whole batch. */
typedef enum form { ROWS, COLUMNS, WIDE, SPARSE, SHARED, FORMS } form;

static rig_tensor matrix(mini *m, tn_dtype dtype, form f, int64_t batch, int64_t rows,
                         int64_t columns, int64_t offset, unsigned seed) {
    int64_t sizes[] = {batch, rows, columns}, strides[] = {rows * columns, columns, 1};
    if (f == COLUMNS) {
        strides[1] = 1;
        strides[2] = rows;
    } else if (f == WIDE || f == SPARSE) {
        strides[2] = f == SPARSE ? 2 : 1;
        strides[1] = (columns + 3) * strides[2];
        strides[0] = rows * strides[1] + 5;
    } else if (f == SHARED) {
        strides[0] = 0;
    }
    int skip = batch == 0; /* a matrix without a batch */
    return rig_make(m, dtype, 3 - skip, sizes + skip, strides + skip, offset, seed);
}

typedef struct product {
    tn_dtype dtype;
    int64_t batch, rows, depth, columns; /* batch 0: addmm */
    form self, mat1, mat2, out;
    int64_t offset; /* of each, in elements */
    double beta, alpha;
} product;

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static void expect(const product *p, const double *s, const double *x, const double *y,
                   double *out) {
    for (int64_t b = 0; b < larger(p->batch, 1); b++)
        for (int64_t i = 0; i < p->rows; i++)
            for (int64_t j = 0; j < p->columns; j++) {
                int64_t at = (b * p->rows + i) * p->columns + j;
                double sum = 0;
                for (int64_t k = 0; k < p->depth; k++)
                    sum += x[(b * p->rows + i) * p->depth + k] *
                           y[(b * p->depth + k) * p->columns + j];
                out[at] = p->alpha * sum + (s && p->beta != 0 ? p->beta * s[at] : 0);
            }
}

/* Computes it by the first record, and compares; the record's status. `self` replaces the addend. */
static tn_status compute(mini *m, const product *p, const rig_tensor *self) {
    rig_tensor x =
        matrix(m, p->dtype, p->mat1, p->batch, p->rows, p->depth, p->offset, (unsigned)p->depth);
    rig_tensor y = matrix(m, p->dtype, p->mat2, p->batch, p->depth, p->columns, p->offset, 7);
    rig_tensor out = matrix(m, p->dtype, p->out, p->batch, p->rows, p->columns, p->offset, 9);
    rig_tensor own = {NULL, NULL};
    const char *op = p->batch ? "bmm" : "addmm";
    const tn_kernel *kernel = mini_find(m, op, p->dtype, TN_DTYPE_NONE);
    assert_non_null(kernel);
    if (!p->batch && !self) {
        own = matrix(m, p->dtype, p->self, 0, p->rows, p->columns, p->offset, 11);
        self = &own;
    }
    tn_cell bmm[] = {mini_view(x.t), mini_view(y.t)},
            addmm[] = {mini_view(self ? self->t : NULL), mini_view(x.t), mini_view(y.t),
                       mini_f64(p->beta), mini_f64(p->alpha)};
    tn_status status =
        mini_run(m, kernel, p->batch ? 2 : 5, p->batch ? bmm : addmm, 1, (mini_tensor *[]){out.t});
    double *expected = malloc((size_t)out.t->view.numel * sizeof *expected);
    expect(p, p->batch ? NULL : self->values, x.values, y.values, expected);
    rig_compare(m, &out, status == TN_OK ? expected : out.values);
    free(expected);
    rig_free(&x);
    rig_free(&y);
    rig_free(&out);
    rig_free(&own);
    return status;
}

/* [0, 1] strides: a row for every row. */
static rig_tensor row(mini *m, tn_dtype dtype, int64_t rows, int64_t columns) {
    return rig_make(m, dtype, 2, (int64_t[]){rows, columns}, (int64_t[]){0, 1}, 0, 13);
}

/* ---- layouts ----------------------------------------------------------------------------- */

static void batches_lie_in_rows_or_columns(void **state) {
    mini m;
    rig_open(&m);
    for (int d = 0; d < DTYPES; d++)
        for (form x = ROWS; x < FORMS; x++)
            for (form y = ROWS; y < FORMS; y++)
                for (form out = ROWS; out < SPARSE; out++) {
                    if (x == SPARSE || y == SPARSE)
                        continue;
                    product p = {.dtype = dtypes[d],
                                 .batch = 3,
                                 .rows = 5,
                                 .depth = 4,
                                 .columns = 6,
                                 .mat1 = x,
                                 .mat2 = y,
                                 .out = out,
                                 .alpha = 1};
                    assert_ok(compute(&m, &p, NULL));
                }
    rig_close(&m);
}

static void addends_lie_as_the_output_does(void **state) {
    mini m;
    rig_open(&m);
    for (int d = 0; d < DTYPES; d++)
        for (form x = ROWS; x < SPARSE; x++)
            for (form out = ROWS; out < SPARSE; out++) {
                product p = {.dtype = dtypes[d],
                             .rows = 3,
                             .depth = 5,
                             .columns = 4,
                             .self = out == COLUMNS ? COLUMNS : WIDE,
                             .mat1 = x,
                             .mat2 = x,
                             .out = out,
                             .beta = 2,
                             .alpha = -1};
                assert_ok(compute(&m, &p, NULL));
            }
    rig_close(&m);
}

static void what_there_is_once_lies_as_it_likes(void **state) {
    static const int64_t shapes[][4] = {{1, 1, 1, 1}, {2, 1, 3, 1}, {1, 4, 1, 3},
                                        {2, 1, 1, 5}, {1, 5, 2, 1}, {3, 2, 1, 1}};
    mini m;
    rig_open(&m);
    for (int i = 0; i < 6; i++)
        for (form f = ROWS; f < SPARSE; f++) {
            product p = {.dtype = TN_F32,
                         .batch = shapes[i][0],
                         .rows = shapes[i][1],
                         .depth = shapes[i][2],
                         .columns = shapes[i][3],
                         .mat1 = f,
                         .mat2 = f,
                         .out = f,
                         .alpha = 1};
            assert_ok(compute(&m, &p, NULL));
            p.batch = 0;
            p.self = f;
            p.beta = 1;
            assert_ok(compute(&m, &p, NULL));
        }
    rig_close(&m);
}

static void other_strides_are_declined(void **state) {
    mini m;
    rig_open(&m);
    product p = {.dtype = TN_F32, .batch = 2, .rows = 3, .depth = 4, .columns = 5, .alpha = 1};
    product sparse_factor = p, sparse_out = p, sparse_self = p;
    sparse_factor.mat1 = SPARSE;
    sparse_out.out = SPARSE;
    sparse_self.batch = 0;
    sparse_self.beta = 1;
    sparse_self.self = SPARSE;
    assert_int_equal(compute(&m, &sparse_factor, NULL), TN_ERR_UNSUPPORTED);
    assert_int_equal(compute(&m, &sparse_out, NULL), TN_ERR_UNSUPPORTED);
    assert_int_equal(compute(&m, &sparse_self, NULL), TN_ERR_UNSUPPORTED);
    assert_int_equal(cublaslt_double_calls("cublasLtMatmul"), 0);
    rig_close(&m);
}

/* The double tells where the library was promised more. */
static void alignments_are_told_apart(void **state) {
    mini m;
    rig_open(&m);
    for (int64_t offset = 0; offset < 9; offset++)
        for (int d = 0; d < DTYPES; d++) {
            product p = {.dtype = dtypes[d],
                         .rows = 4,
                         .depth = 8,
                         .columns = 8,
                         .beta = 1,
                         .alpha = 1,
                         .offset = offset};
            assert_ok(compute(&m, &p, NULL));
        }
    rig_close(&m);
}

/* ---- numbers ----------------------------------------------------------------------------- */

static void a_row_is_added_as_a_bias(void **state) {
    mini m;
    rig_open(&m);
    for (int d = 0; d < DTYPES; d++) {
        product p = {
            .dtype = dtypes[d], .rows = 3, .depth = 4, .columns = 5, .beta = 1, .alpha = 2};
        rig_tensor self = row(&m, dtypes[d], 3, 5);
        if (dtypes[d] == TN_F64) { /* which the library has no bias for */
            assert_int_equal(compute(&m, &p, &self), TN_ERR_UNSUPPORTED);
        } else {
            assert_ok(compute(&m, &p, &self));
            assert_string_equal(cublaslt_double_last(), "bias");
        }
        rig_free(&self);
    }
    rig_close(&m);
}

/* The double, as most of the library's algorithms, adds a bias to the rounded sum where it cuts sums. */
static void a_bias_of_halves_is_copied_where_sums_are_split(void **state) {
    mini m;
    rig_open(&m);
    for (int d = 0; d < DTYPES; d++) {
        product p = {
            .dtype = dtypes[d], .rows = 3, .depth = 80, .columns = 5, .beta = 1, .alpha = 1};
        if (dtypes[d] == TN_F64)
            continue;
        rig_tensor self = row(&m, dtypes[d], 3, 5);
        uint64_t before = double_kernels();
        tn_status status = compute(&m, &p, &self);
        rig_free(&self);
        if (status == TN_ERR_NOT_FOUND) /* no NVRTC */
            break;
        assert_ok(status);
        assert_string_equal(cublaslt_double_last(), "in parts");
        assert_int_equal(double_kernels(), before + (dtypes[d] != TN_F32));
    }
    rig_close(&m);
}

static void rows_that_are_no_bias_are_declined(void **state) {
    mini m;
    rig_open(&m);
    product p = {.dtype = TN_F32, .rows = 3, .depth = 4, .columns = 5, .beta = 2, .alpha = 1};
    rig_tensor self = row(&m, TN_F32, 3, 5);
    assert_int_equal(compute(&m, &p, &self), TN_ERR_UNSUPPORTED);
    p.beta = 1;
    p.out = COLUMNS; /* to whose columns a row is nothing */
    assert_int_equal(compute(&m, &p, &self), TN_ERR_UNSUPPORTED);
    rig_free(&self);
    rig_close(&m);
}

static void with_beta_0_self_is_not_read(void **state) {
    mini m;
    rig_open(&m);
    product p = {.dtype = TN_F32, .rows = 3, .depth = 4, .columns = 5, .beta = 0, .alpha = 1};
    rig_tensor self = matrix(&m, TN_F32, ROWS, 0, 3, 5, 0, 1);
    rig_fill(&m, &self, (double)__builtin_nanf(""));
    assert_ok(compute(&m, &p, &self));
    rig_free(&self);
    rig_close(&m);
}

/* The library would not look at self, which may be NaN. */
static void a_beta_that_is_0_to_the_library_is_declined(void **state) {
    mini m;
    rig_open(&m);
    product p = {.dtype = TN_F32, .rows = 3, .depth = 4, .columns = 5, .beta = 1e-60, .alpha = 1};
    assert_int_equal(compute(&m, &p, NULL), TN_ERR_UNSUPPORTED);
    rig_close(&m);
}

static void long_sums_are_split_in_a_fixed_order(void **state) {
    mini m;
    rig_open(&m);
    product p = {.dtype = TN_F32, .batch = 2, .rows = 3, .depth = 200, .columns = 5, .alpha = 1};
    assert_ok(compute(&m, &p, NULL));
    assert_string_equal(cublaslt_double_last(), "in parts");
    rig_close(&m);
}

static void tf32_is_used_where_it_is_allowed(void **state) {
    static const char *const values[] = {NULL, "0", "1"};
    for (int i = 0; i < 3; i++) {
        mini m;
        mini_option("tf32", values[i]);
        rig_open(&m);
        product p = {.dtype = TN_F32, .batch = 2, .rows = 3, .depth = 4, .columns = 5, .alpha = 1};
        assert_ok(compute(&m, &p, NULL));
        assert_string_equal(cublaslt_double_last(), i == 2 ? "tf32" : "");
        rig_close(&m);
    }
}

/* ---- plans ------------------------------------------------------------------------------- */

static void a_product_that_is_known_is_one_call(void **state) {
    mini m;
    rig_open(&m);
    product p = {.dtype = TN_F32, .rows = 3, .depth = 4, .columns = 5, .beta = 1, .alpha = 1};
    rig_tensor self = row(&m, TN_F32, 3, 5), other = row(&m, TN_F32, 3, 5);
    assert_ok(compute(&m, &p, NULL));
    assert_ok(compute(&m, &p, &self));
    cublaslt_double_configure("");
    assert_ok(compute(&m, &p, NULL));
    assert_int_equal(cublaslt_double_calls(NULL), 1);
    assert_ok(compute(&m, &p, &self)); /* the same bias as before */
    assert_int_equal(cublaslt_double_calls(NULL), 2);
    assert_ok(compute(&m, &p, &other)); /* whose address is told */
    assert_int_equal(cublaslt_double_calls(NULL), 4);
    rig_free(&self);
    rig_free(&other);
    rig_close(&m);
}

static void what_the_library_cannot_do_is_asked_once(void **state) {
    mini m;
    rig_open(&m);
    product p = {.dtype = TN_F64, .rows = 3, .depth = 4, .columns = 5, .beta = 1, .alpha = 1};
    rig_tensor self = row(&m, TN_F64, 3, 5);
    assert_int_equal(compute(&m, &p, &self), TN_ERR_UNSUPPORTED);
    cublaslt_double_configure("");
    assert_int_equal(compute(&m, &p, &self), TN_ERR_UNSUPPORTED);
    assert_int_equal(cublaslt_double_calls(NULL), 0);
    rig_free(&self);
    rig_close(&m);
}

static void plans_that_find_no_room_serve_one_call(void **state) {
    enum { SHAPES = 800 };
    mini m;
    rig_open(&m);
    for (int64_t i = 1; i <= SHAPES; i++) {
        product p = {.dtype = TN_F32, .batch = 1, .rows = i, .depth = 1, .columns = 1, .alpha = 1};
        assert_ok(compute(&m, &p, NULL));
        mini_tensors_free(&m);
    }
    int64_t alive = cublaslt_double_alive();
    product last = {
        .dtype = TN_F32, .batch = 1, .rows = SHAPES, .depth = 1, .columns = 1, .alpha = 1};
    assert_ok(compute(&m, &last, NULL));
    assert_int_equal(cublaslt_double_alive(), alive);
    rig_close(&m);
}

static void a_call_that_does_not_follow_is_abandoned(void **state) {
    mini m;
    rig_open(&m);
    const tn_kernel *kernel = mini_find(&m, "bmm", TN_F32, TN_DTYPE_NONE);
    rig_tensor x = matrix(&m, TN_F32, ROWS, 2, 3, 3, 0, 1),
               out = matrix(&m, TN_F32, ROWS, 2, 3, 3, 0, 2);
    const tn_tensor_view *outs[] = {&out.t->view};
    tn_cell args[] = {mini_view(x.t), mini_view(x.t)};
    tn_plan plan = {.struct_size = sizeof plan};
    tn_call call = {.struct_size = sizeof call,
                    .device = m.device,
                    .stream = m.stream,
                    .user = kernel->user,
                    .args = args,
                    .outs = outs,
                    .n_args = 2,
                    .n_outs = 1};
    assert_ok(kernel->prepare(&call, &plan));
    call.cookie = plan.cookie;
    kernel->abandon(&call);
    rig_free(&x);
    rig_free(&out);
    rig_close(&m);
}

static void a_product_is_recorded_and_run_again(void **state) {
    mini m;
    rig_open(&m);
    product p = {.dtype = TN_F32, .rows = 3, .depth = 100, .columns = 5, .beta = 1, .alpha = 1};
    rig_tensor self = row(&m, TN_F32, 3, 5), x = matrix(&m, TN_F32, ROWS, 0, 3, 100, 0, 1),
               y = matrix(&m, TN_F32, ROWS, 0, 100, 5, 0, 2),
               out = matrix(&m, TN_F32, ROWS, 0, 3, 5, 0, 3);
    tn_cell args[] = {mini_view(self.t), mini_view(x.t), mini_view(y.t), mini_f64(1), mini_f64(1)};
    double expected[15];
    rig_replay(&m, mini_find(&m, "addmm", TN_F32, TN_DTYPE_NONE), 5, args, &out, &x, 2);
    assert_int_equal(cublaslt_double_calls("cublasLtMatmul"), 1);
    expect(&p, self.values, x.values, y.values, expected);
    rig_compare(&m, &out, expected);
    rig_free(&self);
    rig_free(&x);
    rig_free(&y);
    rig_free(&out);
    rig_close(&m);
}

/* ---- threads ----------------------------------------------------------------------------- */

enum { THREADS = 4, CALLS = 100 };

typedef struct worker {
    mini *m;
    tn_stream_impl *stream;
    rig_tensor self, out;
    rig_tensor *x;
    tn_status status;
} worker;

static void *work(void *arg) {
    worker *w = arg;
    const tn_kernel *kernel = mini_find(w->m, "addmm", TN_F32, TN_DTYPE_NONE);
    const tn_tensor_view *outs[] = {&w->out.t->view};
    tn_cell args[] = {mini_view(w->self.t), mini_view(w->x->t), mini_view(w->x->t), mini_f64(1),
                      mini_f64(1)};
    for (int i = 0; i < CALLS && w->status == TN_OK; i++) {
        tn_plan plan = {.struct_size = sizeof plan};
        tn_call call = {.struct_size = sizeof call,
                        .device = w->m->device,
                        .stream = w->stream,
                        .user = kernel->user,
                        .args = args,
                        .outs = outs,
                        .n_args = 5,
                        .n_outs = 1};
        w->status = kernel->prepare(&call, &plan);
        call.cookie = plan.cookie;
        if (w->status == TN_OK)
            w->status = kernel->run(&call);
    }
    if (w->status == TN_OK)
        w->status = w->m->ops->streams->synchronize(w->stream);
    return NULL;
}

static void threads_add_their_own_bias(void **state) {
    mini m;
    worker workers[THREADS];
    pthread_t threads[THREADS];
    rig_open(&m);
    rig_tensor x = matrix(&m, TN_F32, ROWS, 0, 5, 5, 0, 1);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.m = &m,
                              .x = &x,
                              .self = row(&m, TN_F32, 5, 5),
                              .out = matrix(&m, TN_F32, ROWS, 0, 5, 5, 0, 3)};
        rig_fill(&m, &workers[i].self, i);
        assert_ok(m.ops->streams->create(m.device, 0, &workers[i].stream));
    }
    assert_ok(mini_synchronize(&m));
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &workers[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        product p = {.dtype = TN_F32, .rows = 5, .depth = 5, .columns = 5, .beta = 1, .alpha = 1};
        double expected[25];
        assert_int_equal(workers[i].status, TN_OK);
        expect(&p, workers[i].self.values, x.values, x.values, expected);
        rig_compare(&m, &workers[i].out, expected);
        m.ops->streams->destroy(workers[i].stream);
        rig_free(&workers[i].self);
        rig_free(&workers[i].out);
    }
    rig_free(&x);
    rig_close(&m);
}

/* ---- what is missing or fails ------------------------------------------------------------ */

static const product small = {
    .dtype = TN_F32, .batch = 2, .rows = 3, .depth = 4, .columns = 5, .alpha = 1};

/* Mapping it takes longer than a device's opening may, and a program may have no products. */
static void the_first_product_opens_the_library(void **state) {
    mini m;
    rig_open(&m);
    assert_int_equal(cublaslt_double_calls(NULL), 0);
    assert_ok(compute(&m, &small, NULL));
    assert_ok(compute(&m, &small, NULL));
    assert_int_equal(cublaslt_double_calls("cublasLtGetVersion"), 1);
    rig_close(&m);
}

/* Without the library its records leave each call to the next; the first says why. */
static void assert_left_out(const char *why) {
    mini m;
    rig_open(&m);
    size_t logged = strlen(mini_log());
    assert_int_equal(compute(&m, &small, NULL), TN_ERR_UNSUPPORTED);
    assert_text(rig_logged(logged), "cuda:0: products are our own, without cuBLASLt: ");
    assert_text(rig_logged(logged), why);
    logged = strlen(mini_log());
    assert_int_equal(compute(&m, &small, NULL), TN_ERR_UNSUPPORTED);
    assert_string_equal(rig_logged(logged), "");
    assert_int_equal(cublaslt_double_calls("cublasLtCreate"), 0);
    rig_close(&m);
}

static void a_library_that_will_not_do_is_left_out(void **state) {
    mini_option("cublaslt", "off");
    assert_left_out("switched off (TENON_CUDA_CUBLASLT)");
    mini_option("cublaslt", "/nowhere/libcublasLt.so");
    assert_left_out("/nowhere/libcublasLt.so");
    mini_option("cublaslt", rig_dnn); /* another library */
    assert_left_out("it has no cublasLtGetVersion");
    mini_option("cublaslt", rig_blaslt);
    cublaslt_double_configure("version=111103");
    assert_left_out("it is of version 111103; 12 (120000) or later is needed");
}

static const char *const functions[] = {
    "cublasLtCreate",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmul",
};

/* Each call fails once: what is made ready fails so that the next record takes the call, what is
 * queued fails so that the caller is told. What comes after is as if nothing had been. */
static void each_call_may_fail(void **state) {
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
        for (int n = 1;; n++) {
            mini m;
            char words[100];
            rig_open(&m);
            snprintf(words, sizeof words, "fail=%s:%d:14", functions[f], n); /* INTERNAL_ERROR */
            cublaslt_double_configure(words);
            product p = {
                .dtype = TN_F32, .batch = 2, .rows = 3, .depth = 4, .columns = 5, .alpha = 1};
            product sum = p;
            sum.batch = 0;
            sum.beta = 1;
            rig_tensor bias = row(&m, TN_F32, 3, 5);
            tn_status first = compute(&m, &p, NULL), second = compute(&m, &sum, &bias);
            bool failed = cublaslt_double_calls(functions[f]) >= (uint64_t)n;
            bool in_run = strcmp(functions[f], "cublasLtMatmul") == 0;
            tn_status expected = in_run ? TN_ERR_INTERNAL : TN_ERR_UNSUPPORTED;
            /* The last of SetAttribute tells the address of the bias, in the call. */
            if (failed && first == TN_OK && second == TN_ERR_INTERNAL)
                expected = TN_ERR_INTERNAL;
            assert_int_equal((first != TN_OK) + (second != TN_OK), failed);
            if (failed)
                assert_int_equal(first == TN_OK ? second : first, expected);
            if (failed && expected == TN_ERR_INTERNAL)
                assert_text(mini_error(), "CUBLAS_STATUS_INTERNAL_ERROR");
            cublaslt_double_configure("");
            assert_ok(compute(&m, &p, NULL));
            assert_ok(compute(&m, &sum, &bias));
            rig_free(&bias);
            rig_close(&m);
            assert_int_equal(cublaslt_double_alive(), 0);
            if (!failed)
                break;
        }
}

static void a_refusal_in_the_call_passes_it_on(void **state) {
    mini m;
    rig_open(&m);
    product p = {.dtype = TN_F32, .batch = 2, .rows = 3, .depth = 4, .columns = 5, .alpha = 1};
    cublaslt_double_configure("fail=cublasLtMatmul:1:15"); /* NOT_SUPPORTED */
    assert_int_equal(compute(&m, &p, NULL), TN_ERR_UNSUPPORTED);
    assert_ok(compute(&m, &p, NULL));
    rig_close(&m);
}

static void host_memory_may_be_exhausted(void **state) {
    for (int n = 0;; n++) {
        mini m;
        rig_open(&m);
        product p = {.dtype = TN_F32, .batch = 2, .rows = 3, .depth = 4, .columns = 5, .alpha = 1};
        mini_fail_alloc_after(n);
        tn_status status = compute(&m, &p, NULL);
        mini_fail_alloc_after(-1);
        assert_true(status == TN_OK || status == TN_ERR_OUT_OF_MEMORY);
        assert_ok(compute(&m, &p, NULL));
        rig_close(&m);
        if (status == TN_OK)
            break;
    }
}

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        TEST(batches_lie_in_rows_or_columns),
        TEST(addends_lie_as_the_output_does),
        TEST(what_there_is_once_lies_as_it_likes),
        TEST(other_strides_are_declined),
        TEST(alignments_are_told_apart),
        TEST(a_row_is_added_as_a_bias),
        TEST(a_bias_of_halves_is_copied_where_sums_are_split),
        TEST(rows_that_are_no_bias_are_declined),
        TEST(with_beta_0_self_is_not_read),
        TEST(a_beta_that_is_0_to_the_library_is_declined),
        TEST(long_sums_are_split_in_a_fixed_order),
        TEST(tf32_is_used_where_it_is_allowed),
        TEST(a_product_that_is_known_is_one_call),
        TEST(what_the_library_cannot_do_is_asked_once),
        TEST(plans_that_find_no_room_serve_one_call),
        TEST(a_call_that_does_not_follow_is_abandoned),
        TEST(a_product_is_recorded_and_run_again),
        TEST(threads_add_their_own_bias),
        TEST(the_first_product_opens_the_library),
        TEST(a_library_that_will_not_do_is_left_out),
        TEST(each_call_may_fail),
        TEST(a_refusal_in_the_call_passes_it_on),
        TEST(host_memory_may_be_exhausted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
