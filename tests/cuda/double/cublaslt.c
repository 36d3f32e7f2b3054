/* A libcublasLt for tests: products by plain loops, on the streams of the driver double. What the
 * library asks of its callers is asked here: attributes' sizes, layouts that fit, alignments as they
 * were told, a workspace that is there. Column-major matrices, strided batches, a bias. */
#include "tests/cuda/double/double.h"
#include "tests/cuda/double/library.h"

#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

#include <stdlib.h>
#include <string.h>

DOUBLE_LIBRARY_DEFINE(cublaslt_double, "TENON_TEST_CUBLASLT")

/* What a call that fails on demand returns; used first in each. */
#define ENTER() \
    do { \
        int status_ = library_enter(__func__); \
        if (status_) \
            return (cublasStatus_t)status_; \
    } while (0)

#define MISTAKE(...) (cublasStatus_t) library_mistake(CUBLAS_STATUS_INVALID_VALUE, __VA_ARGS__)

/* The header's structs hold ours. */
typedef enum object_kind { OPERATION = 0x0be7a001, LAYOUT, PREFERENCE, HANDLE } object_kind;

typedef struct operation {
    object_kind kind;
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int32_t turned_a, turned_b, bias_type;
    uint32_t epilogue;
    uint64_t bias;
} operation;

typedef struct layout {
    object_kind kind;
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t ld, step;
    int32_t batch;
} layout;

typedef struct preference {
    object_kind kind;
    uint64_t workspace;
    uint32_t schemes, alignment[4];
} preference;

struct cublasLtContext {
    object_kind kind;
    CUcontext context;
};

/* cublasLtMatmulAlgo_t: what it was chosen for. */
typedef struct algorithm {
    uint64_t problem;
    uint64_t workspace;
    uint32_t alignment[4];
    uint32_t scheme;
} algorithm;

