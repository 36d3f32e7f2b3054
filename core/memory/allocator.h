/* The caching allocator: one per device, for every plugin.
 *
 * Requests are rounded and served from segments held from the device, best fit, within the pool of
 * the stream they are for; blocks are split and merged. A freed block may be handed out again at
 * once on its own stream; work of other streams it was recorded for is waited for first. In front
 * stand magazines per thread and size class, which make a hit a few nanoseconds. When the device is
 * full, unused segments are given back and the request is tried again.
 */
#ifndef TNI_CORE_ALLOCATOR_H
#define TNI_CORE_ALLOCATOR_H

#include "core/device/device.h"

/* A piece of device memory. The first members are what tensors read; the rest is the allocator's.
 */
typedef struct tni_block {
    tn_memory memory;  /* the segment's handle */
    uint64_t offset;   /* into it, in bytes; a multiple of the device's alignment */
    uint64_t bytes;    /* rounded */
    void *host;        /* address of the block where the host may read and write it, else NULL */
    tn_stream *stream; /* the stream it belongs to; kept */
    tni_device *device;
    uint64_t requested;
    void *segment;
    struct tni_block *previous, *next; /* neighbours in the segment */
    void *link;                        /* in a free list */
    void *extra;                       /* streams recorded, events waited for */
    uint32_t state;
    uint32_t size_class;
} tni_block;

tn_status tni_allocator_create(tni_device *device, struct tni_allocator **out);
/* All blocks were freed. Gives every segment back. */
void tni_allocator_destroy(struct tni_allocator *allocator);

/* A block of at least `bytes` (> 0) for work on `stream`. NULL with an error whose message has the
 * figures: what was asked, what is allocated and reserved, the limit, what the scopes hold. */
tni_block *tni_block_alloc(tni_device *device, tn_stream *stream, uint64_t bytes);
void tni_block_free(tni_block *block);

/* The block is used by `stream` too: after its free it waits until that stream has passed the
 * present. */
tn_status tni_block_record_stream(tni_block *block, tn_stream *stream);

#endif
