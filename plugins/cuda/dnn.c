/* Convolutions by cuDNN: how each is computed is chosen once for its shape, and kept. */
#include "plugins/cuda/dnn.h"
#include "plugins/cuda/libraries.h"
#include "plugins/shared/gpu/signals.h"

#include <stdio.h>
#include <string.h>

struct cuda_dnn {
    tn_device_impl *device;
    bool tf32;
    void *library; /* opened for the first plan */
    cuda_dnn_functions functions;
    const tn_kernel *add; /* our own, of f32 */
    cuda_plans plans;

    pthread_mutex_t lock; /* a handle is for one thread at a time */
    cudnnHandle_t handle; /* made with the first plan */
};

/* ---- plans ------------------------------------------------------------------------------- */

static void destroy_plan(void *owner, cuda_plan *base) {
    cuda_dnn *d = owner;
    cuda_dnn_plan *plan = (cuda_dnn_plan *)base;
    const tn_host *host = d->device->self->host;
    cuda_dnn_forget(&d->functions, plan);
    host->dealloc(host, plan);
}

static cudnnStatus_t make_graph(cuda_dnn *d, cuda_dnn_plan *plan) {
    cudnnStatus_t status = cuda_dnn_describe(&d->functions, plan);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cuda_dnn_choose(&d->functions, d->handle, d->tf32, plan);
    if (status != CUDNN_STATUS_SUCCESS)
        cuda_dnn_forget(&d->functions, plan);
    return status;
}

/* Under `lock`. Engines that add a bias often want tensor cores, which f32 is not to use: then it
 * is added to what the convolution wrote, which for f32 rounds once more, and for halves would not
 * do. */
static cudnnStatus_t make_ready(cuda_dnn *d, cuda_dnn_plan *plan) {
    const cuda_convolution *c = &plan->convolution;
    cudnnStatus_t status = d->handle ? CUDNN_STATUS_SUCCESS : d->functions.cudnnCreate(&d->handle);
    if (status != CUDNN_STATUS_SUCCESS) {
        d->handle = NULL;
        return status;
    }
    status = make_graph(d, plan);
    if (status != CUDNN_STATUS_SUCCESS && c->has_bias && c->dtype == TN_F32) {
        plan->adds_apart = true;
        status = make_graph(d, plan);
    }
    return status;
}

static bool is_known(cudnnStatus_t status) {
    return status == CUDNN_STATUS_SUCCESS ||
           CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ||
           CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_BAD_PARAM;
}

static tn_status build_plan(void *owner, const int64_t *key, cuda_plan **out) {
    cuda_dnn *d = owner;
    cuda_dnn_plan *plan = cuda_host_alloc(d->device->self, sizeof *plan, "a plan of cuDNN");
    if (!plan)
        return TN_ERR_OUT_OF_MEMORY;
    memset(plan, 0, sizeof *plan);
    memcpy(&plan->convolution, key, sizeof plan->convolution);
    plan->base.key = (const int64_t *)&plan->convolution;
    cuda_scope scope = cuda_enter(d->device);
    if (scope.error != CUDA_SUCCESS) {
        destroy_plan(d, &plan->base);
        return cuda_fail_driver(d->device, scope.error, "a convolution by cuDNN");
    }
    pthread_mutex_lock(&d->lock);
    gpu_signals_keep(); /* some engines compile, and the compiler has handlers of its own */
    cudnnStatus_t status = make_ready(d, plan);
    gpu_signals_restore();
    pthread_mutex_unlock(&d->lock);
    cuda_leave(&scope);
    if (CUDNN_STATUS_CATEGORY(status) != CUDNN_STATUS_NOT_SUPPORTED &&
        status != CUDNN_STATUS_SUCCESS)
        cuda_log(d->device, TN_LOG_WARN,
                 "cuDNN fails to make a convolution ready (%s); our own kernel takes its place",
                 d->functions.cudnnGetErrorString(status));
    if (is_known(status)) {
        plan->base.is_declined = status != CUDNN_STATUS_SUCCESS;
        *out = &plan->base;
        return TN_OK;
    }
    destroy_plan(d, &plan->base);
    return TN_ERR_UNSUPPORTED;
}

/* ---- the library ------------------------------------------------------------------------- */

static const char *const names[] = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9", NULL};

enum { OLDEST = 90000 };

static bool find_library(cuda_dnn *d, char *reason, size_t room) {
    d->library = cuda_library_open(d->device->self, "cudnn", names, reason, room);
    if (!d->library)
        return false;
    const char *missing = cuda_dnn_find(d->library, &d->functions);
    if (missing) {
        snprintf(reason, room, "it has no %s; version 9 or later is needed", missing);
        return false;
    }
    size_t version = d->functions.cudnnGetVersion();
    if (version < OLDEST)
        snprintf(reason, room, "it is of version %zu; 9 (%d) or later is needed", version, OLDEST);
    return version >= OLDEST;
}

