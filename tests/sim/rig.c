/* The tests' own view of the element types: nothing here is shared with the plugin. */
#include "rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *rig_plugin;
mini rig;

int rig_setup(void **state) {
    if (mini_open(&rig, rig_plugin, 0))
        return 0;
    print_error("%s\n", mini_error());
    return -1;
}

int rig_teardown(void **state) {
    return mini_close(&rig) ? 0 : -1;
}

/* ---- elements ---- */

bool is_float(tn_dtype dtype) {
    return TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype);
}

double epsilon(tn_dtype dtype) {
    return dtype == TN_F64   ? 0x1p-52
           : dtype == TN_F32 ? 0x1p-23
           : dtype == TN_F16 ? 0x1p-10
                             : 0x1p-7;
}

/* A 16-bit float with `digits` bits of fraction, by the definition. */
static double decode16(uint16_t h, int digits) {
    const int bias = (1 << (14 - digits)) - 1, top = 2 * bias + 1;
    const int exponent = (h & 0x7fff) >> digits;
    const double fraction = h & ((1 << digits) - 1), sign = h & 0x8000 ? -1 : 1;
    if (exponent == top)
        return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - digits);
    return sign * ldexp(fraction + (1 << digits), exponent - bias - digits);
}

/* Nearest even, by search: the bit patterns of positive numbers are in order. */
static uint16_t encode16(double x, int digits) {
    const int bias = (1 << (14 - digits)) - 1;
    const uint16_t infinity = (uint16_t)((2 * bias + 1) << digits);
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return infinity | 1;
    x = fabs(x);
    uint16_t low = 0, high = infinity; /* decode(low) <= x < decode(high), x finite */
    if (isinf(x))
        return sign | infinity;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (decode16(middle, digits) <= x)
            low = middle;
        else
            high = middle;
    }
    /* What infinity would be if there were one more exponent. */
    const double above = high == infinity ? ldexp(1, bias + 1) : decode16(high, digits);
    const double to_low = x - decode16(low, digits), to_high = above - x;
    if (to_low < to_high || (to_low == to_high && !(low & 1)))
        return sign | low;
    return sign | high;
}

number get(tn_dtype dtype, const void *data, int64_t i) {
    number n = {0};
    switch (dtype) {
    case TN_F32:
        n.f = ((const float *)data)[i];
        break;
    case TN_F64:
        n.f = ((const double *)data)[i];
        break;
    case TN_F16:
        n.f = decode16(((const uint16_t *)data)[i], 10);
        break;
    case TN_BF16:
        n.f = decode16(((const uint16_t *)data)[i], 7);
        break;
    case TN_I8:
        n.i = ((const int8_t *)data)[i];
        break;
    case TN_I16:
        n.i = ((const int16_t *)data)[i];
        break;
    case TN_I32:
        n.i = ((const int32_t *)data)[i];
        break;
    case TN_I64:
        n.i = ((const int64_t *)data)[i];
        break;
    default:
        n.i = ((const uint8_t *)data)[i];
        break;
    }
    return n;
}

void set(tn_dtype dtype, void *data, int64_t i, number x) {
    switch (dtype) {
    case TN_F32:
        ((float *)data)[i] = (float)x.f;
        break;
    case TN_F64:
        ((double *)data)[i] = x.f;
        break;
    case TN_F16:
        ((uint16_t *)data)[i] = encode16(x.f, 10);
        break;
    case TN_BF16:
        ((uint16_t *)data)[i] = encode16(x.f, 7);
        break;
    case TN_I8:
        ((int8_t *)data)[i] = (int8_t)x.i;
        break;
    case TN_I16:
        ((int16_t *)data)[i] = (int16_t)x.i;
        break;
    case TN_I32:
        ((int32_t *)data)[i] = (int32_t)x.i;
        break;
    case TN_I64:
        ((int64_t *)data)[i] = x.i;
        break;
    case TN_U8:
        ((uint8_t *)data)[i] = (uint8_t)x.i;
        break;
    default:
        ((uint8_t *)data)[i] = x.i != 0;
        break;
    }
}

uint64_t random_u64(void) {
    static uint64_t state = 42; /* splitmix64 */
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

void set_random(tn_dtype dtype, void *data, int64_t i, double low, double high) {
    number x = {.f = low + (high - low) * (double)(random_u64() >> 11) * 0x1p-53};
    if (!is_float(dtype))
        x.i = (int64_t)low + (int64_t)(random_u64() % (uint64_t)(high - low + 1));
    if (dtype == TN_BOOL)
        x.i = random_u64() & 1;
    if (dtype == TN_U8)
        x.i = llabs(x.i);
    set(dtype, data, i, x);
}

/* ---- tensors with a host copy ---- */

array array_create(tn_dtype dtype, int32_t rank, const int64_t *sizes) {
    array a = {.tensor = mini_tensor_create(&rig, dtype, rank, sizes, NULL, 0), .dtype = dtype};
    assert_non_null(a.tensor);
    a.numel = a.tensor->view.numel;
    a.host = calloc(1, a.tensor->bytes);
    assert_non_null(a.host);
    return a;
}

array array_random(tn_dtype dtype, int32_t rank, const int64_t *sizes, double low, double high) {
    array a = array_create(dtype, rank, sizes);
    for (int64_t i = 0; i < a.numel; i++)
        set_random(dtype, a.host, i, low, high);
    array_upload(&a);
    return a;
}

void array_upload(array *a) {
    assert_ok(mini_tensor_write(&rig, a->tensor, a->host));
}

void array_download(array *a) {
    assert_ok(mini_tensor_read(&rig, a->tensor, a->host));
}

void array_free_host(array *a) {
    free(a->host);
    a->host = NULL;
}

/* ---- work ---- */

tn_status rig_launch(const char *op, tn_pdevice *device, tn_pstream *stream, uint32_t n_args,
                     const tn_cell *args, const tn_tensor_view *out) {
    const tn_kernel *kernel = mini_find(&rig, op, TN_DTYPE_NONE, TN_DTYPE_NONE);
    const tn_call call = {
        .struct_size = sizeof call,
        .device = device,
        .stream = stream,
        .user = kernel->user,
        .args = args,
        .outs = &out,
        .n_args = n_args,
        .n_outs = 1,
    };
    return kernel->run(&call);
}

slow slow_create(void) {
    const int64_t sizes[] = {1, 300, 300};
    slow work = {
        .a = mini_tensor_create(&rig, TN_I64, 3, sizes, NULL, 0),
        .b = mini_tensor_create(&rig, TN_I64, 3, sizes, NULL, 0),
        .out = mini_tensor_create(&rig, TN_I64, 3, sizes, NULL, 0),
    };
    const tn_memory_ops *memory = rig.ops->memory;
    assert_ok(memory->fill(rig.device, rig.stream, work.a->view.memory, 0, 0, work.a->bytes));
    assert_ok(memory->fill(rig.device, rig.stream, work.b->view.memory, 0, 0, work.b->bytes));
    assert_ok(mini_synchronize(&rig));
    return work;
}

void slow_queue(const slow *work, tn_pstream *stream, int times) {
    const tn_cell args[] = {mini_view(work->a), mini_view(work->b)};
    for (int i = 0; i < times; i++)
        assert_ok(rig_launch("bmm", rig.device, stream, 2, args, &work->out->view));
}

int main(int argc, char **argv) {
    if (argc != 2) {
        print_error("usage: %s PLUGIN.so\n", argv[0]);
        return 2;
    }
    rig_plugin = argv[1];
    return all_tests();
}
