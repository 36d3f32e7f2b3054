/* Products by cuBLASLt: how each is computed is chosen once for its shape, and kept. */
#include "plugins/cuda/blaslt.h"
#include "plugins/cuda/libraries.h"
#include "plugins/shared/gpu/copy.h"

#include <stdio.h>
#include <string.h>

struct cuda_blaslt {
    tn_device_impl *device;
    bool tf32;
    void *library; /* opened, and the handle made, for the first plan */
    cuda_blaslt_functions functions;
    cublasLtHandle_t handle;
    cuda_plans plans;
};

/* ---- plans ------------------------------------------------------------------------------- */

static void destroy_plan(void *owner, cuda_plan *base) {
    cuda_blaslt *b = owner;
    cuda_blaslt_plan *plan = (cuda_blaslt_plan *)base;
    const tn_host *host = b->device->self->host;
    cuda_blaslt_forget(&b->functions, plan);
    pthread_mutex_destroy(&plan->lock);
    host->dealloc(host, plan);
}

static void forget(cuda_blaslt *b, cuda_blaslt_plan *plan) {
    cuda_blaslt_forget(&b->functions, plan);
    plan->operation = NULL;
    plan->a = plan->b = plan->c = plan->d = NULL;
}

static cublasStatus_t choose(cuda_blaslt *b, cuda_blaslt_plan *plan) {
    cublasStatus_t status = cuda_blaslt_describe(&b->functions, b->tf32, plan);
    return status == CUBLAS_STATUS_SUCCESS ? cuda_blaslt_choose(&b->functions, b->handle, plan)
                                           : status;
}

static cublasStatus_t make_ready(cuda_blaslt *b, cuda_blaslt_plan *plan) {
    const cuda_blaslt_functions *f = &b->functions;
    cublasStatus_t status = b->handle ? CUBLAS_STATUS_SUCCESS : f->cublasLtCreate(&b->handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        b->handle = NULL;
        return status;
    }
    status = choose(b, plan);
    if (status == CUBLAS_STATUS_SUCCESS && cuda_blaslt_rounds_twice(f, plan)) {
        forget(b, plan);
        plan->copies_bias = true;
        status = choose(b, plan);
    }
    return status;
}

static tn_status build_plan(void *owner, const int64_t *key, cuda_plan **out) {
    cuda_blaslt *b = owner;
    cuda_blaslt_plan *plan = cuda_host_alloc(b->device->self, sizeof *plan, "a plan of cuBLASLt");
    if (!plan)
        return TN_ERR_OUT_OF_MEMORY;
    memset(plan, 0, sizeof *plan);
    memcpy(&plan->product, key, sizeof plan->product);
    plan->base.key = (const int64_t *)&plan->product;
    pthread_mutex_init(&plan->lock, NULL);
    cuda_scope scope = cuda_enter(b->device);
    if (scope.error != CUDA_SUCCESS) {
        destroy_plan(b, &plan->base);
        return cuda_fail_driver(b->device, scope.error, "a product by cuBLASLt");
    }
    cublasStatus_t status = make_ready(b, plan);
    bool is_known = status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_NOT_SUPPORTED ||
                    status == CUBLAS_STATUS_INVALID_VALUE;
    if (status != CUBLAS_STATUS_SUCCESS)
        forget(b, plan);
    cuda_leave(&scope);
    if (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED)
        cuda_log(b->device, TN_LOG_WARN,
                 "cuBLASLt fails to make a product ready (%s); our own kernel takes its place",
                 b->functions.cublasLtGetStatusName(status));
    if (is_known) {
        plan->base.is_declined = status != CUBLAS_STATUS_SUCCESS;
        *out = &plan->base;
        return TN_OK;
    }
    destroy_plan(b, &plan->base);
    return TN_ERR_UNSUPPORTED;
}

/* ---- the library ------------------------------------------------------------------------- */

static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so",
                                    "/usr/local/cuda/lib64/libcublasLt.so", NULL};

enum { OLDEST = 120000 };

