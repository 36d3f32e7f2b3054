/* A program that uses a little of everything: planted DEVICE. What the validation layer found is
 * printed, a line each: "TNP-71 kernel->run exp: wrote behind output 0". planted_test.py runs it
 * on devices that are wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>
#include <tenon/validation.h>

enum { N = 4096 };

/* Dense, of every second column, transposed, expanded, in place; sizes that are no multiple of a
 * vector. */
static void compute(tn_device device) {
    TN_SCOPE;
    TN_NO_GRAD;
    float numbers[7 * 9];
    int64_t places[5] = {3, 0, 5, 1, 2};
    for (int i = 0; i < 7 * 9; i++)
        numbers[i] = (float)(i * 37 % 41) / 8;
    tn_tensor *x = tn_from_data(numbers, TN_SHAPE(7, 9), TN_F32, device);
    tn_tensor *index = tn_from_data(places, TN_SHAPE(5), TN_I64, device);
    tn_exp(x);
    tn_sin_(tn_mul(x, x));
    tn_sum(tn_contiguous(tn_slice(x, 1, 0, 9, 2)));
    tn_add(tn_transpose(x, 0, 1), tn_transpose(x, 0, 1));
    tn_add(x, tn_select(x, 0, 1));
    tn_index_select(x, 0, index);
    tn_index_select(x, 0,
                    tn_slice((tn_cat)((tn_tensor *const[]){index, index}, 2, 0), 0, 0, 10, 3));
    tn_gather(x, 0, tn_expand(tn_reshape(index, TN_SHAPE(5, 1)), TN_SHAPE(5, 9)));
    tn_mm(x, tn_transpose(x, 0, 1));
}

/* Pageable memory that is written over at once. */
static void transfer(tn_device device) {
    TN_SCOPE;
    float *numbers = malloc(N * sizeof *numbers), back[16];
    for (int i = 0; numbers && i < 4; i++) {
        for (int j = 0; j < N; j++)
            numbers[j] = (float)j;
        tn_tensor *x = tn_from_data(numbers, TN_SHAPE(N), TN_F32, device);
        memset(numbers, 0, N * sizeof *numbers);
        tn_to_host(tn_slice(x, 0, 0, 16, 1), back, sizeof back);
    }
    free(numbers);
}

/* Two streams that wait for each other, and are asked while they work. */
static void order(tn_device device) {
    TN_SCOPE;
    tn_stream *a = tn_stream_create(device, 0), *b = tn_stream_create(device, 0);
    tn_event *event = tn_event_create(device, false);
    for (int i = 0; event && i < 30; i++) {
        tn_set_current_stream(a);
        tn_tensor *x = tn_ones(TN_SHAPE(N), TN_F32, device);
        tn_event_record(event, a);
        tn_event_wait(event, b);
        tn_set_current_stream(b);
        tn_record_stream(x, b);
        tn_add(x, x);
        tn_stream_query(a);
        tn_stream_query(b);
        tn_stream_synchronize(b);
    }
    tn_set_current_stream(NULL);
    tn_event_destroy(event);
    tn_stream_drop(a);
    tn_stream_drop(b);
}

/* What fails, and goes on. */
static void fail(tn_device device) {
    TN_SCOPE;
    int64_t far = 99;
    tn_tensor *x = tn_ones(TN_SHAPE(3, 3), TN_F32, device);
    for (int i = 0; i < 2; i++) {
        tn_gather(x, 0, tn_from_data(&far, TN_SHAPE(1, 1), TN_I64, device));
        tn_synchronize(device);
        tn_error_clear();
        tn_synchronize(device);
        tn_error_clear();
    }
    tn_empty(TN_SHAPE(INT64_C(1) << 50), TN_U8, device);
    tn_error_clear();
}

int main(int argc, char **argv) {
    tn_device device = tn_device_parse(argc > 1 ? argv[1] : "");
    if (device.type == 0) {
        fprintf(stderr, "%s\n", tn_error_message());
        return 2;
    }
    compute(device);
    transfer(device);
    order(device);
    fail(device);
    tn_error_clear();
    tn_shutdown();
    tn_validation_finding f = {.struct_size = sizeof f};
    for (uint64_t i = 0; tn_validation_get(i, &f) == TN_OK; i++)
        printf("TNP-%u %s %s: %s\n", f.requirement, f.slot, f.op, f.text);
    return 0;
}
