/* tn_memory_snapshot: every segment with its blocks, as JSON, for people and tools. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "core/memory/pool.h"

#include <inttypes.h>

static const char *state_name(const tni_block *b) {
    static const char *const names[] = {[TNI_BLOCK_LIVE] = "live",
                                        [TNI_BLOCK_CACHED] = "cached",
                                        [TNI_BLOCK_FREE] = "free",
                                        [TNI_BLOCK_PARKED] = "waiting"};
    return names[atomic_load_explicit(&b->state, memory_order_relaxed)];
}

static void add_segment(tni_text *t, const tni_segment *s) {
    tni_text_add(t,
                 "    {\"memory\": \"0x%" PRIx64 "\", \"bytes\": %" PRIu64
                 ", \"pool\": \"%s\", \"stream\": %u, \"graph\": %s, \"blocks\": [",
                 s->memory, s->bytes, s->pool->small ? "small" : "large", s->pool->of->stream->id,
                 s->pool->of->stream->reserved ? "true" : "false");
    for (const tni_block *b = s->first; b; b = b->next)
        tni_text_add(
            t, "%s\n      {\"offset\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"state\": \"%s\"}",
            b == s->first ? "" : ",", b->offset, b->bytes, state_name(b));
    tni_text_add(t, "]}");
}

static void add_all(tni_text *t, tni_allocator *a) {
    tni_cache_sums caches = tni_caches_sum(a);
    tni_text_add(t, "{\n  \"device\": ");
    tni_text_add_json(t, a->device->name);
    tni_text_add(t,
                 ",\n  \"allocated_bytes\": %" PRIu64 ",\n  \"reserved_bytes\": %" PRIu64
                 ",\n  \"waiting_bytes\": %" PRIu64 ",\n  \"limit_bytes\": %" PRIu64
                 ",\n  \"segments\": [\n",
                 a->live_bytes - caches.held_bytes, a->reserved_bytes, a->parked_bytes,
                 a->conf.limit);
    for (const tni_segment *s = a->segments; s; s = s->next) {
        add_segment(t, s);
        tni_text_add(t, "%s\n", s->next ? "," : "");
    }
    tni_text_add(t, "  ]\n}\n");
}

char *tn_memory_snapshot(tn_device device) {
    tni_device *d = tni_device_get(device);
    if (!d || (atomic_load(&d->forked) && tni_device_check(d)))
        return NULL;
    tni_allocator *a = d->allocator;
    if (!a)
        return tni_fail_null(TN_ERR_UNSUPPORTED, "%s: this device has no memory", d->name);
    tni_text t = {0};
    if (tni_allocator_enter(a))
        return NULL;
    add_all(&t, a);
    tni_allocator_unlock(a);
    if (!t.failed)
        return t.data;
    tni_free(t.data);
    return tni_fail_memory_null("a snapshot of device memory");
}
