/* Tensors to and from DLPack: numbers translated, lifetimes tied together. */
#include "core/autograd/autograd.h"
#include "core/tensor/foreign.h"
#include "base/error.h"

#include <string.h>
#include <tenon/dlpack.h>
#include <tenon/validation.h>

/* ---- numbers ----------------------------------------------------------------------------- */

/* X(device type, DLPack's number, does `data` hold addresses?) */
#define DEVICE_MAP(X) \
    X("cpu", kDLCPU, true) \
    X("cuda", kDLCUDA, true) \
    X("rocm", kDLROCM, true) \
    X("opencl", kDLOpenCL, false) \
    X("vulkan", kDLVulkan, false) \
    X("metal", kDLMetal, false) \
    X("webgpu", kDLWebGPU, false) \
    X("hexagon", kDLHexagon, false)

static const struct {
    const char *type;
    int32_t number;
    bool addresses;
} devices[] = {
#define X(type, number, addresses) {type, number, addresses},
    DEVICE_MAP(X)
#undef X
};

static DLDevice number_of(const tni_device *d, bool *out_addresses) {
    const char *type = d->plugin->table->device_type;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (strcmp(type, devices[i].type) == 0 && (devices[i].number != kDLCPU || d->host_memory)) {
            *out_addresses = devices[i].addresses;
            return (DLDevice){devices[i].number, d->is_cpu ? 0 : d->id.index};
        }
    }
    *out_addresses = false;
    return (DLDevice){kDLExtDev, d->id.index};
}

/* "f32", 'f' and 4: {kDLFloat, 32}; bf16 is a kind of its own. */
static DLDataType dtype_number(tn_dtype dtype) {
    static const uint8_t codes[TN_DTYPE_END] = {
#define CODE(category) \
    ((category) == 'f'   ? kDLFloat \
     : (category) == 'i' ? kDLInt \
     : (category) == 'u' ? kDLUInt \
     : (category) == 'c' ? kDLComplex \
                         : kDLBool)
#define X(NAME, value, name, bytes, category) [value] = CODE(category),
        TN_DTYPE_MAP(X) TN_STORAGE_DTYPE_MAP(X)
#undef X
#undef CODE
    };
    return (DLDataType){dtype == TN_BF16 ? kDLBfloat : codes[dtype],
                        (uint8_t)(8 * tni_dtype_size(dtype)), 1};
}

static tn_dtype dtype_of(DLDataType type) {
    for (tn_dtype dtype = 0; dtype < TN_DTYPE_END; dtype++) {
        DLDataType known = dtype_number(dtype);
        if (tni_is_dtype(dtype) && known.code == type.code && known.bits == type.bits &&
            type.lanes == 1)
            return dtype;
    }
    return TN_DTYPE_NONE;
}

DLDevice tn_dlpack_device(tn_device device) {
    bool addresses;
    tni_device *d = tni_device_get(device);
    if (d && !d->is_meta)
        return number_of(d, &addresses);
    if (d)
        tni_fail(TN_ERR_UNSUPPORTED, "tn_dlpack_device: meta has no data to share");
    return (DLDevice){0, 0};
}

/* ---- out --------------------------------------------------------------------------------- */

/* What the consumer gets is the first member, so that its pointer is the whole's. */
typedef struct shared {
    union {
        DLManagedTensorVersioned versioned;
        DLManagedTensor legacy;
    } managed;
    tn_tensor *tensor; /* a reference */
    int64_t sizes[TN_MAX_RANK];
    int64_t strides[TN_MAX_RANK];
} shared;

static void end_share(void *managed) {
    shared *s = managed;
    tni_drop(s->tensor);
    tni_free(s);
}

static void delete_versioned(DLManagedTensorVersioned *self) {
    end_share(self);
}

static void delete_legacy(DLManagedTensor *self) {
    end_share(self);
}

