/* What cuBLASLt and cuDNN themselves say to how the plugin describes work to them: names, types and
 * sizes of attributes. Needs the libraries, and no GPU. */
#include "plugins/cuda/blaslt.h"
#include "plugins/cuda/dnn.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SKIPPED = 77 };

static void *blaslt, *dnn;

static void *open_first(const char *const *names) {
    for (; *names; names++) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library)
            return library;
    }
    return NULL;
}

/* ---- cuBLASLt ---------------------------------------------------------------------------- */

static cuda_blaslt_functions find_blaslt(void) {
    cuda_blaslt_functions f;
    if (!blaslt)
        skip();
    assert_null(cuda_blaslt_find(blaslt, &f));
    assert_true(f.cublasLtGetVersion() >= 120000);
    return f;
}

static cuda_product product_of(tn_dtype dtype, int adds, int64_t batch) {
    return (cuda_product){.dtype = dtype,
                          .m = 5,
                          .n = 3,
                          .k = 7,
                          .batch = batch,
                          .is_turned = 1,
                          .adds = adds,
                          .a = {.is_transposed = 1, .ld = 7, .step = 35, .alignment = 16},
                          .b = {.ld = 8, .alignment = 256},
                          .c = {.ld = 5, .step = 15, .alignment = 16},
                          .d = {.ld = 5, .step = 15, .alignment = 4}};
}

static void every_product_is_described(void **state) {
    cuda_blaslt_functions f = find_blaslt();
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16, TN_BF16};
    for (int i = 0; i < 4; i++)
        for (int adds = CUDA_ADDS_NOTHING; adds <= CUDA_ADDS_BIAS; adds++)
            for (int tf32 = 0; tf32 < 2; tf32++) {
                cuda_blaslt_plan plan = {
                    .product = product_of(dtypes[i], adds, adds == CUDA_ADDS_BIAS ? 1 : 4)};
                assert_int_equal(cuda_blaslt_describe(&f, tf32, &plan), CUBLAS_STATUS_SUCCESS);
                cuda_blaslt_forget(&f, &plan);
            }
}

/* What was said of a matrix comes back. */
static void a_matrix_is_as_it_was_described(void **state) {
    cuda_blaslt_functions f = find_blaslt();
    __typeof__(&cublasLtMatrixLayoutGetAttribute) get;
    *(void **)&get = dlsym(blaslt, "cublasLtMatrixLayoutGetAttribute");
    assert_non_null(get);
    cuda_blaslt_plan plan = {.product = product_of(TN_F16, CUDA_ADDS_NOTHING, 4)};
    assert_int_equal(cuda_blaslt_describe(&f, false, &plan), CUBLAS_STATUS_SUCCESS);
    uint64_t rows = 0, columns = 0;
    int64_t ld = 0, step = 0;
    int32_t batch = 0;
    uint32_t type = 0;
    size_t written;
    get(plan.a, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type, &written);
    get(plan.a, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, &written);
    get(plan.a, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns, &written);
    get(plan.a, CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld, &written);
    get(plan.a, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch, &written);
    get(plan.a, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step, &written);
    assert_int_equal(type, CUDA_R_16F);
    assert_int_equal(rows, 7); /* transposed: k x m */
    assert_int_equal(columns, 5);
    assert_int_equal(ld, 7);
    assert_int_equal(batch, 4);
    assert_int_equal(step, 35);
    cuda_blaslt_forget(&f, &plan);
}

/* The preferences are all taken: what fails without a device is the heuristic, which has no handle. */
static void without_a_handle_no_algorithm_is_chosen(void **state) {
    cuda_blaslt_functions f = find_blaslt();
    cublasLtMatmulPreference_t preference;
    assert_int_equal(f.cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(f.cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
    cublasStatus_t (*set)(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                          const void *, size_t) = f.cublasLtMatmulPreferenceSetAttribute;
    cuda_blaslt_plan plan = {.product = product_of(TN_F32, CUDA_ADDS_MATRIX, 1)};
    assert_int_equal(cuda_blaslt_describe(&f, false, &plan), CUBLAS_STATUS_SUCCESS);
    assert_int_not_equal(cuda_blaslt_choose(&f, NULL, &plan), CUBLAS_STATUS_SUCCESS);
    cuda_blaslt_forget(&f, &plan);
    (void)set;
}

/* ---- cuDNN ------------------------------------------------------------------------------- */

static cuda_dnn_functions find_dnn(void) {
    cuda_dnn_functions f;
    if (!dnn)
        skip();
    assert_null(cuda_dnn_find(dnn, &f));
    assert_true(f.cudnnGetVersion() >= 90000);
    return f;
}

static cuda_dnn_tensor dense(int64_t n, int64_t c, int64_t h, int64_t w) {
    return (cuda_dnn_tensor){.sizes = {n, c, h, w}, .strides = {c * h * w, h * w, w, 1}, .alignment = 16};
}

static void every_convolution_is_described(void **state) {
    cuda_dnn_functions f = find_dnn();
    static const tn_dtype dtypes[] = {TN_F32, TN_F16, TN_BF16};
    for (int i = 0; i < 3; i++)
        for (int direction = CUDA_FORWARD; direction <= CUDA_TO_WEIGHT; direction++)
            for (int has_bias = 0; has_bias <= (direction == CUDA_FORWARD); has_bias++) {
                cuda_dnn_plan plan = {
                    .convolution = {.direction = direction,
                                    .dtype = dtypes[i],
                                    .has_bias = has_bias,
                                    .stride = {2, 1},
                                    .padding = {1, 2},
                                    .dilation = {1, 2},
                                    .tensors = {dense(2, 4, 8, 9), dense(6, 2, 3, 3),
                                                dense(2, 6, 4, 9), dense(1, 6, 1, 1)}}};
                cudnnStatus_t status = cuda_dnn_describe(&f, &plan);
                if (status != CUDNN_STATUS_SUCCESS)
                    fail_msg("%s", f.cudnnGetErrorString(status));
                cuda_dnn_forget(&f, &plan);
            }
}

int main(void) {
    static const char *const blaslt_names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                               "/usr/local/cuda/lib64/libcublasLt.so", NULL},
                             *const dnn_names[] = {"libcudnn.so.9",
                                                   "/usr/local/cuda/lib64/libcudnn.so.9", NULL};
    blaslt = open_first(blaslt_names);
    dnn = open_first(dnn_names);
    if (!blaslt && !dnn) {
        printf("skipped: neither cuBLASLt nor cuDNN is installed\n");
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_product_is_described),
        cmocka_unit_test(a_matrix_is_as_it_was_described),
        cmocka_unit_test(without_a_handle_no_algorithm_is_chosen),
        cmocka_unit_test(every_convolution_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
