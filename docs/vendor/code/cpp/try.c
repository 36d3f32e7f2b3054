/* The same calls on the CPU and on the device give the same numbers, and what does not fit is refused
 * with a message. */
#include <stdio.h>
#include <tenon/tenon.h>

static bool same(const char *name, tn_tensor *a, tn_tensor *b) {
    double x = 0, y = -1;
    bool equal = tn_item(a, &x) == TN_OK && tn_item(b, &y) == TN_OK && x == y;
    printf("%-8s %g %s\n", name, y, equal ? "on both" : tn_error_message());
    return equal;
}

/* sum((x + 0.5 y) transposed), of matrices of 12 numbers */
static tn_tensor *calculate(const char *device, tn_dtype dtype) {
    tn_device where = tn_device_parse(device);
    float data[12];
    for (int i = 0; i < 12; i++)
        data[i] = (float)i / 4 - 1;
    tn_tensor *x = tn_to_dtype(tn_from_data(data, TN_SHAPE(3, 4), TN_F32, where), dtype);
    tn_tensor *y = tn_full(TN_SHAPE(4), tn_float(3), dtype, where);
    return tn_sum(tn_to_dtype(tn_contiguous(tn_t(tn_add(x, y, tn_float(0.5)))), TN_F32));
}

int main(void) {
    TN_SCOPE;
    bool good = same("f32", calculate("cpu:0", TN_F32), calculate("npu:0", TN_F32)) &&
                same("f64", calculate("cpu:0", TN_F64), calculate("npu:0", TN_F64));
    uint64_t huge = (uint64_t)1 << 50;
    tn_tensor *none = tn_empty(TN_SHAPE((int64_t)huge), TN_F32, tn_device_parse("npu:0"));
    printf("2^52 bytes: %s\n", none ? "served" : tn_error_message());
    tn_error_clear();
    return good && !none ? 0 : 1;
}