static const tn_kernel *find_add(void) {
    uint64_t n;
    const tn_kernel *const *records = gpu_records(&n);
    for (uint64_t i = 0; i < n; i++)
        if (strcmp(records[i]->op, "add") == 0 && (records[i]->dtypes[0] & TN_DTYPE_BIT(TN_F32)))
            return records[i];
    return NULL;
}

static bool open_library(void *owner) {
    char reason[CUDA_MESSAGE / 2];
    cuda_dnn *d = owner;
    bool ok = find_library(d, reason, sizeof reason);
    if (!ok)
        cuda_log(d->device, TN_LOG_INFO, "convolutions are our own, without cuDNN: %s", reason);
    return ok;
}

cuda_dnn *cuda_dnn_create(tn_device_impl *device) {
    cuda_dnn *d = cuda_host_alloc(device->self, sizeof *d, "convolutions by cuDNN");
    if (!d)
        return NULL;
    memset(d, 0, sizeof *d);
    d->device = device;
    d->tf32 = cuda_tf32_allowed(device->self);
    d->add = find_add();
    d->plans.owner = d;
    d->plans.key_words = CUDA_CONVOLUTION_WORDS;
    d->plans.is_needed_later = true; /* it may own the code */
    d->plans.open = open_library;
    d->plans.build = build_plan;
    d->plans.destroy = destroy_plan;
    cuda_plans_init(&d->plans);
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void cuda_dnn_destroy(cuda_dnn *d) {
    if (!d)
        return;
    const tn_host *host = d->device->self->host;
    cuda_scope scope = cuda_enter(d->device);
    cuda_plans_finish(&d->plans);
    if (d->handle)
        d->functions.cudnnDestroy(d->handle);
    if (scope.error == CUDA_SUCCESS)
        cuda_leave(&scope);
    pthread_mutex_destroy(&d->lock);
    cuda_library_close(d->library);
    host->dealloc(host, d);
}

/* ---- calls ------------------------------------------------------------------------------- */

/* A record's user: which arguments its tensors are; -1 is the output, and the bias may be none. */
typedef struct maker {
    int direction;
    int tensors[CUDA_DNN_TENSORS];
    int stride; /* padding and dilation follow */
} maker;

enum { RESULT = -1, NONE = -2 };

static const tn_tensor_view *view_of(const tn_call *call, int at) {
    return at == RESULT ? call->outs[0] : at == NONE ? NULL : gpu_arg(call, at);
}

static int64_t alignment_of(const tn_tensor_view *v) {
    int64_t alignment = cuda_alignment(v->memory + v->offset);
    return alignment < 16 ? alignment : 16;
}

/* Does the tensor lie dense, with its dimensions in this order, the innermost first? Then `out` has the
 * strides that it has so, of what there is once, too. */
static bool lies(const tn_tensor_view *v, const int order[4], cuda_dnn_tensor *out) {
    int64_t dense = 1;
    for (int i = 0; i < 4; i++) {
        int d = order[i];
        if (v->sizes[d] > 1 && v->strides[d] != dense)
            return false;
        out->sizes[d] = v->sizes[d];
        out->strides[d] = dense;
        dense *= v->sizes[d];
    }
    return true;
}

/* All tensors of a convolution lie in planes, or all with their channels innermost. cuDNN takes other
 * strides, too, and with some of them has been seen to compute something else. */
static bool lie_alike(const tn_call *call, const maker *m, const int order[4],
                      cuda_convolution *out) {
    bool ok = true;
    for (int i = 0; i < CUDA_DNN_BIAS && ok; i++) {
        const tn_tensor_view *v = view_of(call, m->tensors[i]);
        out->tensors[i] = (cuda_dnn_tensor){.alignment = alignment_of(v)};
        ok = lies(v, order, &out->tensors[i]);
    }
    return ok;
}

/* [channels] as [1, channels, 1, 1]. */
static cuda_dnn_tensor bias_of(const tn_tensor_view *v) {
    int64_t n = v->sizes[0];
    return (cuda_dnn_tensor){
        .sizes = {1, n, 1, 1}, .strides = {n, 1, 1, 1}, .alignment = alignment_of(v)};
}

static void pair(int64_t to[2], const tn_cell *cell) {
    to[0] = cell->v.ints[0];
    to[1] = cell->v.ints[1];
}

static const int planes[4] = {3, 2, 1, 0}, channels_innermost[4] = {1, 3, 2, 0};

/* What the call is to cuDNN; false: it cannot be said. */
static bool convolution_of(const tn_call *call, cuda_convolution *out) {
    const maker *m = call->user;
    *out = (cuda_convolution){.direction = m->direction, .dtype = call->outs[0]->dtype};
    pair(out->stride, &call->args[m->stride]);
    pair(out->padding, &call->args[m->stride + 1]);
    pair(out->dilation, &call->args[m->stride + 2]);
    const tn_tensor_view *bias = view_of(call, m->tensors[CUDA_DNN_BIAS]);
    if (bias) {
        out->has_bias = true;
        out->tensors[CUDA_DNN_BIAS] = bias_of(bias);
        if (bias->sizes[0] > 1 && bias->strides[0] != 1)
            return false;
    }
    return lie_alike(call, m, planes, out) || lie_alike(call, m, channels_innermost, out);
}

static tn_status prepare(const tn_call *call, tn_plan *out) {
    cuda_dnn *d = call->device->libraries.dnn;
    cuda_convolution convolution;
    cuda_plan *plan;
    if (!convolution_of(call, &convolution))
        return TN_ERR_UNSUPPORTED;
    PLUGIN_TRY(cuda_plans_get(&d->plans, (const int64_t *)&convolution, &plan));
    out->workspace_bytes = ((cuda_dnn_plan *)plan)->workspace_bytes;
    out->cookie = (uint64_t)(uintptr_t)plan;
    return TN_OK;
}

static cudnnStatus_t execute(const tn_call *call, const cuda_dnn_plan *plan) {
    cuda_dnn *d = call->device->libraries.dnn;
    const maker *m = call->user;
    uint64_t addresses[CUDA_DNN_TENSORS];
    for (int i = 0; i < CUDA_DNN_TENSORS; i++) {
        const tn_tensor_view *v = view_of(call, m->tensors[i]);
        addresses[i] = v ? v->memory + v->offset : 0;
    }
    uint64_t workspace = plan->workspace_bytes ? call->workspace + call->workspace_offset : 0;
    pthread_mutex_lock(&d->lock);
    cudnnStatus_t status =
        d->functions.cudnnSetStream(d->handle, (cudaStream_t)call->stream->stream);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cuda_dnn_execute(&d->functions, d->handle, plan, addresses, workspace);
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* out += bias, by our own kernel. */
static tn_status add_bias(const tn_call *call) {
    const maker *m = call->user;
    const tn_tensor_view *out = call->outs[0];
    tn_tensor_view bias = *view_of(call, m->tensors[CUDA_DNN_BIAS]);
    const int64_t strides[] = {0, bias.strides[0], 0, 0};
    bias.rank = out->rank;
    bias.numel = out->numel;
    bias.sizes = out->sizes;
    bias.strides = strides;
    const tn_kernel *add = call->device->libraries.dnn->add;
    const tn_cell args[] = {[TN_ARG_add_self] = {.tag = TN_CELL_TENSOR, .v.view = out},
                            [TN_ARG_add_other] = {.tag = TN_CELL_TENSOR, .v.view = &bias},
                            [TN_ARG_add_alpha] = {.tag = TN_CELL_F64, .v.f64 = 1}};
    tn_call sum = *call;
    sum.user = add->user;
    sum.args = args;
    sum.n_args = 3;
    sum.cookie = 0;
    return add->run(&sum);
}

static const gpu_kernel by_cudnn = {.name = "a convolution by cuDNN", .options = ""};

static tn_status run(const tn_call *call) {
    cuda_dnn *d = call->device->libraries.dnn;
    const cuda_dnn_plan *plan = (const cuda_dnn_plan *)(uintptr_t)call->cookie;
    if (cuda_is_lost(call->device))
        return cuda_check_lost(call->device);
    cuda_scope scope = cuda_enter(call->device);
    if (scope.error != CUDA_SUCCESS)
        return cuda_fail_driver(call->device, scope.error, "a convolution by cuDNN");
    cudnnStatus_t status = execute(call, plan);
    cuda_leave(&scope);
    if (status == CUDNN_STATUS_SUCCESS) {
        cuda_remember(call->stream, &by_cudnn);
        return plan->adds_apart ? add_bias(call) : TN_OK;
    }
    char what[CUDA_MESSAGE / 2];
    snprintf(what, sizeof what, "a convolution by cuDNN: %s",
             d->functions.cudnnGetErrorString(status));
    return cuda_library_failed(call->stream, what);
}

static const maker forward = {CUDA_FORWARD,
                              {TN_ARG_convolution_input, TN_ARG_convolution_weight, RESULT,
                               TN_ARG_convolution_bias},
                              TN_ARG_convolution_stride},
                   to_input = {CUDA_TO_INPUT,
                               {RESULT, TN_ARG_convolution_backward_input_weight,
                                TN_ARG_convolution_backward_input_grad_output, NONE},
                               TN_ARG_convolution_backward_input_stride},
                   to_weight = {CUDA_TO_WEIGHT,
                                {TN_ARG_convolution_backward_weight_input, RESULT,
                                 TN_ARG_convolution_backward_weight_grad_output, NONE},
                                TN_ARG_convolution_backward_weight_stride};

#define RECORD(name, maker_) \
    GPU_RECORD(name, TN_DTYPES_FLOAT & ~GPU_F64, TN_KERNEL_STRIDED, run, .prepare = prepare, \
               .user = (void *)&(maker_))

static const tn_kernel records[] = {RECORD(convolution, forward),
                                    RECORD(convolution_backward_input, to_input),
                                    RECORD(convolution_backward_weight, to_weight)};
const gpu_family cuda_family_dnn = {records, sizeof records / sizeof *records};