static tn_status check_out(tn_tensor *t, const char *call) {
    if (tni_no_tensor(t, call))
        return tni_failed();
    if (t->device->is_meta)
        return tni_fail(TN_ERR_UNSUPPORTED, "%s: a tensor on meta has no data to share", call);
    if (tni_requires_grad(t))
        return tni_fail(TN_ERR_STATE,
                        "%s: the tensor requires a gradient, and its history would not see what"
                        " others write; give tn_detach of it",
                        call);
    return tni_device_check(t->device);
}

static void describe(const tn_tensor *t, shared *s, DLTensor *out) {
    bool addresses, is_empty = t->view.numel == 0;
    int32_t rank = t->view.rank;
    for (int32_t i = 0; i < rank; i++) {
        s->sizes[i] = t->sizes[i];
        s->strides[i] = t->strides[i];
    }
    *out = (DLTensor){.device = number_of(t->device, &addresses),
                      .ndim = rank,
                      .dtype = dtype_number(t->view.dtype),
                      .shape = s->sizes,
                      .strides = s->strides,
                      .byte_offset = addresses || is_empty ? 0 : t->view.offset};
    if (is_empty)
        return;
    if (out->device.device_type == kDLCPU)
        out->data = (char *)t->storage->host + (t->view.offset - t->storage->offset);
    else
        out->data = (void *)(uintptr_t)(t->view.memory + (addresses ? t->view.offset : 0));
}

static shared *share(tn_tensor *t, const char *call) {
    if (check_out(t, call) != TN_OK)
        return NULL;
    shared *s = tni_calloc(1, sizeof *s);
    if (!s)
        return tni_fail_memory_null("a tensor for others");
    s->tensor = tni_keep(t);
    return s;
}

tn_status tn_to_dlpack(tn_tensor *t, uint64_t flags, DLManagedTensorVersioned **out) {
    uint64_t known = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
    if (!out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_to_dlpack: out is NULL");
    *out = NULL;
    if (flags & ~known)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_to_dlpack: flags %#llx; there are %#llx",
                        (unsigned long long)flags, (unsigned long long)known);
    shared *s = share(t, "tn_to_dlpack");
    if (!s)
        return tni_failed();
    DLManagedTensorVersioned *managed = &s->managed.versioned;
    managed->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed->deleter = delete_versioned;
    managed->flags = flags;
    describe(t, s, &managed->dl_tensor);
    *out = managed;
    return TN_OK;
}

tn_status tn_to_dlpack_legacy(tn_tensor *t, DLManagedTensor **out) {
    if (!out)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_to_dlpack_legacy: out is NULL");
    *out = NULL;
    shared *s = share(t, "tn_to_dlpack_legacy");
    if (!s)
        return tni_failed();
    s->managed.legacy.deleter = delete_legacy;
    describe(t, s, &s->managed.legacy.dl_tensor);
    *out = &s->managed.legacy;
    return TN_OK;
}

/* ---- in ---------------------------------------------------------------------------------- */

/* A managed tensor of either kind. */
typedef struct source {
    const char *call;
    const DLTensor *dl;
    uint64_t flags;
    void *managed;
    void (*end)(void *managed); /* calls its deleter, if it has one */
    tn_tensor *own;             /* what Tenon itself has shared, else NULL */
} source;

static void end_versioned(void *managed) {
    DLManagedTensorVersioned *m = managed;
    if (m->deleter)
        m->deleter(m);
}

static void end_legacy(void *managed) {
    DLManagedTensor *m = managed;
    if (m->deleter)
        m->deleter(m);
}

/* A tensor's geometry as Tenon has it, but for strides, which may be negative. */
typedef struct described {
    tn_dtype dtype;
    tn_ints sizes;
    int64_t strides[TN_MAX_RANK];
    bool is_empty;
    const char *why_copy; /* NULL: need not be copied */
    char *data;           /* the first element */
} described;

