/* Bytes go there and come back; a device that is full says so and goes on. */
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

static float big[32 << 20]; /* 128 MiB, twice what the device has */

int main(void) {
    TN_SCOPE;
    const float data[] = {1, 2, 3, 4, 5, 6};
    float back[6] = {0};
    tn_device npu = tn_device_parse("npu:0");

    if (tn_from_data(big, TN_SHAPE(32 << 20), TN_F32, npu)) {
        fprintf(stderr, "128 MiB went into 64\n");
        return 1;
    }
    printf("%s\n", tn_error_message());
    if (!strstr(tn_error_message(), "use a smaller batch"))
        return 1;
    tn_error_clear();

    tn_tensor *x = tn_from_data(data, TN_SHAPE(2, 3), TN_F32, npu);
    if (!x || tn_to_host(x, back, sizeof back) != TN_OK) {
        fprintf(stderr, "%s\n", tn_error_message());
        return 1;
    }
    return memcmp(data, back, sizeof back) != 0;
}
