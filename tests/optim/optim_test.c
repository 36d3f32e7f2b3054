/* See optim_test.h. */
#include "tests/optim/optim_test.h"

static const char *device_name(void) {
    const char *name = getenv("TENON_DEVICE");
    return name ? name : "cpu:0";
}

tn_device here(void) {
    return tn_device_parse(device_name());
}

bool on_sim(void) {
    return strcmp(device_name(), "sim:0") == 0;
}

static tn_tensor *there(tn_dtype dtype, const double *data, int64_t n) {
    return tn_to_device(tn_to_dtype(values(TN_SHAPE(n), data), dtype), here());
}

tn_tensor *param_of(tn_dtype dtype, const double *data, int64_t n) {
    return tn_set_requires_grad(there(dtype, data, n), true);
}

void give_grad(tn_tensor *param, const double *data) {
    TN_SCOPE;
    assert_ok(tn_set_grad(param, there(tn_dtype_of(param), data, tn_numel(param))));
}

void read_values(tn_tensor *t, double *out, int64_t n) {
    TN_SCOPE;
    TN_NO_GRAD;
    assert_int_equal(tn_numel(t), n);
    assert_ok(
        tn_to_host(tn_to_dtype(tn_to_device(t, cpu()), TN_F64), out, (uint64_t)n * sizeof *out));
}

void assert_same(tn_tensor *a, tn_tensor *b) {
    double x[16], y[16];
    read_values(a, x, tn_numel(a));
    read_values(b, y, tn_numel(a));
    for (int64_t i = 0; i < tn_numel(a); i++)
        if (x[i] != y[i])
            fail_msg("element %lld is %a and %a", (long long)i, x[i], y[i]);
}
