/* Allocations and transfers.
 *
 * At level 2 an allocation is made TNI_GUARD_BYTES longer than asked for. The end holds a pattern,
 * which must still be there when the allocation is freed. Where the host cannot reach the memory,
 * the pattern travels on a stream of the layer's own. */
#include "base/error.h"
#include "loader/validation/internal.h"

#include <inttypes.h>
#include <string.h>

enum { GUARD_BYTE = 0xa5 };

/* ---- guard zones ------------------------------------------------------------------------- */

static bool guard_set(tni_watch *w, tn_device_impl *device, tn_memory memory, uint64_t bytes,
                      char *host) {
    if (host) {
        memset(host + bytes, GUARD_BYTE, TNI_GUARD_BYTES);
        return true;
    }
    bool ok;
    tn_stream_impl *stream = tni_own_stream(w, device, &ok);
    if (!ok || w->real.memory.fill(device, stream, memory, bytes, GUARD_BYTE, TNI_GUARD_BYTES))
        return false;
    return !stream || w->real.streams.synchronize(stream) == TN_OK;
}

static void guard_check(tni_watch *w, tn_device_impl *device, const tni_record *m,
                        const char *slot) {
    unsigned char bytes[TNI_GUARD_BYTES];
    if (!tni_peek(w, device, m->key, m->host, m->bytes, bytes, sizeof bytes))
        return;
    for (uint64_t i = 0; i < sizeof bytes; i++) {
        if (bytes[i] == GUARD_BYTE)
            continue;
        tni_finding(w, TNP_KERNEL_WRITES_OUTPUTS_ONLY, slot, "",
                    "work wrote behind allocation number %" PRIu64 " of %" PRIu64
                    " bytes: byte %" PRIu64 " behind its end is %#x",
                    m->serial, m->bytes, i, bytes[i]);
        return;
    }
}

/* ---- allocations ------------------------------------------------------------------------- */

/* The allocation that has a byte of this range of the host's, or NULL. Under the lock. */
static tni_record *memory_at(tni_watch *w, const char *host, uint64_t bytes) {
    tni_record *r = NULL;
    while (host && (r = tni_record_next(w, r)))
        if (r->kind == TNI_RECORD_MEMORY && r->host && r->host < host + bytes &&
            host < r->host + r->bytes)
            break;
    return r;
}

/* What must hold of an allocation that succeeded; `overlap`: who has a byte of it, or 0. */
static void judge_alloc(tni_watch *w, const tni_record *d, const tni_record *m, bool twin,
                        uint64_t overlap) {
    const char *slot = "memory->alloc";
    if (twin)
        tni_finding(w, TNP_ALLOC_HANDLE, slot, "",
                    "gave out the handle %#" PRIx64 ", which is alive already", m->key);
    if (overlap)
        tni_finding(w, TNP_ALLOC_HANDLE, slot, "",
                    "the host pointer %p of %" PRIu64 " bytes overlaps allocation number %" PRIu64
                    ", which is alive",
                    (void *)m->host, m->bytes, overlap);
    if ((uintptr_t)m->host % m->alignment)
        tni_finding(w, TNP_ALLOC_ALIGNMENT, slot, "",
                    "the host pointer %p is not aligned to %" PRIu64, (void *)m->host,
                    m->alignment);
    if (!m->host && m->space == TN_SPACE_PINNED)
        tni_finding(w, TNP_ALLOC_HOST_POINTER, slot, "", "pinned memory without a host pointer");
    if (!m->host && m->space == TN_SPACE_DEVICE && d->host_memory)
        tni_finding(w, TNP_PROPERTY_UNIFIED_MEMORY, slot, "",
                    "memory without a host pointer on a device with TN_PROP_UNIFIED_MEMORY");
}

static bool keep(tni_watch *w, const tni_record *d, const tni_record *m) {
    pthread_mutex_lock(&tni_records_lock);
    const void *device = (void *)(uintptr_t)d->key;
    bool twin = tni_memory_find(w, device, TN_SPACE_DEVICE, m->key) ||
                tni_memory_find(w, device, TN_SPACE_PINNED, m->key);
    const tni_record *other = memory_at(w, m->host, m->bytes);
    uint64_t overlap = other ? other->serial : 0;
    bool kept = tni_record_add(w, m);
    pthread_mutex_unlock(&tni_records_lock);
    judge_alloc(w, d, m, twin, overlap);
    return kept;
}

