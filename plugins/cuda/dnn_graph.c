/* A convolution as cuDNN is told of it: a graph of one operation, or of two with a bias. */
#include "plugins/cuda/dnn.h"

#include <dlfcn.h>
#include <string.h>

const char *cuda_dnn_find(void *library, cuda_dnn_functions *out) {
#define FIND(function) \
    *(void **)&out->function = dlsym(library, #function); \
    if (!out->function) \
        return #function;
    CUDA_DNN_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

#define TRY(call) \
    do { \
        cudnnStatus_t status_ = (call); \
        if (status_ != CUDNN_STATUS_SUCCESS) \
            return status_; \
    } while (0)

/* CUDNN_ATTR_<name> of `descriptor` is `n` values of type CUDNN_TYPE_<type> at `values`. */
#define SET(descriptor, name, type, n, values) \
    TRY(f->cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_##name, CUDNN_TYPE_##type, n, values))

static cudnnStatus_t make(const cuda_dnn_functions *f, cuda_dnn_plan *plan,
                          cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out) {
    TRY(f->cudnnBackendCreateDescriptor(type, out));
    plan->descriptors[plan->n_descriptors++] = *out;
    return CUDNN_STATUS_SUCCESS;
}

void cuda_dnn_forget(const cuda_dnn_functions *f, cuda_dnn_plan *plan) {
    while (plan->n_descriptors > 0)
        f->cudnnBackendDestroyDescriptor(plan->descriptors[--plan->n_descriptors]);
    plan->n_operations = 0;
    plan->execution = NULL;
}

/* ---- operations -------------------------------------------------------------------------- */

/* Of the tensors, and of the sum before the bias is added. */
static const int64_t ids[CUDA_DNN_TENSORS] = {'x', 'w', 'y', 'b'};
enum { INSIDE = 's' };

static cudnnDataType_t type_of(int64_t dtype) {
    return dtype == TN_F32   ? CUDNN_DATA_FLOAT
           : dtype == TN_F16 ? CUDNN_DATA_HALF
                             : CUDNN_DATA_BFLOAT16;
}

/* A tensor of the graph. With `is_inside` it is never in memory, and of f32. */
static cudnnStatus_t make_tensor(const cuda_dnn_functions *f, cuda_dnn_plan *plan, int64_t id,
                                 const cuda_dnn_tensor *t, bool is_inside,
                                 cudnnBackendDescriptor_t *out) {
    cudnnDataType_t type = is_inside ? CUDNN_DATA_FLOAT : type_of(plan->convolution.dtype);
    int64_t alignment = is_inside ? 16 : t->alignment;
    TRY(make(f, plan, CUDNN_BACKEND_TENSOR_DESCRIPTOR, out));
    SET(*out, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
    SET(*out, TENSOR_DIMENSIONS, INT64, 4, t->sizes);
    SET(*out, TENSOR_STRIDES, INT64, 4, t->strides);
    SET(*out, TENSOR_UNIQUE_ID, INT64, 1, &id);
    SET(*out, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
    SET(*out, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_inside);
    return f->cudnnBackendFinalize(*out);
}

static cudnnStatus_t make_convolution(const cuda_dnn_functions *f, cuda_dnn_plan *plan,
                                      cudnnBackendDescriptor_t *out) {
    const cuda_convolution *c = &plan->convolution;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t n = 2;
    TRY(make(f, plan, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, out));
    SET(*out, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &type);
    SET(*out, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
    SET(*out, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &n);
    SET(*out, CONVOLUTION_DILATIONS, INT64, n, c->dilation);
    SET(*out, CONVOLUTION_FILTER_STRIDES, INT64, n, c->stride);
    SET(*out, CONVOLUTION_PRE_PADDINGS, INT64, n, c->padding);
    SET(*out, CONVOLUTION_POST_PADDINGS, INT64, n, c->padding);
    return f->cudnnBackendFinalize(*out);
}

/* What the three directions call the same things. */
static const struct {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t convolution, alpha, beta, image, weight, output;
} directions[] = {
    [CUDA_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [CUDA_TO_INPUT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [CUDA_TO_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

#define SET_NAMED(descriptor, name, type, values) \
    TRY(f->cudnnBackendSetAttribute(descriptor, name, CUDNN_TYPE_##type, 1, values))

static cudnnStatus_t convolve(const cuda_dnn_functions *f, cuda_dnn_plan *plan,
                              cudnnBackendDescriptor_t convolution, cudnnBackendDescriptor_t image,
                              cudnnBackendDescriptor_t weight, cudnnBackendDescriptor_t output) {
    __typeof__(directions[0]) *names = &directions[plan->convolution.direction];
    cudnnBackendDescriptor_t *operation = &plan->operations[plan->n_operations++];
    float one = 1, zero = 0;
    TRY(make(f, plan, names->operation, operation));
    SET_NAMED(*operation, names->convolution, BACKEND_DESCRIPTOR, &convolution);
    SET_NAMED(*operation, names->image, BACKEND_DESCRIPTOR, &image);
    SET_NAMED(*operation, names->weight, BACKEND_DESCRIPTOR, &weight);
    SET_NAMED(*operation, names->output, BACKEND_DESCRIPTOR, &output);
    SET_NAMED(*operation, names->alpha, FLOAT, &one);
    SET_NAMED(*operation, names->beta, FLOAT, &zero);
    return f->cudnnBackendFinalize(*operation);
}

static cudnnStatus_t add(const cuda_dnn_functions *f, cuda_dnn_plan *plan,
                         cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t bias,
                         cudnnBackendDescriptor_t output) {
    cudnnBackendDescriptor_t how, *operation = &plan->operations[plan->n_operations++];
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    TRY(make(f, plan, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &how));
    SET(how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
    SET(how, POINTWISE_MATH_PREC, DATA_TYPE, 1, &type);
    TRY(f->cudnnBackendFinalize(how));
    TRY(make(f, plan, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, operation));
    SET(*operation, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, &how);
    SET(*operation, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, &x);
    SET(*operation, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, &bias);
    SET(*operation, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, &output);
    return f->cudnnBackendFinalize(*operation);
}

static bool fuses(const cuda_dnn_plan *plan) {
    return plan->convolution.has_bias && !plan->adds_apart;
}

cudnnStatus_t cuda_dnn_describe(const cuda_dnn_functions *f, cuda_dnn_plan *plan) {
    const cuda_dnn_tensor *t = plan->convolution.tensors;
    cudnnBackendDescriptor_t convolution, sum, tensors[CUDA_DNN_TENSORS];
    for (int i = 0; i < CUDA_DNN_BIAS + fuses(plan); i++)
        TRY(make_tensor(f, plan, ids[i], &t[i], false, &tensors[i]));
    TRY(make_convolution(f, plan, &convolution));
    if (!fuses(plan))
        return convolve(f, plan, convolution, tensors[CUDA_DNN_IMAGE], tensors[CUDA_DNN_WEIGHT],
                        tensors[CUDA_DNN_OUTPUT]);
    TRY(make_tensor(f, plan, INSIDE, &t[CUDA_DNN_OUTPUT], true, &sum));
    TRY(convolve(f, plan, convolution, tensors[CUDA_DNN_IMAGE], tensors[CUDA_DNN_WEIGHT], sum));
    return add(f, plan, sum, tensors[CUDA_DNN_BIAS], tensors[CUDA_DNN_OUTPUT]);
}

/* ---- engines ----------------------------------------------------------------------------- */

enum { MAX_ENGINES = 64 };
static const int64_t MAX_WORKSPACE = INT64_C(512) << 20;

/* What an engine says of itself. */
typedef struct engine_notes {
    cudnnBackendNumericalNote_t numerical[2 * CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendBehaviorNote_t behavior[2 * CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t n_numerical, n_behavior;
} engine_notes;

/* Of the engines that cuDNN 9 offers on an H100 for halves, run one by one, these were wrong and say
 * nothing of it: for the gradient of the input in f16 one that neither uses tensor cores nor looks
 * after NaN adds up in halves, and for that of the weight two of those that are compiled at run time
 * multiply what lies behind the edge. */
static bool is_known_wrong(const cuda_convolution *c, const engine_notes *notes) {
    if (c->direction == CUDA_TO_INPUT && c->dtype == TN_F16 && notes->n_numerical == 0)
        return true;
    for (int64_t i = 0; i < notes->n_behavior; i++)
        if (notes->behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION &&
            c->direction != CUDA_FORWARD)
            return true;
    return false;
}

/* Does an engine with these notes compute as a kernel of ours may? What goes by way of a transform
 * would give an infinity or a NaN to pixels that do not see it, and has larger errors. */
static bool is_allowed(const engine_notes *notes, bool is_exact_f32) {
    for (int64_t i = 0; i < notes->n_numerical; i++)
        switch (notes->numerical[i]) {
        case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
            break;
        case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
            if (is_exact_f32)
                return false;
            break;
        default: /* of a later version, too */
            return false;
        }
    return true;
}

#define ROOM(array) ((int64_t)(sizeof(array) / sizeof((array)[0])))

static cudnnStatus_t ask_engine(const cuda_dnn_functions *f, cudnnBackendDescriptor_t config,
                                cudnnBackendDescriptor_t engine, engine_notes *out) {
    int64_t n = 0;
    TRY(f->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, (void *)&engine));
    TRY(f->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                    CUDNN_TYPE_NUMERICAL_NOTE, ROOM(out->numerical),
                                    &out->n_numerical, out->numerical));
    return f->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                       CUDNN_TYPE_BEHAVIOR_NOTE, ROOM(out->behavior),
                                       &out->n_behavior, out->behavior);
}

static cudnnStatus_t make_execution(const cuda_dnn_functions *f, cudnnHandle_t handle,
                                    cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t plan,
                                    int64_t *out_workspace) {
    int64_t n = 0;
    SET(plan, EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
    SET(plan, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config);
    TRY(f->cudnnBackendFinalize(plan));
    return f->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                       CUDNN_TYPE_INT64, 1, &n, out_workspace);
}

/* Is what failed that the library cannot do it, and not that it broke? */
static bool cannot(cudnnStatus_t status) {
    return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ||
           CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_BAD_PARAM;
}

/* Makes the plan by `config`, if that is allowed and works; then `config` belongs to the plan. */
static cudnnStatus_t try_config(const cuda_dnn_functions *f, cudnnHandle_t handle,
                                bool is_exact_f32, cudnnBackendDescriptor_t config,
                                cuda_dnn_plan *plan) {
    cudnnBackendDescriptor_t engine, execution;
    engine_notes notes = {.n_numerical = 0};
    int64_t workspace = 0;
    TRY(f->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
    cudnnStatus_t status = ask_engine(f, config, engine, &notes);
    f->cudnnBackendDestroyDescriptor(engine);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    if (!is_allowed(&notes, is_exact_f32) || is_known_wrong(&plan->convolution, &notes))
        return CUDNN_STATUS_NOT_SUPPORTED;
    TRY(f->cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &execution));
    status = make_execution(f, handle, config, execution, &workspace);
    if (status == CUDNN_STATUS_SUCCESS && workspace > MAX_WORKSPACE)
        status = CUDNN_STATUS_NOT_SUPPORTED;
    if (status != CUDNN_STATUS_SUCCESS) {
        f->cudnnBackendDestroyDescriptor(execution);
        return status;
    }
    plan->descriptors[plan->n_descriptors++] = config;
    plan->descriptors[plan->n_descriptors++] = plan->execution = execution;
    plan->workspace_bytes = (uint64_t)workspace;
    return CUDNN_STATUS_SUCCESS;
}

/* The first of `configs` that will do; all others are destroyed. */
static cudnnStatus_t try_configs(const cuda_dnn_functions *f, cudnnHandle_t handle,
                                 bool is_exact_f32, cudnnBackendDescriptor_t heuristic,
                                 cudnnBackendDescriptor_t *configs, cuda_dnn_plan *plan) {
    int64_t n = 0, n_made = 0;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    while (n_made < MAX_ENGINES && status == CUDNN_STATUS_SUCCESS) {
        status =
            f->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[n_made]);
        n_made += status == CUDNN_STATUS_SUCCESS;
    }
    if (status == CUDNN_STATUS_SUCCESS)
        status =
            f->cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, n_made, &n, (void *)configs);
    if (status == CUDNN_STATUS_SUCCESS)
        status = CUDNN_STATUS_NOT_SUPPORTED;
    int64_t chosen = -1;
    for (int64_t i = 0; i < n && i < n_made && chosen < 0; i++) {
        cudnnStatus_t tried = try_config(f, handle, is_exact_f32, configs[i], plan);
        if (tried == CUDNN_STATUS_SUCCESS)
            chosen = i;
        if (!cannot(tried)) /* one that broke; another may do */
            status = tried;
    }
    for (int64_t i = 0; i < n_made; i++)
        if (i != chosen)
            f->cudnnBackendDestroyDescriptor(configs[i]);
    return status;
}

static cudnnStatus_t ask_heuristic(const cuda_dnn_functions *f, cudnnHandle_t handle,
                                   bool is_exact_f32, cudnnBackendHeurMode_t mode,
                                   cudnnBackendDescriptor_t graph, cuda_dnn_plan *plan) {
    cudnnBackendDescriptor_t heuristic, configs[MAX_ENGINES];
    TRY(f->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic));
    cudnnStatus_t status = f->cudnnBackendSetAttribute(
        heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    if (status == CUDNN_STATUS_SUCCESS)
        status = f->cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE,
                                             CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (status == CUDNN_STATUS_SUCCESS)
        status = f->cudnnBackendFinalize(heuristic);
    if (status == CUDNN_STATUS_SUCCESS)
        status = try_configs(f, handle, is_exact_f32, heuristic, configs, plan);
    f->cudnnBackendDestroyDescriptor(heuristic);
    return status;
}

cudnnStatus_t cuda_dnn_choose(const cuda_dnn_functions *f, cudnnHandle_t handle, bool tf32,
                              cuda_dnn_plan *plan) {
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    cudnnBackendDescriptor_t graph;
    bool is_exact_f32 = plan->convolution.dtype == TN_F32 && !tf32;
    TRY(make(f, plan, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &graph));
    SET(graph, OPERATIONGRAPH_HANDLE, HANDLE, 1, &handle);
    SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, plan->n_operations,
        (void *)plan->operations);
    TRY(f->cudnnBackendFinalize(graph));
    cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < 2 && cannot(status); i++)
        status = ask_heuristic(f, handle, is_exact_f32, modes[i], graph, plan);
    return cannot(status) ? CUDNN_STATUS_NOT_SUPPORTED : status;
}

/* ---- execution --------------------------------------------------------------------------- */

static cudnnStatus_t execute(const cuda_dnn_functions *f, cudnnHandle_t handle,
                             const cuda_dnn_plan *plan, cudnnBackendDescriptor_t pack,
                             const uint64_t *addresses, uint64_t workspace) {
    int64_t n = CUDA_DNN_BIAS + fuses(plan);
    SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, n, ids);
    SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, n, addresses);
    SET(pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &workspace);
    TRY(f->cudnnBackendFinalize(pack));
    return f->cudnnBackendExecute(handle, plan->execution, pack);
}

cudnnStatus_t cuda_dnn_execute(const cuda_dnn_functions *f, cudnnHandle_t handle,
                               const cuda_dnn_plan *plan,
                               const uint64_t addresses[CUDA_DNN_TENSORS], uint64_t workspace) {
    cudnnBackendDescriptor_t pack;
    TRY(f->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    cudnnStatus_t status = execute(f, handle, plan, pack, addresses, workspace);
    f->cudnnBackendDestroyDescriptor(pack);
    return status;
}
