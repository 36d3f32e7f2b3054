/* The tensors of a kernel call: are they whole, do they lie where they say, do they fit the
 * kernel's flags. All that is wrong here is Tenon's doing. */
#include "loader/validation/internal.h"

#include <inttypes.h>
#include <stdio.h>

static const uint32_t element_bytes[TN_DTYPE_COUNT] = {
#define X(NAME, value, name, bytes, category) [value] = bytes,
    TN_DTYPE_MAP(X)
#undef X
};

/* Everything about one check. */
typedef struct subject {
    const tni_watched_kernel *kernel;
    const char *slot;
    const tn_tensor_view *view;
    const char *name;
} subject;

#define REPORT(s, ...) \
    tni_finding((s)->kernel->watch, TNI_TENON, (s)->slot, (s)->kernel->real.op, __VA_ARGS__)

/* Is there a geometry at all? */
static bool check_head(const subject *s) {
    const tn_tensor_view *v = s->view;
    if (!TN_HAS(v, tn_tensor_view, strides))
        REPORT(s, "%s: struct_size %" PRIu64 " ends before strides", s->name, v->struct_size);
    else if (v->rank < 0 || v->rank > TN_MAX_RANK)
        REPORT(s, "%s: rank %d is not in 0 to %d", s->name, v->rank, TN_MAX_RANK);
    else if (v->rank > 0 && (!v->sizes || !v->strides))
        REPORT(s, "%s: sizes or strides are NULL", s->name);
    else if (v->dtype < 0 || v->dtype >= TN_DTYPE_COUNT)
        REPORT(s, "%s: %d is no dtype", s->name, v->dtype);
    else
        return true;
    return false;
}

/* Sizes, strides and numel; false when no extent can be told. */
static bool check_geometry(const subject *s, uint64_t *out_last) {
    const tn_tensor_view *v = s->view;
    uint64_t n = 1, last = 0;
    bool over = false;
    for (int32_t i = 0; i < v->rank; i++) {
        if (v->sizes[i] < 1 || v->strides[i] < 0) {
            REPORT(s, "%s: size %" PRId64 " with stride %" PRId64 " in dimension %d", s->name,
                   v->sizes[i], v->strides[i], i);
            return false;
        }
        uint64_t reach;
        over |= __builtin_mul_overflow((uint64_t)v->sizes[i] - 1, (uint64_t)v->strides[i], &reach);
        over |= __builtin_add_overflow(last, reach, &last);
        over |= __builtin_mul_overflow(n, (uint64_t)v->sizes[i], &n);
    }
    if (over || last > UINT64_MAX / 16) {
        REPORT(s, "%s: its sizes and strides leave 64 bits", s->name);
        return false;
    }
    if (n != (uint64_t)v->numel)
        REPORT(s, "%s: numel is %" PRId64 ", but the sizes make %" PRIu64, s->name, v->numel, n);
    *out_last = last;
    return true;
}

static bool is_contiguous(const tn_tensor_view *v) {
    int64_t expected = 1;
    for (int32_t i = v->rank; i-- > 0;) {
        if (v->sizes[i] != 1 && v->strides[i] != expected)
            return false;
        expected *= v->sizes[i];
    }
    return true;
}

static bool is_broadcast(const tn_tensor_view *v) {
    for (int32_t i = 0; i < v->rank; i++)
        if (v->strides[i] == 0 && v->sizes[i] > 1)
            return true;
    return false;
}

/* `last`: the offset of the last element, in elements. */
static void check_flags(const subject *s, bool is_output, uint64_t last, uint64_t device_dtypes) {
    const tn_tensor_view *v = s->view;
    uint64_t flags = s->kernel->real.flags;
    if (is_output && is_broadcast(v))
        REPORT(s, "%s: a stride of zero makes elements of an output one", s->name);
    else if (!is_output && is_broadcast(v) && !(flags & TN_KERNEL_BROADCAST))
        REPORT(s, "%s: a stride of zero, and the kernel has not TN_KERNEL_BROADCAST", s->name);
    else if (!(flags & TN_KERNEL_STRIDED) && !is_broadcast(v) && !is_contiguous(v))
        REPORT(s, "%s: is not contiguous, and the kernel has not TN_KERNEL_STRIDED", s->name);
    if (last >= INT32_MAX && !(flags & TN_KERNEL_INDEX64))
        REPORT(s, "%s: an extent of %" PRIu64 " elements, and the kernel has not TN_KERNEL_INDEX64",
               s->name, last + 1);
    if (!(device_dtypes & TN_DTYPE_BIT(v->dtype)))
        REPORT(s, "%s: dtype %d, which the device's TN_PROP_DTYPES does not have", s->name,
               v->dtype);
    if (TN_HAS(v, tn_tensor_view, layout) && v->layout != 0)
        REPORT(s, "%s: layout %u, and no extension gives it a meaning", s->name, v->layout);
    if (v->offset % element_bytes[v->dtype])
        REPORT(s, "%s: offset %" PRIu64 " is no multiple of the element's %u bytes", s->name,
               v->offset, element_bytes[v->dtype]);
}

