/* Moving elements: within a device, between devices, between dtypes and strides.
 *
 * Within a device the `copy` kernel does any strides and dtypes; plain runs of bytes use the memory
 * copy. Between devices of one plugin copy_peer is asked first; everything else is staged through
 * the host. A device without a `copy` kernel for a pair of dtypes is served element by element on
 * the host (host_copy.c). Storage dtypes, which kernels do not know, are copied in parts that they
 * do. */
#include "base/alloc.h"
#include "core/call/call.h"
#include "core/call/cells.h"
#include "core/call/host_copy.h"
#include "core/call/operands.h"
#include "core/graph/graph.h"

#include <string.h>

static uint64_t bytes_of(const tn_tensor *t) {
    return (uint64_t)(t->view.numel * tni_dtype_size(t->view.dtype));
}

static tn_status plain_copy(tn_tensor *dst, tn_tensor *src) {
    tni_device *device = dst->device;
    TNI_TRY(tni_device_check(device));
    tn_stream *stream = tni_stream_current(device);
    tni_stream_note(stream, "copy");
    tn_status status =
        device->memory->copy(device->handle, stream->handle, dst->view.memory, dst->view.offset,
                             src->view.memory, src->view.offset, bytes_of(dst));
    return status == TN_OK ? TN_OK : tni_device_fail(device, status, "copy");
}

/* ---- within a device --------------------------------------------------------------------- */

static bool overlap(const tn_tensor *a, const tn_tensor *b) {
    return a->storage == b->storage && tni_partial_overlap(a, b);
}

/* A call of a kernel on operands, or on a piece of them. */
typedef struct element_call {
    tni_device *device;
    const tni_kernel *kernel;
    tni_operands *operands;
} element_call;

static tn_status call_copy(void *user) {
    element_call *c = user;
    tn_cell cell = {.tag = TN_CELL_TENSOR, .v.view = &c->operands->views[1]};
    const tn_tensor_view *outs[1] = {&c->operands->views[0]};
    return tni_invoke(c->device, c->kernel, "tn_copy_", &cell, 1, outs, 1);
}

/* Operand 1 into operand 0 by a kernel that takes them as they lie: nothing else can bring them into
 * shape. TNI_NOT_SUPPORTED: there is none. */
static tn_status by_kernel(tni_operands *o, tni_device *device) {
    uint64_t needed =
        tni_operand_is_contiguous(o, 0) && tni_operand_is_contiguous(o, 1) ? 0 : TN_KERNEL_STRIDED;
    if (tni_operand_is_broadcast(o, 1))
        needed |= TN_KERNEL_BROADCAST;
    tn_dtype types[TN_KERNEL_MAX_TYPES] = {o->views[1].dtype, o->views[0].dtype};
    tni_choice c;
    for (tni_choose(&c, device, TNI_KERNEL_copy, types); c.kernel && c.adaptation == TNI_AS_IS;
         tni_choose_next(&c)) {
        if ((c.kernel->flags & needed) != needed)
            continue;
        element_call call = {device, c.kernel, o};
        bool far_ok = (c.kernel->flags & TN_KERNEL_INDEX64) != 0;
        tn_status status = tni_operands_in_pieces(o, far_ok, call_copy, &call);
        if (status != TNI_NOT_SUPPORTED)
            return status;
    }
    return TNI_NOT_SUPPORTED;
}

static tn_status local_copy(tn_tensor *dst, tn_tensor *src);

static tn_status copy_part(tn_tensor *dst, tn_dtype to, tn_tensor *src, tn_dtype from,
                           int32_t part) {
    tn_tensor *into = tni_tensor_part(dst, to, part), *of = tni_tensor_part(src, from, part);
    tn_status status = into && of ? local_copy(into, of) : tni_failed();
    tni_drop(into);
    tni_drop(of);
    return status;
}

static tn_status zero_part(tn_tensor *dst, tn_dtype to, int32_t part) {
    tn_tensor *into = tni_tensor_part(dst, to, part);
    tn_status status = into ? tni_fill_data(into, tn_float(0)) : tni_failed();
    tni_drop(into);
    return status;
}

/* What a kernel may take for `dtype` where integers are cut to it, or it to fewer bits. */
static tn_dtype as_integer(tn_dtype dtype) {
    return tni_is_storage_dtype(dtype) ? tni_carrier_of(dtype).dtype : dtype;
}

