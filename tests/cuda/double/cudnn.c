/* A libcudnn for tests: the part of its graph API that describes convolutions, with or without a
 * bias, and executes them on the streams of the driver double.
 *
 * Descriptors are checked as the library checks them: attributes by a table of names, types and
 * counts; what refers to a descriptor wants it finalized; ids are of one tensor each. Its engines
 * are such that a caller that takes the first one gets what it should not: bits that differ from one
 * run to the next, factors of 10 bits, large errors, and some of these without a note, as the library's. */
#include "tests/cuda/double/cudnn_convolution.h"
#include "tests/cuda/double/double.h"

#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

DOUBLE_LIBRARY_DEFINE(cudnn_double, "TENON_TEST_CUDNN")

#define ENTER() \
    do { \
        int status_ = library_enter(__func__); \
        if (status_) \
            return (cudnnStatus_t)status_; \
    } while (0)

#define MISTAKE(status, ...) (cudnnStatus_t) library_mistake(CUDNN_STATUS_##status, __VA_ARGS__)

/* ---- handles ----------------------------------------------------------------------------- */

struct cudnnContext {
    CUcontext context;
    CUstream stream;
    atomic_flag busy;
};

size_t cudnnGetVersion(void) {
    library_enter(__func__);
    return library_version(CUDNN_VERSION);
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    switch (CUDNN_STATUS_CATEGORY(status)) {
    case 0:
        return "CUDNN_STATUS_SUCCESS";
    case 2000:
        return "CUDNN_STATUS_BAD_PARAM";
    case 3000:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case 4000:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    case 5000:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    }
}

static CUcontext current(void) {
    CUcontext context = NULL;
    return cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : NULL;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    ENTER();
    if (!handle)
        return MISTAKE(BAD_PARAM_NULL_POINTER, "cudnnCreate: NULL");
    if (!current())
        return MISTAKE(NOT_INITIALIZED, "cudnnCreate without a context");
    *handle = calloc(1, sizeof **handle);
    if (!*handle)
        return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    (*handle)->context = current();
    library_made(1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    ENTER();
    library_made(handle ? -1 : 0);
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    ENTER();
    if (!handle)
        return MISTAKE(BAD_PARAM_NULL_POINTER, "cudnnSetStream: NULL");
    handle->stream = (CUstream)stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- attributes -------------------------------------------------------------------------- */

enum { VALUES = 8, ATTRIBUTES = 8 };

static size_t bytes_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

typedef struct attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t least, most; /* how many values */
    bool is_optional;
} attribute;

#define ONE(name, type) \
    { CUDNN_ATTR_##name, CUDNN_TYPE_##type, 1, 1, false }
#define SOME(name, type, least, most) \
    { CUDNN_ATTR_##name, CUDNN_TYPE_##type, least, most, false }
#define PERHAPS(name, type) \
    { CUDNN_ATTR_##name, CUDNN_TYPE_##type, 1, 1, true }

#define CONVOLVES(name, x, w, y) \
    ONE(OPERATION_CONVOLUTION_##name##_CONV_DESC, BACKEND_DESCRIPTOR), \
        ONE(OPERATION_CONVOLUTION_##name##_##x, BACKEND_DESCRIPTOR), \
        ONE(OPERATION_CONVOLUTION_##name##_##w, BACKEND_DESCRIPTOR), \
        ONE(OPERATION_CONVOLUTION_##name##_##y, BACKEND_DESCRIPTOR), \
        ONE(OPERATION_CONVOLUTION_##name##_ALPHA, FLOAT), \
        ONE(OPERATION_CONVOLUTION_##name##_BETA, FLOAT)

/* What can be set, by the descriptor's type; those of convolutions in the order of take_tensors(). */
static const struct {
    cudnnBackendDescriptorType_t type;
    attribute attributes[ATTRIBUTES];
} table[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
     {ONE(TENSOR_DATA_TYPE, DATA_TYPE), SOME(TENSOR_DIMENSIONS, INT64, 3, VALUES),
      SOME(TENSOR_STRIDES, INT64, 3, VALUES), ONE(TENSOR_UNIQUE_ID, INT64),
      ONE(TENSOR_BYTE_ALIGNMENT, INT64), PERHAPS(TENSOR_IS_VIRTUAL, BOOLEAN)}},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
     {ONE(CONVOLUTION_COMP_TYPE, DATA_TYPE), ONE(CONVOLUTION_CONV_MODE, CONVOLUTION_MODE),
      ONE(CONVOLUTION_SPATIAL_DIMS, INT64), SOME(CONVOLUTION_DILATIONS, INT64, 1, 3),
      SOME(CONVOLUTION_FILTER_STRIDES, INT64, 1, 3), SOME(CONVOLUTION_PRE_PADDINGS, INT64, 1, 3),
      SOME(CONVOLUTION_POST_PADDINGS, INT64, 1, 3)}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, {CONVOLVES(FORWARD, X, W, Y)}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     {CONVOLVES(BWD_DATA, DX, W, DY)}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     {CONVOLVES(BWD_FILTER, X, DW, DY)}},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
     {ONE(POINTWISE_MODE, POINTWISE_MODE), ONE(POINTWISE_MATH_PREC, DATA_TYPE)}},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     {ONE(OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR),
      ONE(OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR),
      ONE(OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR),
      ONE(OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR)}},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
     {ONE(OPERATIONGRAPH_HANDLE, HANDLE), SOME(OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, 2)}},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
     {ONE(ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR), ONE(ENGINEHEUR_MODE, HEUR_MODE)}},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {{0}}},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, {{0}}},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
     {ONE(EXECUTION_PLAN_HANDLE, HANDLE), ONE(EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR)}},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
     {SOME(VARIANT_PACK_UNIQUE_IDS, INT64, 1, VALUES),
      SOME(VARIANT_PACK_DATA_POINTERS, VOID_PTR, 1, VALUES),
      ONE(VARIANT_PACK_WORKSPACE, VOID_PTR)}},
};