static bool find_library(cuda_blaslt *b, char *reason, size_t room) {
    b->library = cuda_library_open(b->device->self, "cublaslt", names, reason, room);
    if (!b->library)
        return false;
    const char *missing = cuda_blaslt_find(b->library, &b->functions);
    if (missing) {
        snprintf(reason, room, "it has no %s; version 12 or later is needed", missing);
        return false;
    }
    size_t version = b->functions.cublasLtGetVersion();
    if (version < OLDEST)
        snprintf(reason, room, "it is of version %zu; 12 (%d) or later is needed", version, OLDEST);
    return version >= OLDEST;
}

static bool open_library(void *owner) {
    char reason[CUDA_MESSAGE / 2];
    cuda_blaslt *b = owner;
    bool ok = find_library(b, reason, sizeof reason);
    if (!ok)
        cuda_log(b->device, TN_LOG_INFO, "products are our own, without cuBLASLt: %s", reason);
    return ok;
}

cuda_blaslt *cuda_blaslt_create(tn_device_impl *device) {
    cuda_blaslt *b = cuda_host_alloc(device->self, sizeof *b, "products by cuBLASLt");
    if (!b)
        return NULL;
    memset(b, 0, sizeof *b);
    b->device = device;
    b->tf32 = cuda_tf32_allowed(device->self);
    b->plans.owner = b;
    b->plans.key_words = CUDA_PRODUCT_WORDS;
    b->plans.open = open_library;
    b->plans.build = build_plan;
    b->plans.destroy = destroy_plan;
    cuda_plans_init(&b->plans);
    return b;
}

void cuda_blaslt_destroy(cuda_blaslt *b) {
    if (!b)
        return;
    const tn_host *host = b->device->self->host;
    cuda_scope scope = cuda_enter(b->device);
    cuda_plans_finish(&b->plans);
    if (b->handle)
        b->functions.cublasLtDestroy(b->handle);
    if (scope.error == CUDA_SUCCESS)
        cuda_leave(&scope);
    cuda_library_close(b->library);
    host->dealloc(host, b);
}

/* ---- calls ------------------------------------------------------------------------------- */

/* A record's user: how its calls are products. */
typedef struct maker {
    cuda_terms (*terms)(const tn_call *call);
} maker;

static cuda_terms terms_of(const tn_call *call) {
    const maker *m = call->user;
    return m->terms(call);
}

static tn_status prepare(const tn_call *call, tn_plan *out) {
    cuda_blaslt *b = call->device->libraries.blaslt;
    cuda_terms terms = terms_of(call);
    cuda_product product;
    cuda_plan *plan;
    if (!cuda_product_of(&terms, &product))
        return TN_ERR_UNSUPPORTED;
    PLUGIN_TRY(cuda_plans_get(&b->plans, (const int64_t *)&product, &plan));
    out->workspace_bytes = ((cuda_blaslt_plan *)plan)->workspace_bytes;
    out->cookie = (uint64_t)(uintptr_t)plan;
    return TN_OK;
}

static cuda_plan *plan_of(const tn_call *call) {
    return (cuda_plan *)(uintptr_t)call->cookie;
}

static void abandon(const tn_call *call) {
    cuda_plans_put(&call->device->libraries.blaslt->plans, plan_of(call));
}

/* A number in the type that sums are scaled in. */
typedef union scalar {
    float narrow;
    double wide;
} scalar;

static scalar scalar_of(const cuda_blaslt_plan *plan, double x) {
    return plan->product.dtype == TN_F64 ? (scalar){.wide = x} : (scalar){.narrow = (float)x};
}

static const void *address(const tn_tensor_view *v) {
    return (const void *)(uintptr_t)(v->memory + v->offset);
}