static tn_status describe_source(const source *from, described *out) {
    const DLTensor *dl = from->dl;
    const char *call = from->call;
    *out = (described){.dtype = dtype_of(dl->dtype)};
    if (out->dtype == TN_DTYPE_NONE)
        return tni_fail(TN_ERR_DTYPE,
                        "%s: elements of code %u, %u bits and %u lanes (DLDataType) are no dtype"
                        " of Tenon",
                        call, dl->dtype.code, dl->dtype.bits, dl->dtype.lanes);
    out->sizes = tn_ints_of(dl->shape, dl->ndim);
    int64_t numel;
    if (!tni_check_sizes(call, out->sizes))
        return tn_error_status();
    if (!tni_numel(dl->ndim, dl->shape, tni_dtype_size(out->dtype), &numel))
        return tni_fail(TN_ERR_SHAPE, "%s: sizes %s are negative, or more than 63 bits of bytes",
                        call, TNI_SHAPE_OF_SIZES(dl->ndim, dl->shape));
    out->is_empty = numel == 0;
    if (!dl->strides)
        tni_contiguous_strides(dl->ndim, dl->shape, out->strides);
    bool backwards = false;
    for (int32_t d = 0; d < dl->ndim && dl->strides; d++) {
        bool counts = dl->shape[d] > 1 && !out->is_empty;
        out->strides[d] = counts || dl->strides[d] >= 0 ? dl->strides[d] : 1;
        backwards |= out->strides[d] < 0;
    }
    out->data = (void *)((uintptr_t)dl->data + dl->byte_offset); /* NULL stays NULL */
    out->why_copy = from->flags & DLPACK_FLAG_BITMASK_READ_ONLY ? "it is read-only"
                    : backwards                                 ? "it has negative strides"
                    : !out->is_empty && (uintptr_t)out->data % (uint64_t)tni_dtype_size(out->dtype)
                        ? "it is not aligned to its elements"
                    : tn_validation_level() > 0 ? "TENON_VALIDATE is set"
                                                : NULL;
    return TN_OK;
}

/* The elements, row-major. */
static void gather(const described *from, int64_t numel, char *out) {
    int64_t item = tni_dtype_size(from->dtype), index[TN_MAX_RANK] = {0};
    const char *at = from->data;
    for (int64_t i = 0; i < numel; i++, out += item) {
        memcpy(out, at, (size_t)item);
        for (int64_t d = from->sizes.n - 1; d >= 0; d--) {
            at += from->strides[d] * item;
            if (++index[d] < from->sizes.data[d])
                break;
            at -= from->strides[d] * item * from->sizes.data[d];
            index[d] = 0;
        }
    }
}

static tn_status write_host(tn_tensor *t, const source *from, const described *as) {
    tn_tensor_view view = {
        .numel = t->view.numel, .rank = t->view.rank, .sizes = t->sizes, .strides = as->strides};
    uint64_t bytes = (uint64_t)(t->view.numel * tni_dtype_size(as->dtype));
    if (bytes == 0)
        return TN_OK;
    if (!from->dl->data)
        return tni_fail(TN_ERR_INVALID_ARGUMENT, "%s: data is NULL", from->call);
    if (tni_is_contiguous(&view))
        return tni_tensor_write(t, as->data, bytes);
    char *packed = tni_alloc(bytes);
    if (!packed)
        return tni_fail_memory("a tensor's elements in row-major order");
    gather(as, t->view.numel, packed);
    tn_status status = tni_tensor_write(t, packed, bytes);
    tni_free(packed);
    return status;
}

static tn_tensor *copy_host(const source *from, const described *as, tni_device *cpu) {
    tn_tensor *t = tni_tensor_new(cpu, as->dtype, (int32_t)as->sizes.n, as->sizes.data);
    if (t && write_host(t, from, as) != TN_OK) {
        tni_drop(t);
        return NULL;
    }
    return t;
}

