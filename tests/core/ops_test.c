/* Numbers in, numbers out: see ops_test.h. */
#include "tests/core/ops_test.h"

tn_device dev;

bool device_named(int argc, char **argv, char *name) {
    if (argc < 2)
        return true;
    snprintf(name, 32, "%s", argv[1]);
    bool there = tn_device_parse(name).type != 0;
    if (there)
        tn_shutdown();
    else
        printf("skipped: %s\n", tn_error_message());
    return there;
}

int on_device(void **state) {
    const char *name = *state;
    void *none = NULL;
    fresh(&none);
    dev = tn_device_parse(name);
    assert_string_equal(tn_error_message(), "");
    assert_int_equal(tn_set_default_device(dev), TN_OK);
    return 0;
}

/* A test that failed has left its scope open. */
int leave_device(void **state) {
    tn_scope_close(0);
    return leave_clean(state);
}

static uint64_t count(tn_ints shape) {
    uint64_t n = 1;
    for (int64_t d = 0; d < shape.n; d++)
        n *= (uint64_t)shape.data[d];
    return n;
}

tn_tensor *of_values(tn_dtype dtype, tn_ints shape, const double *values, uint64_t n) {
    assert_int_equal(n, count(shape));
    tn_device cpu = tn_device_parse("cpu:0");
    tn_tensor *t = NULL;
    if (dtype == TN_I64) { /* not by way of doubles, which do not hold the largest */
        int64_t *integers = malloc((n + 1) * sizeof *integers);
        for (uint64_t i = 0; i < n; i++)
            integers[i] = values[i] >= 0x1p63 ? INT64_MAX : (int64_t)values[i];
        t = tn_from_data(integers, shape, TN_I64, cpu);
        free(integers);
    } else {
        t = tn_to_dtype(tn_from_data(values, shape, TN_F64, cpu), dtype);
    }
    t = tn_to_device(t, dev);
    if (!t)
        fail_msg("%s", tn_error_message());
    return t;
}

tn_tensor *noise(tn_dtype dtype, tn_ints shape, uint32_t seed) {
    uint64_t n = count(shape);
    double *values = malloc((n + 1) * sizeof *values);
    for (uint64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (double)(seed >> 24) / 64 - 2;
    }
    tn_tensor *t = of_values(dtype, shape, values, n);
    free(values);
    return t;
}

tn_tensor *requiring_grad(tn_tensor *t) {
    t = tn_set_requires_grad(tn_detach(t), true);
    assert_non_null(t);
    return t;
}

tn_tensor *restrided(tn_tensor *t) {
    return tn_transpose(tn_clone(tn_contiguous(tn_transpose(t, 0, -1))), 0, -1);
}

double *values_of(tn_tensor *t) {
    if (!t)
        fail_msg("the operator failed: %s", tn_error_message());
    uint64_t n = (uint64_t)tn_numel(t);
    double *values = malloc((n + 1) * sizeof *values);
    tn_tensor *host = tn_to_dtype(tn_to_device(tn_detach(t), tn_device_parse("cpu:0")), TN_F64);
    if (tn_to_host(host, values, n * sizeof *values) != TN_OK)
        fail_msg("%s", tn_error_message());
    return values;
}

static bool near(double a, double b, double tolerance) {
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

void check_tensor(tn_tensor *t, tn_dtype dtype, tn_ints shape, double tolerance,
                  const double *values, uint64_t n, const char *file, int line) {
    if (!t)
        fail_msg("%s:%d: the operator failed: %s", file, line, tn_error_message());
    char want[TNI_SHAPE_TEXT], have[TNI_SHAPE_TEXT];
    tn_ints sizes = tn_sizes(t);
    tni_shape_text((int32_t)shape.n, shape.data, want);
    tni_shape_text((int32_t)sizes.n, sizes.data, have);
    if (strcmp(want, have) != 0 || tn_dtype_of(t) != dtype || n != (uint64_t)tn_numel(t))
        fail_msg("%s:%d: expected %s %s of %llu values, got %s %s", file, line,
                 tn_dtype_name(dtype), want, (unsigned long long)n, tn_dtype_name(tn_dtype_of(t)),
                 have);
    double *got = values_of(t);
    for (uint64_t i = 0; i < n; i++)
        if (!near(got[i], values[i], tolerance))
            fail_msg("%s:%d: element %llu is %.17g, expected %.17g", file, line,
                     (unsigned long long)i, got[i], values[i]);
    free(got);
}

tn_tensor *counting(tn_dtype dtype, tn_ints shape) {
    uint64_t n = count(shape);
    double *values = malloc((n + 1) * sizeof *values);
    for (uint64_t i = 0; i < n; i++)
        values[i] = (double)i;
    tn_tensor *t = of_values(dtype, shape, values, n);
    free(values);
    return t;
}

void check_values(tn_tensor *t, tn_ints shape, double tolerance, const double *values,
                  const char *file, int line) {
    check_tensor(t, t ? tn_dtype_of(t) : TN_DTYPE_NONE, shape, tolerance, values, count(shape),
                 file, line);
}

static void *bytes_of(tn_tensor *t, uint64_t *out_n, const char *file, int line) {
    if (!t)
        fail_msg("%s:%d: the operator failed: %s", file, line, tn_error_message());
    *out_n = (uint64_t)(tn_numel(t) * tn_dtype_size(tn_dtype_of(t)));
    void *bytes = malloc(*out_n + 1);
    check_ok(tn_to_host(t, bytes, *out_n), file, line);
    return bytes;
}

void check_same(tn_tensor *a, tn_tensor *b, const char *file, int line) {
    uint64_t n[2];
    void *bytes[2] = {bytes_of(a, &n[0], file, line), bytes_of(b, &n[1], file, line)};
    check_ints(tn_sizes(a), tn_sizes(b), file, line);
    if (tn_dtype_of(a) != tn_dtype_of(b) || memcmp(bytes[0], bytes[1], n[0]) != 0)
        fail_msg("%s:%d: two tensors differ", file, line);
    free(bytes[0]);
    free(bytes[1]);
}

void check_ints(tn_ints have, tn_ints want, const char *file, int line) {
    char a[TNI_SHAPE_TEXT], b[TNI_SHAPE_TEXT];
    tni_shape_text((int32_t)have.n, have.data, a);
    tni_shape_text((int32_t)want.n, want.data, b);
    if (strcmp(a, b) != 0)
        fail_msg("%s:%d: expected %s, got %s", file, line, b, a);
}

void check_ok(tn_status status, const char *file, int line) {
    if (status != TN_OK)
        fail_msg("%s:%d: %s: %s", file, line, tn_status_name(status), tn_error_message());
}

uint32_t next_case(uint64_t *state, uint32_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}