bool tni_check_view(const tni_watched_kernel *kernel, const char *slot, const tn_call *call,
                    const tn_tensor_view *view, bool is_output, tni_extent *e) {
    tni_watch *w = kernel->watch;
    subject s_ = {kernel, slot, view, e->name}, *s = &s_;
    uint64_t last;
    if (!view) {
        REPORT(s, "%s: the view is NULL", e->name);
        return false;
    }
    e->view = view;
    if (!check_head(s) || !check_geometry(s, &last))
        return false;
    uint64_t size = element_bytes[view->dtype];
    e->low = view->offset;
    bool over = __builtin_add_overflow(e->low, (last + 1) * size, &e->high);
    e->dense = !over && e->high - e->low == (uint64_t)view->numel * size && !is_broadcast(view);
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *m = tni_memory_find(w, call->device, TN_SPACE_DEVICE, view->memory);
    const tni_record *d = tni_record_find(w, TNI_RECORD_DEVICE, (uintptr_t)call->device);
    bool elsewhere = !m && tni_record_find(w, TNI_RECORD_MEMORY, view->memory);
    bool there = m != NULL;
    uint64_t serial = m ? m->serial : 0, dtypes = d ? d->dtypes : TN_DTYPES_ALL;
    e->bytes = m ? m->bytes : 0;
    e->host = m ? m->host : NULL;
    pthread_mutex_unlock(&tni_records_lock);
    check_flags(s, is_output, last, dtypes);
    if (!there)
        REPORT(s,
               elsewhere ? "%s: memory %#" PRIx64 " is of another device, or pinned"
                         : "%s: memory %#" PRIx64
                           " is not alive: it was freed before, or never given out",
               e->name, view->memory);
    else if (over || e->high > e->bytes)
        REPORT(s,
               "%s: elements up to byte %" PRIu64 " leave allocation number %" PRIu64
               ", which has %" PRIu64 " bytes",
               e->name, e->high, serial, e->bytes);
    else
        return true;
    return false;
}

/* ---- overlap ----------------------------------------------------------------------------- */

enum { MAX_WALK = 1 << 14 /* elements looked at, one by one */ };

/* Does one of the first elements of `a` lie in the dense `b`? */
static bool walk(const tni_extent *a, const tni_extent *b) {
    const tn_tensor_view *v = a->view;
    int64_t index[TN_MAX_RANK] = {0};
    uint64_t size = element_bytes[v->dtype];
    for (int64_t n = 0; n < v->numel && n < MAX_WALK; n++) {
        uint64_t at = a->low;
        for (int32_t i = 0; i < v->rank; i++)
            at += (uint64_t)(index[i] * v->strides[i]) * size;
        if (at < b->high && b->low < at + size)
            return true;
        for (int32_t i = v->rank; i-- > 0 && ++index[i] == v->sizes[i];)
            index[i] = 0;
    }
    return false;
}

bool tni_extents_share(const tni_extent *a, const tni_extent *b) {
    if (a->view->memory != b->view->memory || a->low >= b->high || b->low >= a->high)
        return false;
    if (a->dense && b->dense)
        return true;
    if (a->dense)
        return walk(b, a);
    return b->dense ? walk(a, b) : tni_same_view(a->view, b->view);
}

bool tni_same_view(const tn_tensor_view *a, const tn_tensor_view *b) {
    if (a->memory != b->memory || a->offset != b->offset || a->dtype != b->dtype ||
        a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->sizes[i] != b->sizes[i] || (a->sizes[i] != 1 && a->strides[i] != b->strides[i]))
            return false;
    return true;
}