static tn_tensor *take_host(const source *from, tn_dlpack_copy copy) {
    described as;
    tn_device cpu = tn_device_parse("cpu:0");
    tni_device *d = cpu.type ? tni_device_get(cpu) : NULL;
    if (!d || describe_source(from, &as) != TN_OK)
        return NULL;
    if (copy == TN_DLPACK_SHARE && as.why_copy)
        return tni_fail_null(
            TN_ERR_UNSUPPORTED,
            "%s: the data cannot be shared, since %s; ask for TN_DLPACK_COPY_IF_NEEDED", from->call,
            as.why_copy);
    if (copy != TN_DLPACK_COPY && !as.why_copy)
        return tni_tensor_at(from->call, as.data, as.sizes, tn_ints_of(as.strides, as.sizes.n),
                             as.dtype, d, from->end, from->managed);
    tn_tensor *t = tni_scope_push(copy_host(from, &as, d));
    if (t)
        from->end(from->managed);
    return t;
}

/* What Tenon has shared: the same storage, on any device. */
static tn_tensor *take_own(const source *from, tn_dlpack_copy copy) {
    bool read_only = from->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
    if (copy == TN_DLPACK_SHARE && read_only)
        return tni_fail_null(TN_ERR_UNSUPPORTED,
                             "%s: the data cannot be shared, since it is read-only; ask for"
                             " TN_DLPACK_COPY_IF_NEEDED",
                             from->call);
    tn_tensor *t = copy == TN_DLPACK_COPY || read_only ? tni_copied_data(from->own)
                                                       : tni_tensor_alias(from->own);
    t = tni_scope_push(t);
    if (t)
        from->end(from->managed);
    return t;
}

static tn_tensor *take(const source *from, tn_dlpack_copy copy) {
    uint64_t known = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED |
                     DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    if ((uint32_t)copy > TN_DLPACK_COPY)
        return tni_fail_null(TN_ERR_INVALID_ARGUMENT, "%s: %d is no tn_dlpack_copy", from->call,
                             (int)copy);
    if (from->flags & ~known)
        return tni_fail_null(TN_ERR_UNSUPPORTED,
                             "%s: flags %#llx, of which this library knows %#llx", from->call,
                             (unsigned long long)from->flags, (unsigned long long)known);
    if (from->own)
        return take_own(from, copy);
    int32_t type = from->dl->device.device_type;
    if (type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost)
        return take_host(from, copy);
    return tni_fail_null(
        TN_ERR_UNSUPPORTED,
        "%s: memory of a device of DLPack's type %d, which another library allocated; only"
        " the host's can be taken over: copy it there first",
        from->call, type);
}

tn_tensor *tn_from_dlpack(DLManagedTensorVersioned *managed, tn_dlpack_copy copy) {
    if (!managed)
        return tni_fail_null(TN_ERR_INVALID_ARGUMENT, "tn_from_dlpack: managed is NULL");
    if (managed->version.major != DLPACK_MAJOR_VERSION)
        return tni_fail_null(
            TN_ERR_UNSUPPORTED,
            "tn_from_dlpack: DLPack %u.%u; this library reads %d.x: ask its producer for that"
            " (max_version), and call the deleter of this one",
            managed->version.major, managed->version.minor, DLPACK_MAJOR_VERSION);
    bool own = managed->deleter == delete_versioned;
    return take(&(source){"tn_from_dlpack", &managed->dl_tensor, managed->flags, managed,
                          end_versioned, own ? ((shared *)managed)->tensor : NULL},
                copy);
}

tn_tensor *tn_from_dlpack_legacy(DLManagedTensor *managed, tn_dlpack_copy copy) {
    if (!managed)
        return tni_fail_null(TN_ERR_INVALID_ARGUMENT, "tn_from_dlpack_legacy: managed is NULL");
    bool own = managed->deleter == delete_legacy;
    return take(&(source){"tn_from_dlpack_legacy", &managed->dl_tensor, 0, managed, end_legacy,
                          own ? ((shared *)managed)->tensor : NULL},
                copy);
}