/* Of an unsigned dtype and one that is not complex: is the result of its low bits alone, or whether
 * any is set? A wider one and floats need the value. */
static bool is_of_bits(tn_dtype to, tn_dtype from) {
    if (tni_is_float(to) || tni_is_float(from))
        return false;
    return !tni_is_storage_dtype(from) || to == TN_BOOL ||
           tni_dtype_size(to) <= tni_dtype_size(from);
}

/* Where one of the dtypes is a storage dtype: as carriers, or as the halves of complex numbers. */
static tn_status copy_in_parts(tn_tensor *dst, tn_tensor *src) {
    tn_dtype to = dst->view.dtype, from = src->view.dtype;
    tn_status status = TN_OK;
    if (to == from) {
        tni_carrier carrier = tni_carrier_of(to);
        for (int32_t i = 0; i < carrier.n && status == TN_OK; i++)
            status = copy_part(dst, carrier.dtype, src, carrier.dtype, i);
        return status;
    }
    bool complex_to = tni_is_complex(to), complex_from = tni_is_complex(from);
    if (complex_to || (complex_from && to != TN_BOOL)) {
        tn_dtype real_to = complex_to ? tni_real_dtype(to) : to;
        status = copy_part(dst, real_to, src, complex_from ? tni_real_dtype(from) : from, 0);
        if (status == TN_OK && complex_to)
            status = complex_from ? copy_part(dst, real_to, src, tni_real_dtype(from), 1)
                                  : zero_part(dst, real_to, 1);
        return status;
    }
    return is_of_bits(to, from) && !complex_from
               ? copy_part(dst, as_integer(to), src, as_integer(from), 0)
               : tni_host_copy(dst, src);
}

static tn_status local_copy(tn_tensor *dst, tn_tensor *src) {
    tn_status status;
    if (overlap(dst, src)) {
        tn_tensor *whole = tni_tensor_new(src->device, src->view.dtype, src->view.rank, src->sizes);
        status = whole ? local_copy(whole, src) : tni_failed();
        if (status == TN_OK)
            status = local_copy(dst, whole);
        tni_drop(whole);
        return status;
    }
    tni_operands o;
    tni_operands_init(&o, dst->view.rank, dst->sizes);
    tni_operands_add(&o, dst);
    tni_operands_add(&o, src);
    tni_operands_coalesce(&o);
    bool same = dst->view.dtype == src->view.dtype;
    if (same && dst->storage == src->storage && dst->view.offset == src->view.offset &&
        memcmp(o.strides[0], o.strides[1], (size_t)o.rank * sizeof(int64_t)) == 0)
        return TN_OK;
    if (same && tni_operand_is_flat(&o, 0) && tni_operand_is_flat(&o, 1))
        return plain_copy(dst, src);
    if (tni_is_storage_dtype(dst->view.dtype) || tni_is_storage_dtype(src->view.dtype))
        return copy_in_parts(dst, src);
    status = by_kernel(&o, dst->device);
    return status == TNI_NOT_SUPPORTED ? tni_host_copy(dst, src) : status;
}

/* ---- between devices --------------------------------------------------------------------- */

static tn_status peer_copy(tn_tensor *dst, tn_tensor *src) {
    tni_device *to = dst->device, *from = src->device;
    tn_status (*copy_peer)(tn_device_impl *, tn_stream_impl *, tn_memory, uint64_t,
                           tn_device_impl *, tn_memory, uint64_t, uint64_t) =
        to->plugin == from->plugin ? TNI_SLOT(to->memory, tn_memory_ops, copy_peer) : NULL;
    if (!copy_peer)
        return TN_ERR_UNSUPPORTED;
    tn_stream *stream = tni_stream_current(to), *source = tni_stream_current(from);
    TNI_TRY(tni_stream_wait_stream(stream, source));
    tn_status status = copy_peer(to->handle, stream->handle, dst->view.memory, dst->view.offset,
                                 from->handle, src->view.memory, src->view.offset, bytes_of(dst));
    if (status == TN_ERR_UNSUPPORTED)
        return status;
    if (status != TN_OK)
        return tni_device_fail(to, status, "copy between devices");
    /* the source's memory may not be reused before the copy has read it */
    return tni_stream_wait_stream(source, stream);
}

/* Where the host sees t's elements, once the work queued on its device has passed; NULL: nowhere, or
 * an error in *out_status. */