static bool is_power_of_two(uint64_t n) {
    return n && !(n & (n - 1));
}

static void check_request(tni_watch *w, const char *slot, const tni_record *d,
                          const tn_allocation *a) {
    if (a->bytes == 0)
        tni_finding(w, TNI_TENON, slot, "", "0 bytes were asked for; the least is 1");
    if (a->alignment < d->alignment || !is_power_of_two(a->alignment))
        tni_finding(w, TNI_TENON, slot, "",
                    "an alignment of %" PRIu64
                    " was asked for; it is a power of two, the device's %" PRIu64 " or more",
                    a->alignment, d->alignment);
    if (a->flags)
        tni_finding(w, TNI_TENON, slot, "", "flags %#x, and no bit has a meaning yet", a->flags);
    if (d->max_allocation && a->space == TN_SPACE_DEVICE && a->bytes > d->max_allocation)
        tni_finding(w, TNI_TENON, slot, "",
                    "%" PRIu64 " bytes were asked for, and TN_PROP_MAX_ALLOCATION is %" PRIu64,
                    a->bytes, d->max_allocation);
}

/* Only spaces that the device offers are asked for, and only they are served. */
static void check_space(tni_watch *w, const char *slot, const tni_record *d, int32_t space,
                        tn_status status) {
    if (space >= 0 && space < 64 && (d->spaces >> space & 1))
        return;
    tni_finding(w, TNI_TENON, slot, "", "space %d was asked for, and TN_PROP_SPACES is %#" PRIx64,
                space, d->spaces);
    if (status == TN_OK)
        tni_finding(w, TNP_MEMORY_SPACES, slot, "",
                    "served space %d, and TN_PROP_SPACES is %#" PRIx64, space, d->spaces);
}

static void check_size(tni_watch *w, const char *slot, uint64_t now, uint64_t before) {
    if (now != before)
        tni_finding(w, TNP_HOST_STRUCT_SIZE, slot, "",
                    "struct_size, which the caller set, was changed");
}

static tn_status memory_alloc(tn_device_impl *device, tn_allocation *allocation) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d;
    const char *slot = "memory->alloc";
    if (!tni_live_device(w, slot, "", device, &d))
        return tni_watch_refuse("memory->alloc: the device is not open");
    uint64_t bytes = allocation->bytes;
    int32_t space = allocation->space;
    check_request(w, slot, &d, allocation);
    uint64_t extra = w->level >= 2 && bytes < UINT64_MAX - TNI_GUARD_BYTES ? TNI_GUARD_BYTES : 0;
    if (d.max_allocation && bytes + extra > d.max_allocation)
        extra = 0;
    tn_allocation made = *allocation;
    made.struct_size = sizeof made;
    made.bytes += extra;
    tn_status status = TNI_ASK(w, slot, NULL, 0, w->real.memory.alloc(device, &made));
    tni_note_loss(w, device, d.lost, status, slot, "");
    check_size(w, slot, made.struct_size, sizeof made);
    check_space(w, slot, &d, space, status);
    if (status != TN_OK)
        return status;
    allocation->memory = made.memory;
    allocation->host = made.host;
    if (!made.memory) {
        tni_finding(w, TNP_ALLOC_HANDLE, slot, "",
                    "succeeded with the handle 0, which means no memory");
        return status;
    }
    if (extra)
        extra = guard_set(w, device, made.memory, bytes, made.host) ? extra : 0;
    tni_record m = {.kind = TNI_RECORD_MEMORY,
                    .key = made.memory,
                    .device = (uintptr_t)device,
                    .space = space,
                    .alignment = is_power_of_two(allocation->alignment) ? allocation->alignment : 1,
                    .bytes = bytes,
                    .host = made.host,
                    .guarded = extra != 0};
    if (keep(w, &d, &m))
        return TN_OK;
    w->real.memory.dealloc(device, space, made.memory);
    allocation->memory = 0;
    allocation->host = NULL;
    return tni_error_plugin(TN_ERR_OUT_OF_MEMORY, "no host memory to check an allocation");
}