_Static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm fits");
_Static_assert(sizeof(operation) <= sizeof(cublasLtMatmulDescOpaque_t), "an operation fits");
_Static_assert(sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "a layout fits");
_Static_assert(sizeof(preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "a preference fits");

static void *make(size_t bytes) {
    void *object = calloc(1, bytes);
    library_made(object != NULL);
    return object;
}

static cublasStatus_t destroy(void *object, object_kind kind) {
    if (!object)
        return CUBLAS_STATUS_SUCCESS;
    if (*(object_kind *)object != kind)
        return MISTAKE("what is destroyed is something else");
    *(object_kind *)object = 0;
    free(object);
    library_made(-1);
    return CUBLAS_STATUS_SUCCESS;
}

static bool has_context(const char *function) {
    CUcontext context = NULL;
    if (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
        return true;
    library_mistake(0, "%s without a context", function);
    return false;
}

/* ---- about the library ------------------------------------------------------------------- */

size_t cublasLtGetVersion(void) {
    library_enter(__func__);
    return library_version(CUBLAS_VERSION);
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
        return "unknown";
    }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    ENTER();
    if (!handle)
        return MISTAKE("cublasLtCreate: NULL");
    if (!has_context(__func__))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = make(sizeof **handle);
    if (!*handle)
        return CUBLAS_STATUS_ALLOC_FAILED;
    (*handle)->kind = HANDLE;
    cuCtxGetCurrent(&(*handle)->context);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    ENTER();
    if (!handle)
        return MISTAKE("cublasLtDestroy: NULL");
    return destroy(handle, HANDLE);
}

/* ---- descriptors ------------------------------------------------------------------------- */

static bool is_number(cudaDataType_t type) {
    return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    ENTER();
    if (!out || !is_number(scale))
        return MISTAKE("an operation without a place, or of no scale");
    operation *o = make(sizeof **out);
    *out = (cublasLtMatmulDesc_t)o;
    if (!o)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *o = (operation){.kind = OPERATION,
                     .compute = compute,
                     .scale = scale,
                     .turned_a = CUBLAS_OP_N,
                     .turned_b = CUBLAS_OP_N,
                     .bias_type = -1,
                     .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
    ENTER();
    return destroy(desc, OPERATION);
}

static cublasStatus_t take(void *to, size_t room, const void *from, size_t bytes,
                           const char *what) {
    if (!from || bytes != room)
        return MISTAKE("%s is of %zu bytes, and %zu were given", what, room, bytes);
    memcpy(to, from, room);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name, const void *from,
                                              size_t bytes) {
    ENTER();
    operation *o = (operation *)desc;
    if (!o || o->kind != OPERATION)
        return MISTAKE("an attribute of no operation");
    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(&o->turned_a, sizeof o->turned_a, from, bytes, "TRANSA");
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(&o->turned_b, sizeof o->turned_b, from, bytes, "TRANSB");
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(&o->epilogue, sizeof o->epilogue, from, bytes, "EPILOGUE");
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(&o->bias, sizeof o->bias, from, bytes, "BIAS_POINTER");
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return take(&o->bias_type, sizeof o->bias_type, from, bytes, "BIAS_DATA_TYPE");
    default:
        return MISTAKE("attribute %d of an operation is not known here", (int)name);
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
    ENTER();
    if (!out)
        return MISTAKE("a layout without a place");
    layout *l = make(sizeof **out);
    *out = (cublasLtMatrixLayout_t)l;
    if (!l)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *l = (layout){
        .kind = LAYOUT, .type = type, .rows = rows, .columns = columns, .ld = ld, .batch = 1};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t desc) {
    ENTER();
    return destroy(desc, LAYOUT);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t desc,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void *from, size_t bytes) {
    ENTER();
    layout *l = (layout *)desc;
    if (!l || l->kind != LAYOUT)
        return MISTAKE("an attribute of no layout");
    switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return take(&l->batch, sizeof l->batch, from, bytes, "BATCH_COUNT");
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return take(&l->step, sizeof l->step, from, bytes, "STRIDED_BATCH_OFFSET");
    default:
        return MISTAKE("attribute %d of a layout is not known here", (int)name);
    }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
    ENTER();
    if (!out)
        return MISTAKE("a preference without a place");
    preference *p = make(sizeof **out);
    *out = (cublasLtMatmulPreference_t)p;
    if (!p)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *p = (preference){.kind = PREFERENCE,
                      .schemes = CUBLASLT_REDUCTION_SCHEME_MASK,
                      .alignment = {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t desc) {
    ENTER();
    return destroy(desc, PREFERENCE);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t desc,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *from, size_t bytes) {
    ENTER();
    preference *p = (preference *)desc;
    if (!p || p->kind != PREFERENCE)
        return MISTAKE("an attribute of no preference");
    switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return take(&p->workspace, sizeof p->workspace, from, bytes, "MAX_WORKSPACE_BYTES");
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return take(&p->schemes, sizeof p->schemes, from, bytes, "REDUCTION_SCHEME_MASK");
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return take(&p->alignment[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                    sizeof p->alignment[0], from, bytes, "MIN_ALIGNMENT");
    default:
        return MISTAKE("attribute %d of a preference is not known here", (int)name);
    }
}

/* ---- products ---------------------------------------------------------------------------- */

enum { A, B, C, D, MATRICES };

/* A product as all its descriptors say, and, in a call, where its matrices are. */
typedef struct problem {
    operation operation;
    layout layouts[MATRICES];
    int64_t m, n, k, batch;
    CUdeviceptr matrices[MATRICES], workspace;
    double alpha, beta;
    uint32_t scheme;
} problem;

static number_type number_of(cudaDataType_t type) {
    return type == CUDA_R_64F   ? NUMBER_F64
           : type == CUDA_R_32F ? NUMBER_F32
           : type == CUDA_R_16F ? NUMBER_F16
                                : NUMBER_BF16;
}

/* Types that go together. */
static bool has_types(const problem *p) {
    cudaDataType_t type = p->layouts[D].type;
    bool wide = type == CUDA_R_64F;
    cublasComputeType_t compute = p->operation.compute;
    return is_number(type) && p->operation.scale == (wide ? CUDA_R_64F : CUDA_R_32F) &&
           (wide ? compute == CUBLAS_COMPUTE_64F
                 : compute == CUBLAS_COMPUTE_32F ||
                       (compute == CUBLAS_COMPUTE_32F_FAST_TF32 && type == CUDA_R_32F));
}

static cublasStatus_t check_layout(const problem *p, int i, int64_t rows, int64_t columns) {
    const layout *l = &p->layouts[i];
    if ((int64_t)l->rows != rows || (int64_t)l->columns != columns)
        return MISTAKE("matrix %c is %llu x %llu, and %lld x %lld is needed", 'A' + i,
                       (unsigned long long)l->rows, (unsigned long long)l->columns, (long long)rows,
                       (long long)columns);
    if (l->ld < rows)
        return MISTAKE("matrix %c: columns of %lld overlap at every %lld", 'A' + i, (long long)rows,
                       (long long)l->ld);
    if (l->batch != p->batch || l->type != p->layouts[D].type)
        return MISTAKE("matrix %c is of another batch or type", 'A' + i);
    if (i == D && l->batch > 1 && l->step < (l->ld < l->step ? 1 : rows))
        return MISTAKE("matrices of the output overlap");
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t describe(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                               cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                               cublasLtMatrixLayout_t d, problem *p) {
    const cublasLtMatrixLayout_t layouts[] = {a, b, c, d};
    memset(p, 0, sizeof *p);
    if (!desc || ((operation *)desc)->kind != OPERATION)
        return MISTAKE("no operation");
    p->operation = *(operation *)desc;
    for (int i = 0; i < MATRICES; i++) {
        if (!layouts[i] || ((layout *)layouts[i])->kind != LAYOUT)
            return MISTAKE("no layout of %c", 'A' + i);
        p->layouts[i] = *(layout *)layouts[i];
    }
    bool turned = p->operation.turned_a == CUBLAS_OP_T;
    p->m = (int64_t)p->layouts[D].rows;
    p->n = (int64_t)p->layouts[D].columns;
    p->k = (int64_t)(turned ? p->layouts[A].rows : p->layouts[A].columns);
    p->batch = p->layouts[D].batch;
    bool turned_b = p->operation.turned_b == CUBLAS_OP_T;
    cublasStatus_t status = check_layout(p, D, p->m, p->n);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = check_layout(p, C, p->m, p->n);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = check_layout(p, A, turned ? p->k : p->m, turned ? p->m : p->k);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = check_layout(p, B, turned_b ? p->n : p->k, turned_b ? p->k : p->n);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    bool adds = p->operation.epilogue == CUBLASLT_EPILOGUE_BIAS;
    if (!adds && p->operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (adds && (p->operation.bias == 0 || (p->operation.bias_type >= 0 &&
                                            p->operation.bias_type != (int)p->layouts[D].type)))
        return MISTAKE("a bias that is not there, or of another type");
    if (adds && p->layouts[D].type == CUDA_R_64F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return has_types(p) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* What an algorithm depends on; the bias's address is not. */
static uint64_t identify(const problem *p) {
    problem plain = *p;
    plain.operation.bias = 0;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < offsetof(problem, matrices); i++)
        hash = (hash ^ ((const unsigned char *)&plain)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

enum { LONG_SUM = 64 }; /* from which on it is cut in two */

/* As the library does, takes whichever scheme it may and likes best; the one that gives other bits
 * each time comes first. */
static void choose(const problem *p, const preference *with, algorithm *out) {
    uint64_t partial = (uint64_t)(p->m * p->n * p->batch) * sizeof(double);
    *out = (algorithm){.problem = identify(p)};
    memcpy(out->alignment, with->alignment, sizeof out->alignment);
    if (p->k < LONG_SUM)
        return;
    if (with->schemes & CUBLASLT_REDUCTION_SCHEME_INPLACE) {
        out->scheme = CUBLASLT_REDUCTION_SCHEME_INPLACE;
    } else if ((with->schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) &&
               partial <= with->workspace) {
        out->scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        out->workspace = partial;
    }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t with, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *n_results) {
    ENTER();
    problem p;
    if (!handle || handle->kind != HANDLE || !has_context(__func__))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (requested < 1 || !results || !n_results || !with)
        return MISTAKE("no room for algorithms");
    *n_results = 0;
    cublasStatus_t status = describe(desc, a, b, c, d, &p);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    const preference *said = (const preference *)with;
    int64_t bytes = number_bytes(number_of(p.layouts[D].type));
    for (int i = 0; i < MATRICES; i++)
        if (said->alignment[i] < bytes)
            return CUBLAS_STATUS_NOT_SUPPORTED;
    memset(&results[0], 0, sizeof results[0]);
    algorithm chosen;
    choose(&p, said, &chosen);
    memcpy(&results[0].algo, &chosen, sizeof chosen);
    results[0].workspaceSize = chosen.workspace;
    results[0].wavesCount = 1;
    *n_results = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t name,
                                                    void *out, size_t bytes, size_t *written) {
    ENTER();
    algorithm chosen;
    if (!algo || !out || !written || name != CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME ||
        bytes != sizeof chosen.scheme)
        return MISTAKE("attribute %d of an algorithm is not known here", (int)name);
    memcpy(&chosen, algo, sizeof chosen);
    memcpy(out, &chosen.scheme, sizeof chosen.scheme);
    *written = sizeof chosen.scheme;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- on the stream ----------------------------------------------------------------------- */

/* Matrix `i` of batch `b`, on the host. */
static void *matrix_at(const problem *p, int i, int64_t b) {
    const layout *l = &p->layouts[i];
    int64_t bytes = number_bytes(number_of(l->type)),
            extent = ((int64_t)(l->columns - 1) * l->ld + (int64_t)l->rows) * bytes;
    return double_host_address(p->matrices[i] + (CUdeviceptr)(b * l->step * bytes), (size_t)extent,
                               (size_t)bytes);
}

/* op(A) or op(B) as [rows][columns], its own rows in a row. */
static void unpack(const problem *p, int i, bool turned, const void *from, int64_t rows,
                   int64_t columns, double *to) {
    const layout *l = &p->layouts[i];
    for (int64_t r = 0; r < rows; r++)
        numbers_load(number_of(l->type), from, turned ? r * l->ld : r, turned ? 1 : l->ld, columns,
                     to + r * columns);
    if (p->operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        for (int64_t at = 0; at < rows * columns; at++)
            to[at] = number_tf32(to[at]);
}

/* sum [m][n] = x [m][k] y [k][n], terms from..to of each sum. */
static void multiply(const problem *p, const double *x, const double *y, int64_t from, int64_t to,
                     double *sum) {
    memset(sum, 0, (size_t)(p->m * p->n) * sizeof *sum);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t k = from; k < to; k++) {
            double factor = x[i * p->k + k];
            const double *row = y + k * p->n;
            for (int64_t j = 0; j < p->n; j++)
                sum[i * p->n + j] += factor * row[j];
        }
}

/* One half goes by way of the workspace. */
static CUresult multiply_in_parts(const problem *p, int64_t b, const double *x, const double *y,
                                  double *sum) {
    size_t bytes = (size_t)(p->m * p->n) * sizeof *sum;
    double *part = double_host_address(p->workspace + (CUdeviceptr)b * bytes, bytes, sizeof *part);
    if (!part)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    multiply(p, x, y, 0, p->k / 2, part);
    multiply(p, x, y, p->k / 2, p->k, sum);
    for (int64_t at = 0; at < p->m * p->n; at++)
        sum[at] += part[at];
    return CUDA_SUCCESS;
}

static CUresult finish(const problem *p, int64_t b, double *sum, double *row) {
    const layout *c = &p->layouts[C], *d = &p->layouts[D];
    number_type type = number_of(d->type);
    void *to = matrix_at(p, D, b);
    const void *add = p->beta != 0 ? matrix_at(p, C, b) : to, *bias = to;
    bool has_bias = p->operation.epilogue == CUBLASLT_EPILOGUE_BIAS;
    if (has_bias)
        bias = double_host_address(p->operation.bias, (size_t)(p->m * number_bytes(type)),
                                   (size_t)number_bytes(type));
    if (!to || !add || !bias)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int64_t i = 0; i < p->m; i++) {
        double first = 0;
        for (int64_t j = 0; j < p->n; j++)
            sum[i * p->n + j] *= p->alpha;
        if (p->beta != 0) {
            numbers_load(type, add, i, c->ld, p->n, row);
            for (int64_t j = 0; j < p->n; j++)
                sum[i * p->n + j] += p->beta * row[j];
        }
        if (has_bias) {
            if (p->scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) { /* what was stored gets it */
                numbers_store(type, to, i, d->ld, p->n, sum + i * p->n);
                numbers_load(type, to, i, d->ld, p->n, sum + i * p->n);
            }
            numbers_load(type, bias, i, 1, 1, &first);
            for (int64_t j = 0; j < p->n; j++)
                sum[i * p->n + j] += first;
        }
        if (p->scheme == CUBLASLT_REDUCTION_SCHEME_INPLACE) { /* other bits each time */
            static int turn;
            sum[i * p->n] *= 1 + 1e-6 * (turn++ % 2);
        }
        numbers_store(type, to, i, d->ld, p->n, sum + i * p->n);
    }
    return CUDA_SUCCESS;
}

static CUresult compute(void *arg) {
    const problem *p = arg;
    double *x = malloc((size_t)(p->m * p->k) * sizeof *x),
           *y = malloc((size_t)(p->k * p->n) * sizeof *y),
           *sum = malloc((size_t)(p->m * p->n) * sizeof *sum),
           *row = malloc((size_t)p->n * sizeof *row);
    CUresult error = x && y && sum && row ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (int64_t b = 0; b < p->batch && error == CUDA_SUCCESS; b++) {
        const void *a_at = matrix_at(p, A, b), *b_at = matrix_at(p, B, b);
        if (!a_at || !b_at) {
            error = CUDA_ERROR_ILLEGAL_ADDRESS;
            break;
        }
        unpack(p, A, p->operation.turned_a == CUBLAS_OP_T, a_at, p->m, p->k, x);
        unpack(p, B, p->operation.turned_b == CUBLAS_OP_T, b_at, p->k, p->n, y);
        if (p->scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
            error = multiply_in_parts(p, b, x, y, sum);
        else
            multiply(p, x, y, 0, p->k, sum);
        if (error == CUDA_SUCCESS)
            error = finish(p, b, sum, row);
    }
    free(x);
    free(y);
    free(sum);
    free(row);
    return error;
}

/* ---- the call ---------------------------------------------------------------------------- */

static cublasStatus_t check_addresses(const problem *p, const algorithm *with) {
    uint32_t bytes = (uint32_t)number_bytes(number_of(p->layouts[D].type));
    for (int i = 0; i < MATRICES; i++) {
        if (!p->matrices[i])
            return MISTAKE("matrix %c is NULL", 'A' + i);
        if (p->matrices[i] % with->alignment[i] || p->matrices[i] % bytes)
            return MISTAKE("matrix %c is not at a multiple of %u, as was said", 'A' + i,
                           with->alignment[i]);
    }
    if (p->operation.epilogue == CUBLASLT_EPILOGUE_BIAS && p->operation.bias % bytes)
        return MISTAKE("the bias is not aligned");
    if (p->matrices[C] == p->matrices[D] &&
        memcmp(&p->layouts[C], &p->layouts[D], sizeof p->layouts[C]) != 0)
        return MISTAKE("C is D, in another layout");
    if (with->workspace && (!p->workspace || p->workspace % 256))
        return MISTAKE("the workspace is not there or not aligned");
    return CUBLAS_STATUS_SUCCESS;
}

static double scalar(cudaDataType_t type, const void *from) {
    double wide;
    float narrow;
    if (type == CUDA_R_64F) {
        memcpy(&wide, from, sizeof wide);
        return wide;
    }
    memcpy(&narrow, from, sizeof narrow);
    return narrow;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream) {
    ENTER();
    problem p;
    algorithm with;
    CUcontext context = NULL;
    if (!handle || handle->kind != HANDLE || !has_context(__func__))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    cuCtxGetCurrent(&context);
    if (context != handle->context)
        return MISTAKE("the handle is of another context");
    if (!alpha || !beta || !algo)
        return MISTAKE("alpha, beta or the algorithm is NULL");
    cublasStatus_t status = describe(desc, a_layout, b_layout, c_layout, d_layout, &p);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    memcpy(&with, algo, sizeof with);
    if (with.problem != identify(&p) || with.workspace > workspace_bytes)
        return MISTAKE("the algorithm is not for this product, or has too small a workspace");
    const void *matrices[] = {a, b, c, d};
    for (int i = 0; i < MATRICES; i++)
        p.matrices[i] = (CUdeviceptr)matrices[i];
    p.workspace = (CUdeviceptr)workspace;
    p.alpha = scalar(p.operation.scale, alpha);
    p.beta = scalar(p.operation.scale, beta);
    p.scheme = with.scheme;
    status = check_addresses(&p, &with);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    library_say(p.scheme == CUBLASLT_REDUCTION_SCHEME_INPLACE         ? "in place"
                : p.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? "tf32"
                : p.scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE  ? "in parts"
                : p.operation.epilogue == CUBLASLT_EPILOGUE_BIAS      ? "bias"
                                                                      : "");
    if (p.alpha == 0) /* factors are not looked at */
        library_mistake(0, "an alpha of 0 would not see a NaN in the factors");
    return double_stream_enqueue((CUstream)stream, compute, &p, sizeof p) == CUDA_SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}