static void *host_address(tn_tensor *t, tn_status *out_status) {
    void *host = t->storage->host;
    *out_status = host ? tn_stream_synchronize(tni_stream_current(t->device)) : TN_OK;
    return host && *out_status == TN_OK ? (char *)host + t->view.offset - t->storage->offset : NULL;
}

/* Contiguous to contiguous, of one dtype. */
static tn_status transfer(tn_tensor *dst, tn_tensor *src) {
    tn_status status = peer_copy(dst, src);
    if (status != TN_ERR_UNSUPPORTED)
        return status;
    uint64_t bytes = bytes_of(dst);
    void *host = host_address(src, &status);
    if (host)
        return tni_tensor_write(dst, host, bytes);
    if (status == TN_OK && (host = host_address(dst, &status)))
        return tni_tensor_read(src, host, bytes, "tn_copy_");
    if (status != TN_OK)
        return status;
    host = tni_alloc(bytes);
    if (!host)
        return tni_fail_memory("a staging copy on the host");
    status = tni_tensor_read(src, host, bytes, "tn_copy_");
    if (status == TN_OK)
        status = tni_tensor_write(dst, host, bytes);
    tni_free(host);
    return status;
}

/* The cast runs where the fewer bytes then travel, if that device can store the dtype. */
static tn_status remote_copy(tn_tensor *dst, tn_tensor *src) {
    bool cast_first = tni_dtype_size(dst->view.dtype) <= tni_dtype_size(src->view.dtype) &&
                      (src->device->dtypes & TN_DTYPE_BIT(dst->view.dtype));
    tn_tensor *sent = tni_cast_data(src, cast_first ? dst->view.dtype : src->view.dtype);
    tn_tensor *flat = sent ? tni_contiguous_data(sent) : NULL;
    tni_drop(sent);
    if (!flat)
        return tni_failed();
    tn_status status;
    if (tni_is_contiguous(&dst->view) && dst->view.dtype == flat->view.dtype &&
        dst->view.numel == flat->view.numel) {
        status = transfer(dst, flat);
    } else {
        tn_tensor *landed =
            tni_tensor_new(dst->device, flat->view.dtype, flat->view.rank, flat->sizes);
        status = landed ? transfer(landed, flat) : tni_failed();
        if (status == TN_OK)
            status = local_copy(dst, landed);
        tni_drop(landed);
    }
    tni_drop(flat);
    return status;
}

tn_status tni_copy_data(tn_tensor *dst, tn_tensor *src) {
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    if (!tni_broadcast(dst->view.rank, dst->sizes, src->view.rank, src->sizes, &rank, sizes) ||
        rank != dst->view.rank || memcmp(sizes, dst->sizes, (size_t)rank * sizeof *sizes) != 0)
        return tni_fail(TN_ERR_SHAPE,
                        "tn_copy_: src of shape %s does not broadcast to self of shape %s",
                        TNI_SHAPE_OF(src), TNI_SHAPE_OF(dst));
    if (dst->view.numel == 0 || dst->device->is_meta)
        return TN_OK;
    if (src->device->is_meta)
        return tni_fail(TN_ERR_DEVICE, "tn_copy_: a meta tensor has no data to copy");
    return dst->device == src->device ? local_copy(dst, src) : remote_copy(dst, src);
}

bool tni_check_distinct(const char *call, const tn_tensor *self) {
    if (!tni_may_overlap(&self->view))
        return true;
    tni_fail(TN_ERR_SHAPE,
             "%s: several elements of self share memory (an expanded tensor); write to tn_clone "
             "of it",
             call);
    return false;
}

tn_status tni_check_keeps_imaginary(const char *call, const char *what, const tn_tensor *src,
                                    const tn_tensor *self) {
    if (!tni_is_complex(src->view.dtype) || tni_is_complex(self->view.dtype))
        return TN_OK;
    return tni_fail(TN_ERR_DTYPE, "%s: %s is %s, and self %s; take its real part with tn_real",
                    call, what, tn_dtype_name(src->view.dtype), tn_dtype_name(self->view.dtype));
}

typedef struct fill_call {
    element_call call;
    tn_cell value;
} fill_call;

static tn_status call_fill(void *user) {
    const fill_call *c = user;
    const tn_tensor_view *outs[1] = {&c->call.operands->views[0]};
    return tni_invoke(c->call.device, c->call.kernel, "tn_fill_", &c->value, 1, outs, 1);
}