static void memory_dealloc(tn_device_impl *device, int32_t space, tn_memory memory) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d, m = {0}, pending = {0};
    const char *slot = "memory->dealloc";
    if (!tni_live_device(w, slot, "", device, &d))
        return;
    pthread_mutex_lock(&tni_records_lock);
    tni_record *r = tni_memory_find(w, device, space, memory);
    bool elsewhere = !r && tni_record_find(w, TNI_RECORD_MEMORY, memory);
    if (r) {
        m = *r;
        const tni_record *p = d.lost ? NULL : tni_clock_pending(w, &r->clock);
        if (p)
            pending = *p;
        /* Before the call: after it the handle may be another allocation's. */
        tni_record_remove(w, r);
    }
    pthread_mutex_unlock(&tni_records_lock);
    if (!m.key) {
        tni_finding(w, TNI_TENON, slot, "",
                    elsewhere ? "memory %#" PRIx64 " is of another device, or of another space"
                              : "memory %#" PRIx64
                                " is not alive: it was freed before, or never given out",
                    memory);
        return;
    }
    if (pending.serial)
        tni_finding(w, TNI_TENON, slot, "",
                    "allocation number %" PRIu64 " (%" PRIu64 " bytes) is freed while work on"
                    " stream number %" PRIu64 ", which nobody waited for, may use it",
                    m.serial, m.bytes, pending.serial);
    if (m.guarded && !d.lost)
        guard_check(w, device, &m, slot);
    TNI_TELL(w, slot, NULL, w->real.memory.dealloc(device, space, memory));
}

static tn_status memory_info(tn_device_impl *device, int32_t space, tn_memory_info *out) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d;
    const char *slot = "memory->info";
    if (!tni_live_device(w, slot, "", device, &d))
        return tni_watch_refuse("memory->info: the device is not open");
    uint64_t size = out->struct_size;
    tn_status status =
        TNI_ASK(w, slot, NULL, TNI_MAY_DECLINE, w->real.memory.info(device, space, out));
    check_size(w, slot, out->struct_size, size);
    check_space(w, slot, &d, space, status);
    if (status == TN_OK && TN_HAS(out, tn_memory_info, free_bytes) && out->total_bytes &&
        out->free_bytes > out->total_bytes)
        tni_finding(w, TNP_MEMORY_INFO, slot, "", "%" PRIu64 " bytes free of %" PRIu64,
                    out->free_bytes, out->total_bytes);
    return status;
}

/* ---- transfers --------------------------------------------------------------------------- */

/* The device and the stream of a transfer; 0 where that is NULL. */
static bool check_place(tni_watch *w, const char *slot, tn_device_impl *device,
                        tn_stream_impl *stream, tni_record *out_device, tni_record *out_stream) {
    *out_stream = (tni_record){0};
    if (!tni_live_device(w, slot, "", device, out_device))
        return false;
    if (stream)
        return tni_live_stream(w, slot, "", device, stream, out_stream);
    if (w->real.devices.streams)
        tni_finding(w, TNI_TENON, slot, "", "stream is NULL on a device with streams");
    return true;
}

/* A range of device memory. */
static bool check_range(tni_watch *w, const char *slot, tn_device_impl *device, tn_memory memory,
                        uint64_t offset, uint64_t bytes) {
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *m = tni_memory_find(w, device, TN_SPACE_DEVICE, memory);
    bool found = m != NULL;
    uint64_t there = m ? m->bytes : 0, serial = m ? m->serial : 0;
    bool elsewhere = !m && tni_record_find(w, TNI_RECORD_MEMORY, memory);
    pthread_mutex_unlock(&tni_records_lock);
    if (!found)
        tni_finding(w, TNI_TENON, slot, "",
                    elsewhere ? "memory %#" PRIx64 " is of another device, or pinned"
                              : "memory %#" PRIx64
                                " is not alive: it was freed before, or never given out",
                    memory);
    else if (bytes > there || offset > there - bytes)
        tni_finding(w, TNI_TENON, slot, "",
                    "%" PRIu64 " bytes at offset %" PRIu64 " leave allocation number %" PRIu64
                    ", which has %" PRIu64 " bytes",
                    bytes, offset, serial, there);
    else
        return true;
    return false;
}

