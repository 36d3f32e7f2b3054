/* Three steps of training on cpu and sim, with every loss to its last bit: what cores of two versions
 * must agree on. */
#include <stdio.h>
#include <tenon/tenon.h>

static tn_status train(const char *name) {
    TN_SCOPE;
    tn_device device = tn_device_parse(name);
    if (device.type == 0)
        return tn_error_status();
    tn_manual_seed(7);
    tn_tensor *x = tn_randn(TN_SHAPE(8, 5), TN_F32, device);
    tn_tensor *target =
        tn_from_data((int64_t[]){0, 1, 2, 0, 1, 2, 0, 1}, TN_SHAPE(8), TN_I64, device);
    tn_tensor *params[] = {tn_randn(TN_SHAPE(4, 5), TN_F32, device),
                           tn_randn(TN_SHAPE(3, 4), TN_F32, device)};
    tn_set_requires_grad(params[0], true);
    tn_set_requires_grad(params[1], true);
    tn_sgd_options options = tn_sgd_defaults();
    options.lr = 0.1;
    options.momentum = 0.9;
    tn_optimizer *sgd = tn_sgd_create(params, 2, &options);
    tn_status status = sgd ? TN_OK : tn_error_status();
    for (int i = 0; i < 3 && status == TN_OK; i++) {
        double value;
        tn_tensor *hidden = tn_relu(tn_linear(x, params[0]));
        tn_tensor *loss = tn_cross_entropy(tn_linear(hidden, params[1]), target);
        status = tn_item(loss, &value);
        if (status == TN_OK)
            status = tn_backward(loss);
        if (status == TN_OK)
            status = tn_optimizer_step(sgd);
        if (status == TN_OK)
            status = tn_optimizer_zero_grad(sgd);
        printf("%s: loss %a\n", name, value);
    }
    tn_optimizer_destroy(sgd);
    return status;
}

int main(void) {
    if (train("cpu:0") || train("sim:0")) {
        fprintf(stderr, "%s\n", tn_error_message());
        return 1;
    }
    return 0;
}
