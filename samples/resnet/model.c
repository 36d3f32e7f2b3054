/* The network. Read resnet_forward first. */
#include "model.h"

#include <math.h>

/* ---- parameters -------------------------------------------------------------------------- */

/* A convolution without a bias, which the norm behind it has. */
static tn_status conv_init(tn_nn_conv *m, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                           tn_device device) {
    int64_t padding = kernel / 2;
    tn_nn_conv_options o = {.in_channels = in,
                            .out_channels = out,
                            .kernel_size = {kernel, kernel},
                            .stride = {stride, stride},
                            .padding = {padding, padding},
                            .no_bias = true};
    tn_status status = tn_nn_conv_init(m, &o, device, TN_F32);
    if (status == TN_OK && !tn_nn_kaiming_normal_(m->weight, TN_NN_FAN_OUT, sqrt(2)))
        status = tn_error_status();
    return status;
}

static tn_status norm_init(tn_nn_batch_norm *m, int64_t n, tn_device device) {
    return tn_nn_batch_norm_init(m, &(tn_nn_batch_norm_options){.num_features = n}, device, TN_F32);
}

static tn_status block_init(block *b, int64_t in, int64_t out, int64_t stride, tn_device device) {
    b->changes = in != out || stride != 1;
    tn_status status = conv_init(&b->conv1, in, out, 3, stride, device);
    if (status == TN_OK)
        status = norm_init(&b->bn1, out, device);
    if (status == TN_OK)
        status = conv_init(&b->conv2, out, out, 3, 1, device);
    if (status == TN_OK)
        status = norm_init(&b->bn2, out, device);
    if (status == TN_OK && b->changes)
        status = conv_init(&b->down_conv, in, out, 1, stride, device);
    if (status == TN_OK && b->changes)
        status = norm_init(&b->down_bn, out, device);
    return status;
}

/* Each layer but the first halves the sides and doubles the channels. */
static tn_status layers_init(resnet *m, tn_device device) {
    int64_t in = m->config.width;
    tn_status status = TN_OK;
    for (int i = 0; i < N_LAYERS; i++)
        for (int k = 0; k < N_BLOCKS && status == TN_OK; k++) {
            int64_t out = m->config.width << i;
            status = block_init(&m->layers[i][k], in, out, i > 0 && k == 0 ? 2 : 1, device);
            in = out;
        }
    return status;
}

tn_status resnet_init(resnet *m, const resnet_config *config, tn_device device) {
    *m = (resnet){.config = *config};
    bool large = config->stem == STEM_IMAGENET;
    tn_status status = conv_init(&m->conv1, 3, config->width, large ? 7 : 3, large ? 2 : 1, device);
    if (status == TN_OK)
        status = norm_init(&m->bn1, config->width, device);
    if (status == TN_OK)
        status = layers_init(m, device);
    tn_nn_linear_options fc = {.in_features = config->width << (N_LAYERS - 1),
                               .out_features = config->n_classes};
    return status == TN_OK ? tn_nn_linear_init(&m->fc, &fc, device, TN_F32) : status;
}

static void block_visit(block *b, tn_nn_visitor *v) {
    tn_nn_conv_visit(&b->conv1, "conv1", v);
    tn_nn_batch_norm_visit(&b->bn1, "bn1", v);
    tn_nn_conv_visit(&b->conv2, "conv2", v);
    tn_nn_batch_norm_visit(&b->bn2, "bn2", v);
    tn_nn_conv_visit(&b->down_conv, "downsample.0", v);
    tn_nn_batch_norm_visit(&b->down_bn, "downsample.1", v);
}

void resnet_visit(void *model, tn_nn_visitor *v) {
    resnet *m = model;
    tn_nn_conv_visit(&m->conv1, "conv1", v);
    tn_nn_batch_norm_visit(&m->bn1, "bn1", v);
    for (int i = 0; i < N_LAYERS; i++)
        for (int k = 0; k < N_BLOCKS; k++) {
            tn_nn_enter(v, "layer%d.%d", i + 1, k);
            block_visit(&m->layers[i][k], v);
            tn_nn_leave(v);
        }
    tn_nn_linear_visit(&m->fc, "fc", v);
}

void resnet_finish(resnet *m) {
    tn_nn_finish(m, resnet_visit);
}

/* ---- the network ------------------------------------------------------------------------- */

/* x: [n, in, h, w] to [n, out, h / stride, w / stride]. */
static tn_tensor *block_forward(block *b, tn_tensor *x) {
    tn_tensor *y = tn_nn_batch_norm_forward(&b->bn1, tn_nn_conv_forward(&b->conv1, x));
    y = tn_nn_batch_norm_forward(&b->bn2, tn_nn_conv_forward(&b->conv2, tn_relu(y)));
    if (b->changes)
        x = tn_nn_batch_norm_forward(&b->down_bn, tn_nn_conv_forward(&b->down_conv, x));
    return tn_relu(tn_add(y, x));
}

tn_tensor *resnet_forward(resnet *m, tn_tensor *images) {
    tn_tensor *x = tn_nn_conv_forward(&m->conv1, images); /* [n, width, h, w], or halves */
    x = tn_relu(tn_nn_batch_norm_forward(&m->bn1, x));
    if (m->config.stem == STEM_IMAGENET)
        x = tn_max_pool2d(x, TN_SHAPE(3, 3), TN_SHAPE(2, 2), TN_SHAPE(1, 1));
    for (int i = 0; i < N_LAYERS; i++)
        for (int k = 0; k < N_BLOCKS; k++)
            x = block_forward(&m->layers[i][k], x);
    x = tn_mean_dim(x, TN_DIMS(2, 3)); /* [n, 8 width] */
    return tn_nn_linear_forward(&m->fc, x);
}
