/* Streams in backward: each node works on the stream of its forward call, waits for those it gets
 * gradients from, and in the end the caller's streams wait for all.
 */
#ifndef TNI_CORE_AUTOGRAD_STREAMS_H
#define TNI_CORE_AUTOGRAD_STREAMS_H

#include "core/autograd/engine.h"

enum { TNI_MAX_PASS_STREAMS = 32 };

typedef struct tni_stream_use {
    uint32_t n_devices, n_used;
    tn_stream *callers[TNI_MAX_PASS_STREAMS]; /* current before the pass, one a device; kept */
    tn_stream *used[TNI_MAX_PASS_STREAMS];    /* others that got work; kept */
} tni_stream_use;

tn_status tni_streams_switch(tni_stream_use *use, tn_stream *stream);
tn_status tni_streams_hand_over(tni_stream_use *use, tn_stream *from, tn_stream *to,
                                tn_tensor *grad);
/* Puts the caller's streams back and makes them wait. */
tn_status tni_streams_join_slow(tni_stream_use *use);

/* The stream of a node's forward, NULL on a device without streams. */
static inline tn_stream *tni_stream_of_node(const tni_node *node) {
    const tni_output_meta *m = node->outputs;
    for (uint32_t i = 0; i < node->n_outputs; i++, m++)
        if (m->device)
            return TNI_LIKELY(!m->device->streams) ? NULL : m->stream;
    return NULL;
}

/* Makes the node's stream current. */
static inline tn_status tni_streams_enter(tni_stream_use *use, const tni_node *node) {
    tn_stream *stream = tni_stream_of_node(node);
    if (TNI_LIKELY(!stream || stream == tni_stream_current(stream->device)))
        return TN_OK;
    return tni_streams_switch(use, stream);
}

/* Before `grad`, made by `from` (NULL: the caller), is given to `to`: to's stream is current, and
 * waits for from's. */
static inline tn_status tni_streams_pass_on(tni_stream_use *use, const tni_node *from,
                                            const tni_node *to, tn_tensor *grad) {
    tn_stream *there = tni_stream_of_node(to);
    if (TNI_LIKELY(!there))
        return TN_OK;
    tn_stream *here = from ? tni_stream_of_node(from) : NULL;
    if (!here || here->device != there->device)
        here = tni_stream_current(there->device);
    if (here == there && here == tni_stream_current(there->device))
        return TN_OK;
    return tni_streams_hand_over(use, here, there, grad);
}

static inline tn_status tni_streams_join(tni_stream_use *use) {
    return TNI_LIKELY(!use->n_devices) ? TN_OK : tni_streams_join_slow(use);
}

#endif
