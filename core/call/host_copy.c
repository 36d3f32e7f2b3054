/* Casts on the host: for a device without a `copy` kernel for a pair of dtypes, and for the pairs of
 * storage dtypes that no kernel could be given as others. */
#include "core/call/host_copy.h"
#include "base/alloc.h"
#include "core/call/cells.h"
#include "core/call/counters.h"
#include "core/call/operands.h"
#include "core/graph/graph.h"

/* ---- one element ------------------------------------------------------------------------- */

/* A number as exact as it came: floating, with an imaginary part, or an integer of 64 bits. */
typedef struct element {
    tn_scalar real; /* of u64 the integer of its bits */
    double imag;
    bool is_u64;
} element;

static element load(const void *data, tn_dtype dtype, int64_t i) {
    element e = {.real = tni_element(data, dtype, i), .is_u64 = dtype == TN_U64};
    if (tni_is_complex(dtype))
        e.imag = tni_element(data, tni_real_dtype(dtype), 2 * i + 1).v.f64;
    return e;
}

static double to_f64(element e) {
    return e.is_u64 ? (double)(uint64_t)e.real.v.i64 : tni_scalar_f64(e.real);
}

/* Rounded once. */
static float to_f32(element e) {
    return e.real.tag == TN_CELL_F64 ? (float)e.real.v.f64
           : e.is_u64                ? (float)(uint64_t)e.real.v.i64
                                     : (float)e.real.v.i64;
}

/* The low bits of the integer. */
static int64_t to_bits(element e, tn_dtype dtype) {
    bool beyond_i64 = e.real.tag == TN_CELL_F64 && e.real.v.f64 >= 0x1p63;
    return dtype == TN_U64 && beyond_i64 && e.real.v.f64 < 0x1p64 ? (int64_t)(uint64_t)e.real.v.f64
                                                                  : tni_scalar_i64(e.real);
}

static void store(void *data, tn_dtype dtype, int64_t i, element e) {
    switch (dtype) {
    case TN_C64:
        ((float *)data)[2 * i + 1] = (float)e.imag;
        ((float *)data)[2 * i] = to_f32(e);
        break;
    case TN_C128:
        ((double *)data)[2 * i + 1] = e.imag;
        ((double *)data)[2 * i] = to_f64(e);
        break;
    case TN_F32:
        ((float *)data)[i] = to_f32(e);
        break;
    case TN_F64:
        ((double *)data)[i] = to_f64(e);
        break;
    case TN_F16:
        ((uint16_t *)data)[i] = tni_f32_to_f16(to_f32(e));
        break;
    case TN_BF16:
        ((uint16_t *)data)[i] = tni_f32_to_bf16(to_f32(e));
        break;
    case TN_I8:
    case TN_U8:
        ((uint8_t *)data)[i] = (uint8_t)to_bits(e, dtype);
        break;
    case TN_I16:
    case TN_U16:
        ((uint16_t *)data)[i] = (uint16_t)to_bits(e, dtype);
        break;
    case TN_I32:
    case TN_U32:
        ((uint32_t *)data)[i] = (uint32_t)to_bits(e, dtype);
        break;
    case TN_I64:
    case TN_U64:
        ((int64_t *)data)[i] = to_bits(e, dtype);
        break;
    case TN_BOOL:
        ((uint8_t *)data)[i] = to_f64(e) != 0 || e.imag != 0;
        break;
    default:
        break;
    }
}

void tni_store_scalar(void *data, tn_dtype dtype, tn_scalar value) {
    store(data, dtype, 0, (element){.real = value});
}

/* ---- a tensor ---------------------------------------------------------------------------- */

/* Reads the bytes a view spans into fresh host memory; *out_first is its first element's address.
 */
static void *read_extent(tn_tensor *t, uint64_t *out_begin, uint64_t *out_bytes) {
    uint64_t end;
    if (tni_capture_check(tni_stream_current(t->device), "a copy through the host",
                          "the device has no kernel copy for it; make the tensor contiguous, or of "
                          "the other dtype, before the capture") != TN_OK)
        return NULL;
    tni_view_extent(&t->view, out_begin, &end);
    *out_bytes = end - *out_begin;
    void *host = tni_alloc(*out_bytes);
    if (!host)
        return tni_fail_memory_null("a staging copy on the host");
    tn_stream *stream = tni_stream_current(t->device);
    tn_status status = t->device->memory->copy_to_host(t->device->handle, stream->handle, host, 0,
                                                       t->view.memory, *out_begin, *out_bytes);
    if (status != TN_OK) {
        tni_device_fail(t->device, status, "reading for a copy through the host");
        tni_free(host);
        return NULL;
    }
    return host;
}

tn_status tni_host_copy(tn_tensor *dst, tn_tensor *src) {
    tni_operands o;
    tni_operands_init(&o, dst->view.rank, dst->sizes);
    tni_operands_add(&o, dst);
    tni_operands_add(&o, src);
    tni_operands_coalesce(&o);
    uint64_t begin[2], bytes[2];
    void *host[2] = {read_extent(dst, &begin[0], &bytes[0]), NULL};
    host[1] = host[0] ? read_extent(src, &begin[1], &bytes[1]) : NULL;
    tn_status status = host[1] ? TN_OK : tni_failed();
    if (status == TN_OK) {
        int64_t index[TN_MAX_RANK] = {0};
        const int64_t size[2] = {tni_dtype_size(dst->view.dtype), tni_dtype_size(src->view.dtype)};
        int64_t at[2] = {(int64_t)(dst->view.offset - begin[0]) / size[0],
                         (int64_t)(src->view.offset - begin[1]) / size[1]};
        for (int64_t n = o.views[0].numel; n > 0; n--) {
            store(host[0], dst->view.dtype, at[0], load(host[1], src->view.dtype, at[1]));
            for (int32_t d = o.rank - 1; d >= 0; d--) {
                at[0] += o.strides[0][d];
                at[1] += o.strides[1][d];
                if (++index[d] < o.sizes[d])
                    break;
                at[0] -= o.strides[0][d] * o.sizes[d];
                at[1] -= o.strides[1][d] * o.sizes[d];
                index[d] = 0;
            }
        }
        tn_stream *stream = tni_stream_current(dst->device);
        status = dst->device->memory->copy_from_host(
            dst->device->handle, stream->handle, dst->view.memory, begin[0], host[0], 0, bytes[0]);
        if (status != TN_OK)
            tni_device_fail(dst->device, status, "writing a copy through the host");
        tni_count_fallback("copy", "copy", dst->device, src->view.dtype, dst->view.dtype);
    }
    tni_free(host[0]);
    tni_free(host[1]);
    return status;
}
