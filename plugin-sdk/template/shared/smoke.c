/* smoke.c: does the device open, and do bytes come back as they went? A program as users write
 * them. */
#include <stdio.h>
#include <tenon/tenon.h>

int main(void) {
    TN_SCOPE;
    const float data[] = {1, 2, 3, 4, 5, 6};
    float back[6] = {0};
    tn_device device = tn_device_parse("yourtype:0");
    tn_tensor *x = device.type ? tn_from_data(data, TN_SHAPE(2, 3), TN_F32, device) : NULL;
    if (!x || tn_to_host(x, back, sizeof back) != TN_OK) {
        fprintf(stderr, "%s\n", tn_error_message());
        return 1;
    }
    for (int i = 0; i < 6; i++) {
        if (back[i] != data[i]) {
            fprintf(stderr, "element %d was %g and came back as %g\n", i, data[i], back[i]);
            return 1;
        }
    }
    printf("%s: bytes go there and come back\n", tn_device_product(device));
    return 0;
}
