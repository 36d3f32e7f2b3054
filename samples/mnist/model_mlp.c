/* The plain network: 784 pixels, two hidden layers of 256 and 128, ten classes. */
#include "model.h"

/* In the order in which model_mlp_init adds them. */
enum { W1, B1, W2, B2, W3, B3 };

static tn_tensor *forward(const model *m, tn_tensor *images, bool training) {
    tn_tensor *const *p = m->parameters;
    tn_tensor *x = tn_flatten(images, 1);    /* [n, 784] */
    x = tn_relu(tn_linear(x, p[W1], p[B1])); /* [n, 256] */
    x = tn_relu(tn_linear(x, p[W2], p[B2])); /* [n, 128] */
    return tn_linear(x, p[W3], p[B3]);       /* [n, 10] */
}

static tn_status add_layer(model *m, int64_t n_in, int64_t n_out, tn_device device) {
    if (model_add(m, TN_SHAPE(n_out, n_in), n_in, device) != TN_OK)
        return tn_error_status();
    return model_add(m, TN_SHAPE(n_out), n_in, device);
}

tn_status model_mlp_init(model *m, tn_device device) {
    *m = (model){.name = "mlp", .epochs = 6, .forward = forward};
    if (add_layer(m, 784, 256, device) != TN_OK || add_layer(m, 256, 128, device) != TN_OK)
        return tn_error_status();
    return add_layer(m, 128, 10, device);
}
