/* See rig.h. */
#include "tests/opencl/rig.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

enum { SKIPPED = 77, N = 1000 };

const char *rig_plugin;

int rig_setup(void **state) {
    layer_say("");
    return 0;
}

int rig_teardown(void **state) {
    const char *which = NULL;
    int64_t n = layer_alive(&which);
    layer_say("");
    layer_forget_alive();
    if (n)
        print_error("%lld objects of OpenCL are left, of kind %s\n", (long long)n, which);
    return n ? -1 : 0;
}

static tn_status negate(mini *m, mini_tensor *in, mini_tensor *out) {
    static float numbers[N], results[N];
    for (int i = 0; i < N; i++)
        numbers[i] = (float)i;
    tn_status status = mini_tensor_write(m, in, numbers);
    if (status == TN_OK)
        status = mini_run(m, mini_find(m, "neg", TN_F32, TN_DTYPE_NONE), 1,
                          (tn_cell[]){mini_view(in)}, 1, (mini_tensor *[]){out});
    if (status == TN_OK)
        status = mini_tensor_read(m, out, results);
    if (status == TN_OK)
        status = mini_synchronize(m);
    for (int i = 0; status == TN_OK && i < N; i++)
        assert_true(results[i] == -(float)i);
    return status;
}

tn_status rig_work(mini *m) {
    int64_t size = N;
    mini_tensor *in = mini_tensor_create(m, TN_F32, 1, &size, NULL, 0);
    mini_tensor *out = mini_tensor_create(m, TN_F32, 1, &size, NULL, 0);
    return in && out ? negate(m, in, out) : TN_ERR_OUT_OF_MEMORY;
}

/* Why nothing can be tested here, or NULL. */
static const char *find_driver(void) {
    cl_platform_id platform;
    cl_device_id device;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS)
        return "no OpenCL platform; install one, such as pocl-opencl-icd";
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
        return "the OpenCL platform has no device";
    return layer_in_use() ? NULL : "the OpenCL loader takes no layers (OPENCL_LAYERS)";
}

int main(int argc, char **argv) {
    if (argc != 2) {
        print_error("usage: OPENCL_LAYERS=LAYER.so %s PLUGIN.so\n", argv[0]);
        return 2;
    }
    const char *why = find_driver();
    if (why) {
        printf("skipped: %s\n", why);
        return SKIPPED;
    }
    rig_plugin = argv[1];
    return all_tests();
}
