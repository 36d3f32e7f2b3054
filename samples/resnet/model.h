/* ResNet-18 (He and others, "Deep residual learning for image recognition", 2016). Parameters and
 * buffers have the names and shapes of torchvision's resnet18, whose weights fit where the stem is
 * ImageNet's and the width is 64. */
#ifndef RESNET_MODEL_H
#define RESNET_MODEL_H

#include <tenon/nn.h>
#include <tenon/tenon.h>

enum { N_LAYERS = 4, N_BLOCKS = 2 };

typedef enum stem {
    STEM_CIFAR,   /* 3x3, as it is: for pictures of 32x32 */
    STEM_IMAGENET /* 7x7 and a pool, each of which halves the sides: for 224x224 */
} stem;

typedef struct resnet_config {
    int64_t width; /* channels behind the stem: 64 */
    int64_t n_classes;
    stem stem;
} resnet_config;

/* Two convolutions, and beside them what comes in; by a 1x1 where its shape changes. */
typedef struct block {
    tn_nn_conv conv1, conv2, down_conv;
    tn_nn_batch_norm bn1, bn2, down_bn;
    bool changes;
} block;

typedef struct resnet {
    resnet_config config;
    tn_nn_conv conv1;
    tn_nn_batch_norm bn1;
    block layers[N_LAYERS][N_BLOCKS];
    tn_nn_linear fc;
} resnet;

/* Random weights, as torchvision's are drawn. After an error resnet_finish, too. */
tn_status resnet_init(resnet *m, const resnet_config *config, tn_device device);
void resnet_finish(resnet *m);
/* For tn_nn_parameters and its like. */
void resnet_visit(void *model, tn_nn_visitor *v);

/* [n, 3, h, w] to logits [n, n_classes]. */
tn_tensor *resnet_forward(resnet *m, tn_tensor *images);

#endif