typedef struct value {
    int64_t n; /* 0: not set */
    union {
        int64_t ints[VALUES];
        struct descriptor *descriptors[VALUES];
        cudnnHandle_t handle;
        int32_t number;
        float real;
        bool truth;
    };
} value;

enum { MAGIC = 0x0d11 };

typedef struct descriptor {
    int magic;
    cudnnBackendDescriptorType_t type;
    const attribute *attributes;
    bool is_finalized;
    value values[ATTRIBUTES];
    /* What is known when it is finalized. */
    conv_tensor tensor;
    conv_job job;
    int engine;
    int64_t workspace;
} descriptor;

static descriptor *known(cudnnBackendDescriptor_t handle) {
    descriptor *d = handle;
    return d && d->magic == MAGIC ? d : NULL;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out) {
    ENTER();
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].type == type) {
            descriptor *d = calloc(1, sizeof *d);
            *out = d;
            if (!d)
                return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
            d->magic = MAGIC;
            d->type = type;
            d->attributes = table[i].attributes;
            library_made(1);
            return CUDNN_STATUS_SUCCESS;
        }
    return MISTAKE(BAD_PARAM_DESCRIPTOR_TYPE, "descriptors of type %d are not known here", type);
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
    ENTER();
    descriptor *d = known(handle);
    if (!d)
        return MISTAKE(BAD_PARAM, "what is destroyed is no descriptor");
    d->magic = 0;
    free(d);
    library_made(-1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n,
                                       const void *from) {
    ENTER();
    descriptor *d = known(handle);
    if (!d || !from)
        return MISTAKE(BAD_PARAM_NULL_POINTER, "attribute %d of nothing", name);
    if (d->is_finalized)
        return MISTAKE(BAD_PARAM, "attribute %d of a finalized descriptor", name);
    int at = 0;
    while (at < ATTRIBUTES && (d->attributes[at].name != name || d->attributes[at].most == 0))
        at++;
    if (at == ATTRIBUTES)
        return MISTAKE(BAD_PARAM, "descriptors of type %d have no attribute %d", d->type, name);
    const attribute *a = &d->attributes[at];
    if (a->type != type)
        return MISTAKE(BAD_PARAM_ATTRIBUTE_TYPE, "attribute %d is of type %d, not %d", name,
                       a->type, type);
    if (n < a->least || n > a->most)
        return MISTAKE(BAD_PARAM, "attribute %d of %lld values", name, (long long)n);
    value *v = &d->values[at];
    memset(v, 0, sizeof *v);
    memcpy(v->ints, from, (size_t)n * bytes_of(type));
    v->n = n;
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < n; i++)
        if (!known(v->descriptors[i]) || !v->descriptors[i]->is_finalized)
            return MISTAKE(BAD_PARAM_NOT_FINALIZED,
                           "attribute %d names a descriptor that is not finalized", name);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- finalizing -------------------------------------------------------------------------- */