/* The host's side of a transfer: in the pinned allocation that is named, or anywhere. */
static bool check_pinned(tni_watch *w, const char *slot, tn_device_impl *device, tn_memory pinned,
                         const void *host, uint64_t bytes) {
    if (!pinned)
        return true;
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *m = tni_memory_find(w, device, TN_SPACE_PINNED, pinned);
    bool inside = m && (const char *)host >= m->host && bytes <= m->bytes &&
                  (uint64_t)((const char *)host - m->host) <= m->bytes - bytes;
    pthread_mutex_unlock(&tni_records_lock);
    if (!inside)
        tni_finding(w, TNI_TENON, slot, "",
                    "%" PRIu64 " bytes at %p are not inside %#" PRIx64
                    ", which must be pinned memory of this device",
                    bytes, host, pinned);
    return inside;
}

/* Work that was queued on the stream, or recorded, uses this memory, and this pinned memory; 0:
 * none. */
static void note_use(tni_watch *w, tn_device_impl *device, tn_stream_impl *stream, tn_memory memory,
                     tn_memory pinned) {
    pthread_mutex_lock(&tni_records_lock);
    tni_point work = tni_note_work(w, stream);
    tni_note_use(w, work, tni_memory_find(w, device, TN_SPACE_DEVICE, memory));
    tni_note_use(w, work, tni_memory_find(w, device, TN_SPACE_PINNED, pinned));
    pthread_mutex_unlock(&tni_records_lock);
}

static tn_status memory_copy_from_host(tn_device_impl *device, tn_stream_impl *stream,
                                       tn_memory dst, uint64_t dst_offset, const void *src,
                                       tn_memory src_pinned, uint64_t bytes) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d, s;
    const char *slot = "memory->copy_from_host";
    if (!check_place(w, slot, device, stream, &d, &s) ||
        !check_range(w, slot, device, dst, dst_offset, bytes) ||
        !check_pinned(w, slot, device, src_pinned, src, bytes))
        return tni_watch_refuse(
            "memory->copy_from_host: device, stream, memory or range is not there");
    if (w->level >= 2 && stream && !src_pinned && bytes)
        tni_hold(w, device, stream, TNI_A_WHILE); /* so that what is read later is read later */
    tni_loan *loan = NULL;
    void *lent = src_pinned ? NULL : tni_lend(w, TNP_WRITE_CONSUMES_SOURCE, slot, "", bytes, &loan);
    if (lent)
        src = memcpy(lent, src, bytes);
    tn_status status = TNI_ASK(
        w, slot, NULL, 0,
        w->real.memory.copy_from_host(device, stream, dst, dst_offset, src, src_pinned, bytes));
    tni_lend_back(loan);
    if (status == TN_OK)
        note_use(w, device, stream, dst, src_pinned);
    if (!src_pinned)
        tni_note_refusal(w, &s, status, slot);
    tni_note_loss(w, device, d.lost, status, slot, "");
    return status;
}

static tn_status memory_copy_to_host(tn_device_impl *device, tn_stream_impl *stream, void *dst,
                                     tn_memory dst_pinned, tn_memory src, uint64_t src_offset,
                                     uint64_t bytes) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d, s;
    const char *slot = "memory->copy_to_host";
    if (!check_place(w, slot, device, stream, &d, &s) ||
        !check_range(w, slot, device, src, src_offset, bytes) ||
        !check_pinned(w, slot, device, dst_pinned, dst, bytes))
        return tni_watch_refuse(
            "memory->copy_to_host: device, stream, memory or range is not there");
    tni_clock clock = {0};
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *r = tni_record_find(w, TNI_RECORD_STREAM, (uintptr_t)stream);
    if (r)
        tni_mark_stream(w, r, &clock);
    pthread_mutex_unlock(&tni_records_lock);
    tn_status status = TNI_ASK(
        w, slot, NULL, 0,
        w->real.memory.copy_to_host(device, stream, dst, dst_pinned, src, src_offset, bytes));
    /* Into memory that is not named as pinned it has waited for all that was queued before. */
    tni_clock_settle(w, &clock, status == TN_OK && !dst_pinned && bytes > 0);
    if (dst_pinned && status == TN_OK)
        note_use(w, device, stream, src, dst_pinned);
    if (!dst_pinned)
        tni_note_refusal(w, &s, status, slot);
    tni_note_loss(w, device, d.lost, status, slot, "");
    return status;
}

