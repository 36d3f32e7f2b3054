/* A convolution as the graph of the cuDNN double says, and its computation on a stream. */
#ifndef TNI_TESTS_CUDA_DOUBLE_CUDNN_CONVOLUTION_H
#define TNI_TESTS_CUDA_DOUBLE_CUDNN_CONVOLUTION_H

#include "tests/cuda/double/library.h"

#include <cuda.h>

typedef struct conv_tensor {
    number_type type;
    int64_t id, alignment;
    bool is_virtual;
    int64_t sizes[4], strides[4];
} conv_tensor;

typedef enum conv_direction { CONV_FORWARD, CONV_TO_INPUT, CONV_TO_WEIGHT } conv_direction;
enum { CONV_X, CONV_W, CONV_Y, CONV_B, CONV_TENSORS };

/* How an engine differs from the exact one. */
typedef enum conv_manner { CONV_EXACT, CONV_TF32, CONV_OTHER_EACH_TIME, CONV_ROUGH } conv_manner;

typedef struct conv_job {
    conv_direction direction;
    bool has_bias;
    int64_t stride[2], padding[2], dilation[2];
    conv_tensor tensors[CONV_TENSORS];
    CUdeviceptr at[CONV_TENSORS], workspace;
    conv_manner manner;
    bool by_workspace; /* sums are kept there */
} conv_job;

int64_t conv_numel(const conv_tensor *t);

/* The tensor that is computed. */
int conv_result(const conv_job *j);

/* What runs on the stream; `arg` is a conv_job. */
CUresult conv_compute(void *arg);

#endif