static cudnnStatus_t finalize_tensor(descriptor *d) {
    const value *type = &d->values[0], *sizes = &d->values[1], *strides = &d->values[2];
    conv_tensor *t = &d->tensor;
    if (sizes->n != 4 || strides->n != 4)
        return MISTAKE(BAD_PARAM, "a tensor of %lld sizes and %lld strides", (long long)sizes->n,
                       (long long)strides->n);
    switch (type->number) {
    case CUDNN_DATA_FLOAT:
        t->type = NUMBER_F32;
        break;
    case CUDNN_DATA_HALF:
        t->type = NUMBER_F16;
        break;
    case CUDNN_DATA_BFLOAT16:
        t->type = NUMBER_BF16;
        break;
    default:
        return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
    }
    t->id = d->values[3].ints[0];
    t->alignment = d->values[4].ints[0];
    t->is_virtual = d->values[5].truth;
    for (int i = 0; i < 4; i++) {
        t->sizes[i] = sizes->ints[i];
        t->strides[i] = strides->ints[i];
        if (t->sizes[i] <= 0 || t->strides[i] <= 0)
            return MISTAKE(BAD_PARAM, "a size of %lld and a stride of %lld", (long long)t->sizes[i],
                           (long long)t->strides[i]);
    }
    if (t->alignment < number_bytes(t->type) || (t->alignment & (t->alignment - 1)))
        return MISTAKE(BAD_PARAM, "an alignment of %lld", (long long)t->alignment);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_convolution(descriptor *d) {
    conv_job *j = &d->job;
    if (d->values[0].number != CUDNN_DATA_FLOAT || d->values[1].number != CUDNN_CROSS_CORRELATION)
        return CUDNN_STATUS_NOT_SUPPORTED;
    for (int i = 3; i < 7; i++)
        if (d->values[i].n != 2 || d->values[2].ints[0] != 2)
            return MISTAKE(BAD_PARAM, "a convolution of other than two dimensions");
    for (int i = 0; i < 2; i++) {
        j->dilation[i] = d->values[3].ints[i];
        j->stride[i] = d->values[4].ints[i];
        j->padding[i] = d->values[5].ints[i];
        if (j->padding[i] != d->values[6].ints[i])
            return CUDNN_STATUS_NOT_SUPPORTED;
        if (j->dilation[i] < 1 || j->stride[i] < 1 || j->padding[i] < 0)
            return MISTAKE(BAD_PARAM, "a stride or dilation that cannot be");
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_convolving(descriptor *d, conv_direction direction) {
    conv_job *j = &d->job;
    *j = d->values[0].descriptors[0]->job;
    j->direction = direction;
    for (int i = 0; i < 3; i++)
        j->tensors[i] = d->values[1 + i].descriptors[0]->tensor;
    const int64_t *x = j->tensors[CONV_X].sizes, *w = j->tensors[CONV_W].sizes,
                  *y = j->tensors[CONV_Y].sizes;
    bool fits = x[0] == y[0] && w[0] == y[1] && x[1] % w[1] == 0 && w[0] % (x[1] / w[1]) == 0;
    for (int i = 0; i < 2; i++)
        fits = fits && y[2 + i] == (x[2 + i] + 2 * j->padding[i] - j->dilation[i] * (w[2 + i] - 1) -
                                    1) / j->stride[i] +
                                       1;
    if (!fits)
        return MISTAKE(BAD_PARAM_SHAPE_MISMATCH, "a convolution of shapes that do not fit");
    return d->values[4].real == 1 && d->values[5].real == 0 ? CUDNN_STATUS_SUCCESS
                                                            : CUDNN_STATUS_NOT_SUPPORTED;
}

static cudnnStatus_t finalize_adding(descriptor *d) {
    const conv_tensor *x = &d->values[1].descriptors[0]->tensor,
                      *b = &d->values[2].descriptors[0]->tensor,
                      *y = &d->values[3].descriptors[0]->tensor;
    for (int i = 0; i < 4; i++)
        if (x->sizes[i] != y->sizes[i] || (b->sizes[i] != 1 && b->sizes[i] != y->sizes[i]))
            return MISTAKE(BAD_PARAM_SHAPE_MISMATCH, "a sum of shapes that do not fit");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_graph(descriptor *d) {
    const value *operations = &d->values[1];
    const descriptor *first = operations->descriptors[0];
    conv_job *j = &d->job;
    if (first->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        return CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
    *j = first->job;
    if (operations->n == 2) {
        const descriptor *add = operations->descriptors[1];
        if (add->type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
            j->direction != CONV_FORWARD || j->tensors[CONV_Y].type != NUMBER_F32 ||
            !j->tensors[CONV_Y].is_virtual ||
            add->values[1].descriptors[0] != first->values[3].descriptors[0])
            return CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
        j->has_bias = true;
        j->tensors[CONV_B] = add->values[2].descriptors[0]->tensor;
        j->tensors[CONV_Y] = add->values[3].descriptors[0]->tensor;
    }
    for (int i = 0; i < CONV_B + j->has_bias; i++) {
        if (j->tensors[i].is_virtual)
            return MISTAKE(BAD_PARAM, "a tensor that is nowhere");
        for (int other = 0; other < i; other++)
            if (j->tensors[i].id == j->tensors[other].id)
                return MISTAKE(BAD_PARAM_DUPLICATED_ENTRIES, "two tensors of id %lld",
                               (long long)j->tensors[i].id);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Is it dense, as NCHW or NHWC? */
static bool is_packed(const conv_tensor *t) {
    static const int orders[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}};
    for (int o = 0; o < 2; o++) {
        int64_t dense = 1;
        bool fits = true;
        for (int i = 0; i < 4; i++) {
            int d = orders[o][i];
            fits = fits && (t->sizes[d] == 1 || t->strides[d] == dense);
            dense *= t->sizes[d];
        }
        if (fits)
            return true;
    }
    return false;
}

enum { ATOMIC, COMPILED, TENSOR_CORES, WINOGRAD, FFT, PLAIN, LAST_RESORT };

static cudnnStatus_t finalize_plan(descriptor *d) {
    const descriptor *config = d->values[1].descriptors[0];
    conv_job *j = &d->job;
    *j = config->job;
    d->engine = config->engine;
    bool is_f32 = j->tensors[CONV_X].type == NUMBER_F32, is_aligned = true;
    for (int i = 0; i < CONV_B + j->has_bias; i++) {
        if (!is_packed(&j->tensors[i]))
            return CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
        is_aligned = is_aligned && j->tensors[i].alignment >= 16;
    }
    if (d->engine == TENSOR_CORES && !is_aligned)
        return CUDNN_STATUS_NOT_SUPPORTED_PADDING;
    bool is_forward = conv_result(j) == CONV_Y, is_to_input = conv_result(j) == CONV_X;
    if (d->engine == COMPILED && is_forward)
        return CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
    bool adds_in_halves =
        d->engine == PLAIN && is_to_input && j->tensors[CONV_X].type == NUMBER_F16;
    bool has_groups = j->tensors[CONV_X].sizes[1] != j->tensors[CONV_W].sizes[1];
    if (j->has_bias && (has_groups || (is_f32 && d->engine == PLAIN)))
        return CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
    j->manner = d->engine == ATOMIC                         ? CONV_OTHER_EACH_TIME
                : d->engine == TENSOR_CORES && is_f32       ? CONV_TF32
                : d->engine == WINOGRAD || d->engine == FFT ? CONV_ROUGH
                : d->engine == COMPILED || adds_in_halves   ? CONV_ROUGH
                                                            : CONV_EXACT;
    j->by_workspace = d->engine != LAST_RESORT;
    d->workspace = j->by_workspace ? conv_numel(&j->tensors[conv_result(j)]) * 8 : 0;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize(descriptor *d) {
    switch (d->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return finalize_tensor(d);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        return finalize_convolution(d);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return finalize_convolving(d, CONV_FORWARD);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return finalize_convolving(d, CONV_TO_INPUT);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return finalize_convolving(d, CONV_TO_WEIGHT);
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
        return d->values[0].number == CUDNN_POINTWISE_ADD && d->values[1].number == CUDNN_DATA_FLOAT
                   ? CUDNN_STATUS_SUCCESS
                   : CUDNN_STATUS_NOT_SUPPORTED;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return finalize_adding(d);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        return finalize_graph(d);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        return finalize_plan(d);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return d->values[0].n == d->values[1].n
                   ? CUDNN_STATUS_SUCCESS
                   : MISTAKE(BAD_PARAM, "ids and addresses differ in number");
    default:
        return CUDNN_STATUS_SUCCESS;
    }
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
    ENTER();
    descriptor *d = known(handle);
    if (!d)
        return MISTAKE(BAD_PARAM_NULL_POINTER, "what is finalized is no descriptor");
    for (int i = 0; i < ATTRIBUTES; i++)
        if (d->attributes[i].most && !d->attributes[i].is_optional && !d->values[i].n)
            return MISTAKE(BAD_PARAM, "a descriptor of type %d without attribute %d", d->type,
                           d->attributes[i].name);
    cudnnStatus_t status = finalize(d);
    d->is_finalized = status == CUDNN_STATUS_SUCCESS;
    return status;
}

/* ---- engines ----------------------------------------------------------------------------- */

/* As the library ranks them; the last is that of mode FALLBACK. */
static const cudnnBackendNumericalNote_t notes[] = {
    [ATOMIC] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
    [COMPILED] = CUDNN_NUMERICAL_NOTE_TYPE_COUNT, /* none */
    [TENSOR_CORES] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
    [WINOGRAD] = CUDNN_NUMERICAL_NOTE_WINOGRAD,
    [FFT] = CUDNN_NUMERICAL_NOTE_FFT,
    [PLAIN] = CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
    [LAST_RESORT] = CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP,
};

static cudnnStatus_t list_configs(const descriptor *d, int64_t room, int64_t *n, void *to) {
    bool last = d->values[1].number == CUDNN_HEUR_MODE_FALLBACK;
    cudnnBackendDescriptor_t *configs = to;
    int first = last ? LAST_RESORT : ATOMIC, end = last ? LAST_RESORT + 1 : LAST_RESORT;
    *n = end - first;
    for (int i = 0; i < *n && i < room; i++) {
        descriptor *config = known(configs[i]);
        if (!config || config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || config->is_finalized)
            return MISTAKE(BAD_PARAM, "results want fresh configurations of engines");
        config->engine = first + i;
        config->job = d->values[0].descriptors[0]->job;
        config->is_finalized = true;
    }
    if (room < *n && room > 0)
        *n = room;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t *n,
                                       void *to) {
    ENTER();
    const descriptor *d = known(handle);
    if (!d || !d->is_finalized || !n)
        return MISTAKE(BAD_PARAM_NOT_FINALIZED, "attribute %d of what is not finalized", name);
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
        type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return list_configs(d, room, n, to);
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE && d->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR &&
        type == CUDNN_TYPE_BACKEND_DESCRIPTOR && room == 1) {
        descriptor *engine = known(*(cudnnBackendDescriptor_t *)to);
        if (!engine || engine->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
            return MISTAKE(BAD_PARAM, "an engine wants a descriptor of its type");
        engine->engine = d->engine;
        engine->is_finalized = true;
        *n = 1;
        return CUDNN_STATUS_SUCCESS;
    }
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
        type == CUDNN_TYPE_NUMERICAL_NOTE && room >= CUDNN_NUMERICAL_NOTE_TYPE_COUNT) {
        *n = notes[d->engine] != CUDNN_NUMERICAL_NOTE_TYPE_COUNT;
        memcpy(to, &notes[d->engine], (size_t)*n * sizeof notes[0]);
        return CUDNN_STATUS_SUCCESS;
    }
    if (name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE && d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
        type == CUDNN_TYPE_BEHAVIOR_NOTE && room >= CUDNN_BEHAVIOR_NOTE_TYPE_COUNT) {
        *n = d->engine == COMPILED;
        if (*n)
            *(cudnnBackendBehaviorNote_t *)to = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
        return CUDNN_STATUS_SUCCESS;
    }
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE &&
        d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && type == CUDNN_TYPE_INT64) {
        memcpy(to, &d->workspace, sizeof d->workspace);
        *n = 1;
        return CUDNN_STATUS_SUCCESS;
    }
    return MISTAKE(BAD_PARAM, "attribute %d of type %d is not answered here", name, type);
}

/* ---- executing --------------------------------------------------------------------------- */

static cudnnStatus_t place(const descriptor *plan, const descriptor *pack, conv_job *j) {
    const value *ids = &pack->values[0], *addresses = &pack->values[1];
    int n_tensors = CONV_B + j->has_bias;
    for (int i = 0; i < n_tensors; i++) {
        for (int64_t k = 0; k < ids->n; k++)
            if (ids->ints[k] == j->tensors[i].id)
                j->at[i] = (CUdeviceptr)addresses->ints[k];
        if (!j->at[i] || j->at[i] % (uint64_t)j->tensors[i].alignment)
            return MISTAKE(BAD_PARAM_MISALIGNED_POINTER,
                           "tensor %lld is nowhere, or not at a multiple of %lld",
                           (long long)j->tensors[i].id, (long long)j->tensors[i].alignment);
    }
    if (ids->n != n_tensors)
        return MISTAKE(BAD_PARAM, "%lld addresses for %d tensors", (long long)ids->n, n_tensors);
    j->workspace = (CUdeviceptr)pack->values[2].ints[0];
    if (plan->workspace && (!j->workspace || j->workspace % 16))
        return MISTAKE(BAD_PARAM_NULL_POINTER, "no workspace, or one that is not aligned");
    return CUDNN_STATUS_SUCCESS;
}

static const char *say(const conv_job *j, int engine) {
    return j->manner == CONV_TF32              ? "tf32"
           : j->manner == CONV_OTHER_EACH_TIME ? "other bits each time"
           : j->manner == CONV_ROUGH           ? "rough"
           : j->has_bias                       ? "bias"
           : engine == TENSOR_CORES            ? "tensor cores"
           : engine == LAST_RESORT             ? "last resort"
                                               : "plain";
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_,
                                  cudnnBackendDescriptor_t pack_) {
    ENTER();
    const descriptor *plan = known(plan_), *pack = known(pack_);
    if (!handle || !plan || !pack || plan->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
        pack->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || !plan->is_finalized ||
        !pack->is_finalized)
        return MISTAKE(BAD_PARAM_NOT_FINALIZED, "what is executed is no plan with its tensors");
    if (plan->values[0].handle != handle || handle->context != current())
        return MISTAKE(BAD_PARAM, "a plan of another handle, or another context");
    if (atomic_flag_test_and_set(&handle->busy))
        return MISTAKE(BAD_PARAM, "two threads use a handle at once");
    conv_job job = plan->job;
    cudnnStatus_t status = place(plan, pack, &job);
    if (status == CUDNN_STATUS_SUCCESS) {
        library_say(say(&job, plan->engine));
        if (double_stream_enqueue(handle->stream, conv_compute, &job, sizeof job) != CUDA_SUCCESS)
            status = CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
    }
    atomic_flag_clear(&handle->busy);
    return status;
}