static tn_status memory_copy(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, tn_memory src, uint64_t src_offset,
                             uint64_t bytes) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d, s;
    const char *slot = "memory->copy";
    if (!check_place(w, slot, device, stream, &d, &s) ||
        !check_range(w, slot, device, dst, dst_offset, bytes) ||
        !check_range(w, slot, device, src, src_offset, bytes))
        return tni_watch_refuse("memory->copy: device, stream, memory or range is not there");
    if (dst == src && dst_offset < src_offset + bytes && src_offset < dst_offset + bytes)
        tni_finding(w, TNI_TENON, slot, "",
                    "%" PRIu64 " bytes from offset %" PRIu64 " to offset %" PRIu64
                    " of one allocation overlap",
                    bytes, src_offset, dst_offset);
    tn_status status =
        TNI_ASK(w, slot, NULL, 0,
                w->real.memory.copy(device, stream, dst, dst_offset, src, src_offset, bytes));
    if (status == TN_OK) {
        note_use(w, device, stream, dst, 0);
        note_use(w, device, stream, src, 0);
    }
    tni_note_loss(w, device, d.lost, status, slot, "");
    return status;
}

static tn_status memory_copy_peer(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                                  uint64_t dst_offset, tn_device_impl *src_device, tn_memory src,
                                  uint64_t src_offset, uint64_t bytes) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d, s, other;
    const char *slot = "memory->copy_peer";
    if (!check_place(w, slot, device, stream, &d, &s) ||
        !tni_live_device(w, slot, "", src_device, &other) ||
        !check_range(w, slot, device, dst, dst_offset, bytes) ||
        !check_range(w, slot, src_device, src, src_offset, bytes))
        return tni_watch_refuse(
            "memory->copy_peer: a device, stream, memory or range is not there");
    tn_status status = TNI_ASK(w, slot, NULL, TNI_MAY_DECLINE,
                               w->real.memory.copy_peer(device, stream, dst, dst_offset, src_device,
                                                        src, src_offset, bytes));
    if (status == TN_OK) {
        note_use(w, device, stream, dst, 0);
        note_use(w, src_device, stream, src, 0);
    }
    tni_note_refusal(w, &s, status, slot);
    if (status != TN_ERR_UNSUPPORTED)
        tni_note_loss(w, device, d.lost, status, slot, "");
    return status;
}

static tn_status memory_fill(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                             uint64_t dst_offset, uint8_t value, uint64_t bytes) {
    tni_watch *w = tni_watch_of(TNI_RECORD_DEVICE, device);
    tni_record d, s;
    const char *slot = "memory->fill";
    if (!check_place(w, slot, device, stream, &d, &s) ||
        !check_range(w, slot, device, dst, dst_offset, bytes))
        return tni_watch_refuse("memory->fill: device, stream, memory or range is not there");
    tn_status status = TNI_ASK(w, slot, NULL, 0,
                               w->real.memory.fill(device, stream, dst, dst_offset, value, bytes));
    if (status == TN_OK)
        note_use(w, device, stream, dst, 0);
    tni_note_loss(w, device, d.lost, status, slot, "");
    return status;
}

/* ---- the table --------------------------------------------------------------------------- */

const tn_memory_ops tni_checked_memory = {
    .alloc = memory_alloc,
    .dealloc = memory_dealloc,
    .copy_from_host = memory_copy_from_host,
    .copy_to_host = memory_copy_to_host,
    .copy = memory_copy,
    .copy_peer = memory_copy_peer,
    .fill = memory_fill,
    .info = memory_info,
};
TN_LAST_MEMBER(tn_memory_ops, info);
