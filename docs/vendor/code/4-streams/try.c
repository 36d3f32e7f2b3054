/* Products are queued on one stream; another waits for the last of them by an event. */
#include <math.h>
#include <stdio.h>
#include <tenon/tenon.h>

enum { N = 64, PRODUCTS = 20 };

int main(void) {
    TN_SCOPE;
    static float back[N * N];
    double ns = 0;
    tn_device npu = tn_device_parse("npu:0");
    tn_stream *first = tn_current_stream(npu), *second = tn_stream_create(npu, 0);
    tn_event *start = tn_event_create(npu, true), *end = tn_event_create(npu, true);

    /* Every element of x, and of each product, is 1 / N. */
    tn_tensor *x = tn_full(TN_SHAPE(N, N), tn_float(1.0 / N), TN_F32, npu), *y = x;
    bool ok = tn_event_record(start, first) == TN_OK;
    for (int i = 0; i < PRODUCTS; i++)
        y = tn_matmul(y, x);
    ok = ok && tn_event_record(end, first) == TN_OK;

    ok = ok && tn_set_current_stream(second) == TN_OK && tn_event_wait(end, second) == TN_OK;
    tn_tensor *z = tn_add(y, y);
    ok = ok && tn_record_stream(y, second) == TN_OK; /* not reused before `second` has read it */
    ok = ok && z && tn_to_host(z, back, sizeof back) == TN_OK;
    for (int i = 0; ok && i < N * N; i++)
        ok = fabsf(back[i] - 2.0f / N) < 1e-6f;

    ok = ok && tn_event_elapsed(start, end, &ns) == TN_OK && ns > 0;
    if (ok)
        printf("%d products of %d x %d: %.0f us on the device\n", PRODUCTS, N, N, ns / 1000);
    else
        fprintf(stderr, "z is not what it should be: %s\n", tn_error_message());
    tn_event_destroy(end);
    tn_event_destroy(start);
    tn_stream_drop(second);
    return ok ? 0 : 1;
}
