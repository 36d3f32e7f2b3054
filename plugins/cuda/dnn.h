/* cuDNN's functions, found at run time, and the graphs that are made of them for a convolution. */
#ifndef TNI_PLUGINS_CUDA_DNN_H
#define TNI_PLUGINS_CUDA_DNN_H

#include "plugins/cuda/plans.h"

#include <cudnn.h>

#define CUDA_DNN_FUNCTIONS(X) \
    X(cudnnGetVersion) \
    X(cudnnGetErrorString) \
    X(cudnnCreate) \
    X(cudnnDestroy) \
    X(cudnnSetStream) \
    X(cudnnBackendCreateDescriptor) \
    X(cudnnBackendDestroyDescriptor) \
    X(cudnnBackendSetAttribute) \
    X(cudnnBackendGetAttribute) \
    X(cudnnBackendFinalize) \
    X(cudnnBackendExecute)

typedef struct cuda_dnn_functions {
#define CUDA_DNN_MEMBER(function) __typeof__(&function) function;
    CUDA_DNN_FUNCTIONS(CUDA_DNN_MEMBER)
#undef CUDA_DNN_MEMBER
} cuda_dnn_functions;

typedef struct cuda_dnn_tensor {
    int64_t sizes[4], strides[4]; /* in elements */
    int64_t alignment;            /* bytes, at most 16 */
} cuda_dnn_tensor;

enum { CUDA_FORWARD, CUDA_TO_INPUT, CUDA_TO_WEIGHT };

enum { CUDA_DNN_IMAGE, CUDA_DNN_WEIGHT, CUDA_DNN_OUTPUT, CUDA_DNN_BIAS, CUDA_DNN_TENSORS };

/* All that a plan depends on, in words of 64 bits without gaps. Groups follow from the channels. */
typedef struct cuda_convolution {
    int64_t direction; /* CUDA_FORWARD and so on: which tensor is computed from the two others */
    int64_t dtype, has_bias;
    int64_t stride[2], padding[2], dilation[2];
    cuda_dnn_tensor tensors[CUDA_DNN_TENSORS];
} cuda_convolution;

enum {
    CUDA_CONVOLUTION_WORDS = sizeof(cuda_convolution) / sizeof(int64_t),
    CUDA_DNN_DESCRIPTORS = 16
};

typedef struct cuda_dnn_plan {
    cuda_plan base;
    cuda_convolution convolution; /* the key */
    bool adds_apart; /* the bias is not part of the graph, and is added by a kernel of our own */
    cudnnBackendDescriptor_t descriptors[CUDA_DNN_DESCRIPTORS]; /* all that were made */
    int n_descriptors;
    cudnnBackendDescriptor_t operations[2]; /* of them */
    int n_operations;
    cudnnBackendDescriptor_t execution; /* of them */
    uint64_t workspace_bytes;
} cuda_dnn_plan;

/* Finds the functions in `library`; the name of one that is missing, or NULL. */
const char *cuda_dnn_find(void *library, cuda_dnn_functions *out);

/* Makes the operations of `plan->convolution`. */
cudnnStatus_t cuda_dnn_describe(const cuda_dnn_functions *f, cuda_dnn_plan *plan);

/* Makes a graph of them and the plan that executes it, by the first engine, as the library ranks
 * them, that always gives the same bits and computes as a kernel is to; with `tf32` the factors of
 * f32 may be rounded to 10 bits. CUDNN_STATUS_NOT_SUPPORTED where there is none. */
cudnnStatus_t cuda_dnn_choose(const cuda_dnn_functions *f, cudnnHandle_t handle, bool tf32,
                              cuda_dnn_plan *plan);

/* Destroys what was made. */
void cuda_dnn_forget(const cuda_dnn_functions *f, cuda_dnn_plan *plan);

/* Queues it; `addresses` by CUDA_DNN_IMAGE and so on. One thread at a time may use `handle`. */
cudnnStatus_t cuda_dnn_execute(const cuda_dnn_functions *f, cudnnHandle_t handle,
                               const cuda_dnn_plan *plan,
                               const uint64_t addresses[CUDA_DNN_TENSORS], uint64_t workspace);

#endif
