/* Uses an operator that Tenon does not have: calls it, asks who answers, and proves its derivative.
 * Read swiglu.c next. */
#include "swiglu.h"

#include <stdio.h>

static tn_status call_swiglu(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                             uint64_t *n_outputs, void *user) {
    outputs[0] = swiglu(inputs[0], inputs[1]);
    *n_outputs = 1;
    return outputs[0] ? TN_OK : tn_error_status();
}

static void print_kernel(const tn_kernel_info *info, void *user) {
    printf("on %s its kernel is %s's; what that does not take is composed\n", info->device,
           info->origin);
}

static tn_status run(void) {
    TN_SCOPE;
    tn_device device = tn_default_device();
    if (device.type == 0 || swiglu_register() != TN_OK)
        return tn_error_status();

    tn_tensor *x = tn_randn(TN_SHAPE(2, 3), TN_F64, device);
    tn_tensor *gate = tn_randn(TN_SHAPE(2, 3), TN_F64, device);
    tn_tensor *y = swiglu(tn_to_dtype(x, TN_F32), tn_to_dtype(gate, TN_F32));
    printf("mylib::swiglu(x, gate) =\n");
    if (tn_print(y) != TN_OK || tn_op_kernels("mylib::swiglu", print_kernel, NULL) != TN_OK)
        return tn_error_status();

    /* The derivative we wrote against differences of the operator itself. */
    tn_tensor *inputs[] = {tn_set_requires_grad(x, true), tn_set_requires_grad(gate, true)};
    if (tn_gradcheck(call_swiglu, NULL, inputs, 2, NULL) != TN_OK)
        return tn_error_status();
    printf("%s agrees with differences of its values\n", tn_grad_fn_name(swiglu(x, gate)));
    return TN_OK;
}

int main(void) {
    tn_status status = run();
    swiglu_unregister();
    if (status != TN_OK) {
        fprintf(stderr, "custom_op: %s\n", tn_error_message());
        return 1;
    }
    return 0;
}
