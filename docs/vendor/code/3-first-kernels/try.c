/* The same calls on the CPU and on the device give the same numbers: also those that no kernel of
 * the device takes as they are, and a derivative. */
#include <math.h>
#include <stdio.h>
#include <tenon/tenon.h>

enum { ROWS = 3, COLUMNS = 4, MOST = ROWS * COLUMNS };

typedef tn_tensor *calculation(tn_tensor *x, tn_tensor *row);

static tn_tensor *add(tn_tensor *x, tn_tensor *row) {
    return tn_add(x, x, tn_float(0.5));
}
static tn_tensor *add_broadcast(tn_tensor *x, tn_tensor *row) {
    return tn_add(x, row);
}
static tn_tensor *add_transposed(tn_tensor *x, tn_tensor *row) {
    return tn_t(tn_add(tn_t(x), tn_t(tn_add(x, row))));
}
static tn_tensor *add_in_place(tn_tensor *x, tn_tensor *row) {
    return tn_add_(tn_add(x, row), x);
}
static tn_tensor *sum_of_columns(tn_tensor *x, tn_tensor *row) {
    return tn_sum_dim(x, TN_DIMS(0));
}
static tn_tensor *sum_of_all(tn_tensor *x, tn_tensor *row) {
    return tn_sum(x);
}
static tn_tensor *matmul(tn_tensor *x, tn_tensor *row) {
    return tn_matmul(x, tn_t(x));
}
static tn_tensor *gradient(tn_tensor *x, tn_tensor *row) {
    tn_tensor *leaf = tn_detach(x);
    tn_set_requires_grad(leaf, true);
    return tn_backward(tn_sum(tn_matmul(leaf, tn_t(leaf)))) == TN_OK ? tn_grad(leaf) : NULL;
}

/* The result of `calculate` on `device`; how many numbers, or -1. */
static int64_t run(calculation *calculate, const char *device, float *out) {
    TN_SCOPE;
    float data[MOST];
    for (int i = 0; i < MOST; i++)
        data[i] = (float)i / 4 - 1;
    tn_device where = tn_device_parse(device);
    tn_tensor *x = tn_from_data(data, TN_SHAPE(ROWS, COLUMNS), TN_F32, where);
    tn_tensor *row = tn_from_data(data, TN_SHAPE(COLUMNS), TN_F32, where);
    tn_tensor *result = calculate(x, row);
    const int64_t n = tn_numel(result);
    if (!result || tn_to_host(result, out, (uint64_t)n * sizeof *out) != TN_OK) {
        fprintf(stderr, "%s: %s\n", device, tn_error_message());
        tn_error_clear();
        return -1;
    }
    return n;
}

static bool compare(const char *name, calculation *calculate) {
    float cpu[MOST], npu[MOST];
    int64_t n = run(calculate, "cpu:0", cpu), n_npu = run(calculate, "npu:0", npu);
    bool same = n > 0 && n == n_npu;
    for (int64_t i = 0; same && i < n; i++)
        same = fabsf(cpu[i] - npu[i]) <= 1e-5f * (1 + fabsf(cpu[i]));
    printf("%-16s %s\n", name, same ? "same" : "DIFFERENT");
    return same;
}

int main(void) {
    bool same = true;
#define COMPARE(name) same &= compare(#name, name)
    COMPARE(add);
    COMPARE(add_broadcast);
    COMPARE(add_transposed);
    COMPARE(add_in_place);
    COMPARE(sum_of_columns);
    COMPARE(sum_of_all);
    COMPARE(matmul);
    COMPARE(gradient);
    return same ? 0 : 1;
}
