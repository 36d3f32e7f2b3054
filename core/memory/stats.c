/* Figures of a device's memory, and what can be set and asked from outside. */
#include "base/error.h"
#include "core/memory/pool.h"

#include <stdio.h>
#include <string.h>

char *tni_bytes_text(uint64_t bytes, char out[TNI_BYTES_TEXT]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out, TNI_BYTES_TEXT, "%u bytes", (unsigned)bytes);
        return out;
    }
    int unit = 0;
    double value = (double)bytes / 1024;
    for (; value >= 1024 && unit < 5; unit++)
        value /= 1024;
    snprintf(out, TNI_BYTES_TEXT, "%.2f %s", value, units[unit]);
    return out;
}

static void raise_to(uint64_t *peak, uint64_t value) {
    if (value > *peak)
        *peak = value;
}

/* Blocks in magazines are not in use. To sum them up takes longer than the rest of an allocation,
 * and cannot matter while the sum with them is no new peak. */
void tni_peaks_update(tni_allocator *a) {
    if (a->live_bytes <= a->allocated_peak && a->live_bytes + a->parked_bytes <= a->active_peak)
        return;
    uint64_t allocated = a->live_bytes - tni_caches_sum(a).held_bytes;
    raise_to(&a->allocated_peak, allocated);
    raise_to(&a->active_peak, allocated + a->parked_bytes);
}

/* The device's allocator; NULL with an error when it has none or may not be used. A device that is
 * lost still answers and takes back. */
static tni_allocator *allocator_of(tn_device device) {
    tni_device *d = tni_device_get(device);
    if (!d)
        return NULL;
    if (!d->allocator)
        tni_fail(TN_ERR_UNSUPPORTED, "%s: this device has no memory", d->name);
    else if (atomic_load(&d->forked))
        tni_device_check(d);
    else
        return d->allocator;
    return NULL;
}

static void read_stats(tni_allocator *a, tn_memory_stats *s) {
    tni_peaks_update(a);
    tni_cache_sums caches = tni_caches_sum(a);
    s->allocated_bytes = a->live_bytes - caches.held_bytes;
    s->allocated_peak = a->allocated_peak;
    s->reserved_bytes = a->reserved_bytes;
    s->reserved_peak = a->reserved_peak;
    s->active_bytes = s->allocated_bytes + a->parked_bytes;
    s->active_peak = a->active_peak;
    s->requested_bytes = a->live_requested + caches.requested;
    s->n_allocations = a->n_allocations + caches.n_allocs;
    s->n_frees = a->n_frees + caches.n_frees;
    s->n_device_allocs = a->n_device_allocs;
    s->n_device_frees = a->n_device_frees;
    s->n_retries = a->n_retries;
    s->n_out_of_memory = a->n_out_of_memory;
    s->limit_bytes = a->conf.limit;
}

tn_status tn_memory_stats_get(tn_device device, tn_memory_stats *out) {
    if (!out || out->struct_size < sizeof out->struct_size)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_memory_stats_get: out is NULL or its struct_size is not set; set it to"
                        " sizeof(tn_memory_stats)");
    tni_allocator *a = allocator_of(device);
    if (!a || tni_allocator_enter(a))
        return tn_error_status();
    tn_memory_stats s = {0};
    read_stats(a, &s);
    tni_allocator_unlock(a);
    s.struct_size = out->struct_size;
    memcpy(out, &s, out->struct_size < sizeof s ? out->struct_size : sizeof s);
    return TN_OK;
}

tn_status tn_memory_reset_peaks(tn_device device) {
    tni_allocator *a = allocator_of(device);
    if (!a || tni_allocator_enter(a))
        return tn_error_status();
    a->allocated_peak = a->active_peak = 0;
    a->reserved_peak = a->reserved_bytes;
    tni_peaks_update(a);
    tni_allocator_unlock(a);
    return TN_OK;
}

tn_status tn_empty_cache(tn_device device) {
    tni_allocator *a = allocator_of(device);
    if (!a || tni_allocator_enter(a))
        return tn_error_status();
    tni_cache_release(a);
    tni_allocator_unlock(a);
    tni_pinned_release(a->device);
    return TN_OK;
}

tn_status tn_memory_set_limit(tn_device device, uint64_t bytes) {
    tni_allocator *a = allocator_of(device);
    if (!a || tni_allocator_enter(a))
        return tn_error_status();
    a->conf.limit = bytes;
    if (bytes && a->reserved_bytes > bytes)
        tni_cache_release(a);
    tni_allocator_unlock(a);
    return TN_OK;
}
