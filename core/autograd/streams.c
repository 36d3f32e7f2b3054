/* See streams.h. */
#include "core/autograd/streams.h"

tn_status tni_streams_switch(tni_stream_use *use, tn_stream *stream) {
    tn_stream *before = tni_stream_current(stream->device);
    /* A capture has one stream, whichever the forward was on. */
    if (before == stream || tni_stream_captures(before))
        return TN_OK;
    tn_stream *caller = NULL;
    for (uint32_t i = 0; i < use->n_devices; i++)
        if (use->callers[i]->device == stream->device)
            caller = use->callers[i];
    if (!caller) {
        if (use->n_devices == TNI_MAX_PASS_STREAMS)
            return tni_fail(TN_ERR_UNSUPPORTED,
                            "one backward pass over more than %d devices with streams",
                            TNI_MAX_PASS_STREAMS);
        caller = use->callers[use->n_devices++] = tn_stream_keep(before);
    }
    tn_status status = tn_set_current_stream(stream);
    if (status != TN_OK || stream == caller)
        return status;
    uint32_t at = 0;
    while (at < use->n_used && use->used[at] != stream)
        at++;
    if (at < use->n_used)
        return TN_OK;
    if (use->n_used == TNI_MAX_PASS_STREAMS) {
        /* No room to remember one more: the host waits for the oldest now, nobody need later. */
        at = 0;
        status = tn_stream_synchronize(use->used[0]);
        tn_stream_drop(use->used[0]);
    } else {
        use->n_used++;
    }
    use->used[at] = tn_stream_keep(stream);
    return status;
}

tn_status tni_streams_hand_over(tni_stream_use *use, tn_stream *from, tn_stream *to,
                                tn_tensor *grad) {
    if (tni_stream_captures(tni_stream_current(to->device)))
        return TN_OK;
    tn_status status = from == to ? TN_OK : tni_stream_wait_stream(to, from);
    /* It was allocated for the one and is read by the other. */
    if (status == TN_OK && from != to && grad->device == to->device)
        status = tn_record_stream(grad, to);
    return status == TN_OK ? tni_streams_switch(use, to) : status;
}

tn_status tni_streams_join_slow(tni_stream_use *use) {
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < use->n_devices; i++) {
        tn_stream *caller = use->callers[i];
        tn_status set = tn_set_current_stream(caller);
        status = status == TN_OK ? set : status;
        for (uint32_t k = 0; k < use->n_used; k++) {
            if (use->used[k]->device != caller->device)
                continue;
            tn_status waited = tni_stream_wait_stream(caller, use->used[k]);
            status = status == TN_OK ? waited : status;
        }
        tn_stream_drop(caller);
    }
    for (uint32_t k = 0; k < use->n_used; k++)
        tn_stream_drop(use->used[k]);
    return status;
}
