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

/* The preferences are all taken: what fails is the heuristic, which has no handle and so no device. */
static void without_a_handle_no_algorithm_is_chosen(void **state) {
    cuda_blaslt_functions f = find_blaslt();
    for (int adds = CUDA_ADDS_NOTHING; adds <= CUDA_ADDS_BIAS; adds++) {
        cuda_blaslt_plan plan = {.product = product_of(TN_F32, adds, 1)};
        assert_int_equal(cuda_blaslt_describe(&f, false, &plan), CUBLAS_STATUS_SUCCESS);
        assert_int_equal(cuda_blaslt_choose(&f, NULL, &plan), CUBLAS_STATUS_NOT_INITIALIZED);
        cuda_blaslt_forget(&f, &plan);
    }
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
    return (cuda_dnn_tensor){
        .sizes = {n, c, h, w}, .strides = {c * h * w, h * w, w, 1}, .alignment = 16};
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

/* ---- cuDNN with a device that is only described ------------------------------------------ */

/* From version 9.8 on the library chooses engines for a device of which it is told, instead of one
 * that is there. What the plugin says of a handle is turned into that; the rest is the plugin's. */
static cuda_dnn_functions real;
static cudnnBackendDescriptor_t device;

static const char described[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":9008,"
    "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":85017755648,"
    "\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,\"l2CacheSize\":52428800,"
    "\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":13000,"
    "\"deviceName\":\"NVIDIA H100 80GB HBM3\"}";

#if CUDNN_VERSION >= 90800
static cudnnStatus_t set_for_device(cudnnBackendDescriptor_t descriptor,
                                    cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, int64_t n,
                                    const void *values) {
    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
        return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
        return real.cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    cudnnStatus_t status = real.cudnnBackendSetAttribute(descriptor, name, type, n, values);
    if (name != CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH || status != CUDNN_STATUS_SUCCESS)
        return status;
    return real.cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
}

static bool describe_device(void) {
    return real.cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device) ==
               CUDNN_STATUS_SUCCESS &&
           real.cudnnBackendSetAttribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                         CUDNN_TYPE_CHAR, sizeof described,
                                         described) == CUDNN_STATUS_SUCCESS &&
           real.cudnnBackendFinalize(device) == CUDNN_STATUS_SUCCESS;
}
#else
static cudnnStatus_t set_for_device(cudnnBackendDescriptor_t descriptor,
                                    cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, int64_t n,
                                    const void *values) {
    return CUDNN_STATUS_NOT_SUPPORTED;
}

static bool describe_device(void) {
    return false;
}
#endif

/* Every direction, dtype and layout that the plugin hands over finds an engine of the real library
 * that computes as a kernel is to, a bias in the graph included, and a plan is made of it. */
static void for_a_described_device_engines_are_chosen(void **state) {
    static const tn_dtype dtypes[] = {TN_F32, TN_F16, TN_BF16};
    real = find_dnn();
    cuda_dnn_functions f = real;
    f.cudnnBackendSetAttribute = set_for_device;
    if (real.cudnnGetVersion() < 90800 || !describe_device())
        skip();
    for (int i = 0; i < 3; i++)
        for (int direction = CUDA_FORWARD; direction <= CUDA_TO_WEIGHT; direction++)
            for (int has_bias = 0; has_bias <= (direction == CUDA_FORWARD); has_bias++)
                for (int small = 0; small < 2; small++) { /* and not aligned */
                    int64_t c = small ? 1 : 64, o = small ? 5 : 64;
                    cuda_dnn_plan plan = {
                        .convolution = {.direction = direction,
                                        .dtype = dtypes[i],
                                        .has_bias = has_bias,
                                        .stride = {1, 1},
                                        .padding = {1, 1},
                                        .dilation = {1, 1},
                                        .tensors = {dense(32, c, 28, 28), dense(o, c, 3, 3),
                                                    dense(32, o, 28, 28), dense(1, o, 1, 1)}}};
                    for (int at = 0; at < CUDA_DNN_TENSORS && small; at++)
                        plan.convolution.tensors[at].alignment = dtypes[i] == TN_F32 ? 4 : 2;
                    assert_int_equal(cuda_dnn_describe(&f, &plan), CUDNN_STATUS_SUCCESS);
                    cudnnStatus_t status = cuda_dnn_choose(&f, NULL, false, &plan);
                    if (status != CUDNN_STATUS_SUCCESS)
                        fail_msg("dtype %d, direction %d, bias %d, %lld channels: %s", dtypes[i],
                                 direction, has_bias, (long long)c, f.cudnnGetErrorString(status));
                    cuda_dnn_forget(&f, &plan);
                }
    real.cudnnBackendDestroyDescriptor(device);
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
        cmocka_unit_test(for_a_described_device_engines_are_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
