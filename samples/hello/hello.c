/* The shortest whole program: tensors, an operator, a gradient, on the device TENON_DEVICE names.
 */
#include <stdio.h>
#include <tenon/tenon.h>

static tn_status run(void) {
    TN_SCOPE; /* what operators make below is gone at the end of the block */

    char name[64];
    tn_device device = tn_default_device(); /* TENON_DEVICE, else cpu:0 */
    printf("device %s\n", tn_device_name(device, name, sizeof(name)));

    const float data[] = {1, 2, 3, 4, 5, 6};
    tn_tensor *x = tn_from_data(data, TN_SHAPE(2, 3), TN_F32, device);
    tn_set_requires_grad(x, true);

    tn_tensor *y = tn_sum(tn_mul(x, x)); /* 1 + 4 + 9 + 16 + 25 + 36 */
    if (tn_backward(y) != TN_OK)         /* the one check: a failure above arrives here too */
        return tn_error_status();

    double value;
    if (tn_item(y, &value) != TN_OK)
        return tn_error_status();
    printf("sum of squares %g\nits gradient, 2 x:\n", value);
    return tn_print(tn_grad(x));
}

int main(void) {
    if (run() != TN_OK) {
        fprintf(stderr, "hello: %s\n", tn_error_message());
        return 1;
    }
    return 0;
}
