/* The small convolutional network: two 3x3 convolutions, a pool, two dense layers. */
#include "model.h"

/* In the order in which model_cnn_init adds them. */
enum { CONV1, CONV1_BIAS, CONV2, CONV2_BIAS, DENSE1, DENSE1_BIAS, DENSE2, DENSE2_BIAS };

static tn_tensor *forward(const model *m, tn_tensor *images, bool training) {
    tn_tensor *const *p = m->parameters;
    tn_tensor *x = tn_relu(tn_conv2d(images, p[CONV1], p[CONV1_BIAS])); /* [n, 32, 26, 26] */
    x = tn_relu(tn_conv2d(x, p[CONV2], p[CONV2_BIAS]));                 /* [n, 64, 24, 24] */
    x = tn_flatten(tn_max_pool2d(x, TN_DIMS(2, 2)), 1);                 /* [n, 9216] */
    x = tn_dropout(x, 0.25, training);
    x = tn_relu(tn_linear(x, p[DENSE1], p[DENSE1_BIAS])); /* [n, 128] */
    x = tn_dropout(x, 0.5, training);
    return tn_linear(x, p[DENSE2], p[DENSE2_BIAS]); /* [n, 10] */
}

/* A weight and its bias; the weight's first size counts the outputs. */
static tn_status add_layer(model *m, tn_ints shape, int64_t fan_in, tn_device device) {
    if (model_add(m, shape, fan_in, device) != TN_OK)
        return tn_error_status();
    return model_add(m, TN_SHAPE(shape.data[0]), fan_in, device);
}

tn_status model_cnn_init(model *m, tn_device device) {
    *m = (model){.name = "cnn", .epochs = 2, .forward = forward};
    if (add_layer(m, TN_SHAPE(32, 1, 3, 3), 1 * 3 * 3, device) != TN_OK ||
        add_layer(m, TN_SHAPE(64, 32, 3, 3), 32 * 3 * 3, device) != TN_OK ||
        add_layer(m, TN_SHAPE(128, 64 * 12 * 12), 64 * 12 * 12, device) != TN_OK)
        return tn_error_status();
    return add_layer(m, TN_SHAPE(10, 128), 128, device);
}