/* Each part with the integer that has the bits of `value` there. */
static tn_status fill_in_parts(tn_tensor *dst, tn_scalar value) {
    tni_carrier carrier = tni_carrier_of(dst->view.dtype);
    tn_status status = TN_OK;
    int64_t bits[2] = {0, 0};
    tni_store_scalar(bits, dst->view.dtype, value);
    for (int32_t i = 0; i < carrier.n && status == TN_OK; i++) {
        tn_tensor *part = tni_tensor_part(dst, carrier.dtype, i);
        status = part ? tni_fill_data(part, tni_element(bits, carrier.dtype, i)) : tni_failed();
        tni_drop(part);
    }
    return status;
}

tn_status tni_fill_data(tn_tensor *dst, tn_scalar value) {
    if (dst->view.numel == 0 || dst->device->is_meta)
        return TN_OK;
    tni_operands o;
    tni_operands_init(&o, dst->view.rank, dst->sizes);
    tni_operands_add(&o, dst);
    tni_operands_coalesce(&o);
    tn_dtype dtype = dst->view.dtype;
    bool zero = value.v.i64 == 0; /* also +0.0, whose bits are zero */
    if (zero && tni_operand_is_flat(&o, 0)) {
        tni_device *device = dst->device;
        TNI_TRY(tni_device_check(device));
        tn_status status =
            device->memory->fill(device->handle, tni_stream_current(device)->handle,
                                 dst->view.memory, dst->view.offset, 0, bytes_of(dst));
        return status == TN_OK ? TN_OK : tni_device_fail(device, status, "fill");
    }
    if (tni_is_storage_dtype(dtype))
        return fill_in_parts(dst, value);
    fill_call call = {{dst->device, NULL, &o},
                      tni_is_float(dtype) ? tni_cell_f64(tni_scalar_f64(value))
                                          : tni_cell_i64(tni_scalar_i64(value))};
    if (dtype == TN_BOOL)
        call.value = tni_cell_i64(tni_scalar_f64(value) != 0);
    tn_dtype types[TN_KERNEL_MAX_TYPES] = {dtype};
    tni_choice c;
    for (tni_choose(&c, dst->device, TNI_KERNEL_fill, types);
         c.kernel && c.adaptation == TNI_AS_IS && !c.widened; tni_choose_next(&c)) {
        if (!(c.kernel->flags & TN_KERNEL_STRIDED) && !tni_operand_is_contiguous(&o, 0))
            continue;
        call.call.kernel = c.kernel;
        bool far_ok = (c.kernel->flags & TN_KERNEL_INDEX64) != 0;
        tn_status status = tni_operands_in_pieces(&o, far_ok, call_fill, &call);
        if (status != TNI_NOT_SUPPORTED)
            return status;
    }
    /* one element from the host, broadcast by the copy kernel */
    tn_tensor *one = tni_tensor_new(dst->device, dtype, 0, NULL);
    if (!one)
        return tni_failed();
    int64_t bits[2] = {0, 0};
    tni_store_scalar(bits, dtype, value);
    tn_status status = tni_tensor_write(one, bits, (uint64_t)tni_dtype_size(dtype));
    if (status == TN_OK)
        status = local_copy(dst, one);
    tni_drop(one);
    return status;
}

tn_tensor *tni_copied_data(tn_tensor *t) {
    tn_tensor *copy = tni_tensor_new(t->device, t->view.dtype, t->view.rank, t->sizes);
    if (copy && tni_copy_data(copy, t) != TN_OK) {
        tni_drop(copy);
        return NULL;
    }
    return copy;
}

tn_tensor *tni_contiguous_data(tn_tensor *t) {
    return tni_is_contiguous(&t->view) ? tni_keep(t) : tni_copied_data(t);
}

tn_tensor *tni_cast_data(tn_tensor *t, tn_dtype dtype) {
    if (t->view.dtype == dtype)
        return tni_keep(t);
    tn_tensor *cast =
        tni_is_dense(&t->view)
            ? tni_tensor_new_strided(t->device, dtype, t->view.rank, t->sizes, t->strides)
            : tni_tensor_new(t->device, dtype, t->view.rank, t->sizes);
    if (cast && tni_copy_data(cast, t) != TN_OK) {
        tni_drop(cast);
        return NULL;
    }
    return cast;
}
