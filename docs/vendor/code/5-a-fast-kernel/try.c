/* Products of sizes that do and do not fill the tiles, against the CPU; then how fast one is. */
#include <math.h>
#include <stdio.h>
#include <tenon/tenon.h>

enum { MOST = 70 };

/* Largest difference of x @ y between the devices, or -1. */
static double difference(int64_t m, int64_t k, int64_t n) {
    TN_SCOPE;
    static float cpu[MOST * MOST], npu[MOST * MOST];
    const uint64_t bytes = (uint64_t)(m * n) * sizeof *cpu;
    tn_device there = tn_device_parse("npu:0");
    tn_tensor *x = tn_randn(TN_SHAPE(m, k), TN_F32, tn_device_parse("cpu:0"));
    tn_tensor *y = tn_randn(TN_SHAPE(k, n), TN_F32, tn_device_parse("cpu:0"));
    tn_tensor *z = tn_matmul(tn_to_device(x, there), tn_to_device(y, there));
    if (tn_to_host(tn_matmul(x, y), cpu, bytes) != TN_OK || tn_to_host(z, npu, bytes) != TN_OK)
        return -1;
    double most = 0;
    for (int64_t i = 0; i < m * n; i++)
        most = fmax(most, fabs(cpu[i] - npu[i]));
    return most;
}

/* Operations for each nanosecond. */
static double speed(int64_t n) {
    TN_SCOPE;
    double ns = 0;
    tn_device npu = tn_device_parse("npu:0");
    tn_event *start = tn_event_create(npu, true), *end = tn_event_create(npu, true);
    tn_tensor *x = tn_full(TN_SHAPE(n, n), tn_float(1), TN_F32, npu);
    tn_event_record(start, tn_current_stream(npu));
    tn_matmul(x, x);
    tn_event_record(end, tn_current_stream(npu));
    tn_event_synchronize(end);
    tn_event_elapsed(start, end, &ns);
    tn_event_destroy(end);
    tn_event_destroy(start);
    return 2.0 * (double)(n * n * n) / ns;
}

int main(void) {
    static const int64_t sizes[] = {1, 3, 4, 16, 17, MOST};
    enum { N_SIZES = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < N_SIZES * N_SIZES * N_SIZES; i++) {
        const int64_t m = sizes[i % N_SIZES], k = sizes[i / N_SIZES % N_SIZES];
        const int64_t n = sizes[i / N_SIZES / N_SIZES];
        const double most = difference(m, k, n);
        if (most < 0 || most > 1e-4) {
            fprintf(stderr, "[%d, %d] x [%d, %d]: difference %g %s\n", (int)m, (int)k, (int)k,
                    (int)n, most, tn_error_message());
            return 1;
        }
    }
    printf("512 x 512: %.1f GFLOP/s\n", speed(512));
    return 0;
}