/* In the device's context; the bias is the one that the plan's operation names. */
static cublasStatus_t multiply(const tn_call *call, const cuda_blaslt_plan *plan,
                               const cuda_terms *t) {
    const cuda_blaslt *b = call->device->libraries.blaslt;
    bool has_c = plan->product.adds == CUDA_ADDS_MATRIX || plan->copies_bias,
         is_turned = plan->product.is_turned;
    scalar alpha = scalar_of(plan, t->alpha), beta = scalar_of(plan, has_c ? t->beta : 0);
    const void *first = address(is_turned ? t->y : t->x),
               *second = address(is_turned ? t->x : t->y), *d = address(t->out);
    const void *c = plan->product.adds == CUDA_ADDS_MATRIX ? address(t->s) : d;
    uint64_t workspace = plan->workspace_bytes ? call->workspace + call->workspace_offset : 0;
    return b->functions.cublasLtMatmul(b->handle, plan->operation, &alpha, first, plan->a, second,
                                       plan->b, &beta, c, plan->c, (void *)d, plan->d,
                                       &plan->algorithm, (void *)workspace, plan->workspace_bytes,
                                       (cudaStream_t)call->stream->stream);
}

/* The library looks at the bias's address when it is called, so that one call at a time has it. */
static cublasStatus_t multiply_and_add(const tn_call *call, cuda_blaslt_plan *plan,
                                       const cuda_terms *t) {
    const cuda_blaslt_functions *f = &call->device->libraries.blaslt->functions;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    uint64_t bias = t->s->memory + t->s->offset;
    pthread_mutex_lock(&plan->lock);
    if (plan->bias != bias) {
        status = f->cublasLtMatmulDescSetAttribute(
            plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        plan->bias = status == CUBLAS_STATUS_SUCCESS ? bias : 0;
    }
    if (status == CUBLAS_STATUS_SUCCESS)
        status = multiply(call, plan, t);
    pthread_mutex_unlock(&plan->lock);
    return status;
}

/* The bias to every line of the output. */
static tn_status copy_bias(const tn_call *call, const cuda_terms *t) {
    tn_call copy = *call;
    copy.cookie = 0;
    return gpu_copy(&copy, t->out, t->s);
}

static const gpu_kernel matmul = {.name = "cublasLtMatmul", .options = ""};

static tn_status run(const tn_call *call) {
    cuda_blaslt *b = call->device->libraries.blaslt;
    cuda_blaslt_plan *plan = (cuda_blaslt_plan *)plan_of(call);
    cuda_terms terms = terms_of(call);
    if (cuda_is_lost(call->device)) {
        abandon(call);
        return cuda_check_lost(call->device);
    }
    tn_status copied = plan->copies_bias ? copy_bias(call, &terms) : TN_OK;
    if (copied != TN_OK) {
        abandon(call);
        return copied;
    }
    cuda_scope scope = cuda_enter(call->device);
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    bool has_bias = plan->product.adds == CUDA_ADDS_BIAS && !plan->copies_bias;
    if (scope.error == CUDA_SUCCESS)
        status = has_bias ? multiply_and_add(call, plan, &terms) : multiply(call, plan, &terms);
    abandon(call);
    if (scope.error != CUDA_SUCCESS)
        return cuda_fail_driver(call->device, scope.error, "a product by cuBLASLt");
    cuda_leave(&scope);
    if (status == CUBLAS_STATUS_SUCCESS) {
        cuda_remember(call->stream, &matmul);
        return TN_OK;
    }
    if (status == CUBLAS_STATUS_NOT_SUPPORTED)
        return TN_ERR_UNSUPPORTED; /* said before any of the product is queued */
    char what[CUDA_MESSAGE / 2];
    snprintf(what, sizeof what, "cublasLtMatmul: %s", b->functions.cublasLtGetStatusName(status));
    return cuda_library_failed(call->stream, what);
}

static const maker bmm = {cuda_terms_of_bmm}, addmm = {cuda_terms_of_addmm};

#define RECORD(name) \
    GPU_RECORD(name, TN_DTYPES_FLOAT, GPU_FLAGS_STRIDED, run, .prepare = prepare, \
               .abandon = abandon, .user = (void *)&(name))

static const tn_kernel records[] = {RECORD(bmm), RECORD(addmm)};
const gpu_family cuda_family_blaslt = {records, sizeof records / sizeof *records};
