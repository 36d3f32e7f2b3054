/* Device buffers with a copy of their expected bytes on the host, and long-running work.
 *
 * Buffers, work, streams and events that are made here live until the case ends, unless it destroys
 * them before. Those of a device that the case closes go before that. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_BUFFERS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_BUFFERS_H

#include "plugin-sdk/conformance/clock.h"
#include "plugin-sdk/conformance/worker/contract/contract.h"

typedef struct tc_buffer {
    tc_subject *subject;
    tc_owned *owned;
    tn_memory memory;
    int32_t space;
    void *host; /* what alloc gave */
    uint64_t bytes;
    unsigned char *model; /* [bytes]; lives as long as the case */
} tc_buffer;

/* Allocates, and fills with bytes that follow from the case's random numbers, so that the model
 * holds. False with the case failed. */
bool tc_buffer_create(tc_contract *k, tc_subject *s, int32_t space, uint64_t bytes, tc_buffer *out);
void tc_buffer_destroy(tc_buffer *b);

/* Reads all of it on `stream` and compares with the model; `what` goes into the message. */
bool tc_buffer_check(tc_contract *k, tc_buffer *b, tn_stream_impl *stream,
                     tn_requirement requirement, const char *what);

/* Keeps a stream busy for some milliseconds, with fills of memory of its own. */
typedef struct tc_work {
    tc_subject *subject;
    tn_memory memory;
    uint64_t bytes;
    double seconds; /* that one fill takes, as measured */
    uint32_t fills; /* that take long enough */
} tc_work;

bool tc_work_create(tc_contract *k, tc_subject *s, tc_work *out);
bool tc_work_queue(tc_contract *k, tc_work *w, tn_stream_impl *stream);

/* Waits for as long as a stream may take to begin with such work, and no more than a part of what it takes. */
void tc_let_begin(const tc_work *w);

/* Work that is one command, as long as there is memory for. */
bool tc_work_create_one(tc_contract *k, tc_subject *s, tc_work *out);

/* The same for about so many seconds. */
bool tc_work_hold(tc_contract *k, const tc_work *w, tn_stream_impl *stream, double seconds);

/* Holds n streams up behind long work of the first: what is queued on them next begins together. Streams that are
 * idle do one thing after the other, as fast as it is queued. `event` is recorded. */
bool tc_hold_together(tc_contract *k, tc_work *w, tn_stream_impl *const *streams, int n,
                      tn_event_impl *event);

/* Asks some times, each time right behind long work on `stream`, and behind a mark for `event`
 * unless that is NULL: did the answer always come only when the work was done? A question that is
 * answered at once is, now and then, at least. */
typedef tn_status tc_question(tc_contract *k, void *of);
bool tc_question_waits(tc_contract *k, tc_work *w, tn_stream_impl *stream, tn_event_impl *event,
                       tc_question *ask, void *of);

/* Fills all of a buffer behind what `stream` has, and the model with it. */
bool tc_buffer_fill(tc_contract *k, tc_buffer *b, tn_stream_impl *stream, int value);

/* Does the device have streams, and pinned memory? A case that needs them ends where it has none. */
bool tc_has_streams(tc_contract *k);
bool tc_has_pinned(tc_contract *k);

/* Streams and events that must come about. */
bool tc_stream_create(tc_contract *k, tc_subject *s, int32_t priority, tn_stream_impl **out);
bool tc_event_create(tc_contract *k, tc_subject *s, uint32_t flags, tn_event_impl **out);

/* What `query` of the event or, where that is NULL, of the stream says once it no longer says
 * TN_NOT_READY, or after half a minute. */
tn_status tc_ask_until_done(const tc_subject *s, tn_stream_impl *stream, tn_event_impl *event);

void tc_stream_destroy(tc_contract *k, tn_stream_impl *stream);
void tc_event_destroy(tc_contract *k, tn_event_impl *event);
bool tc_stream_sync(tc_contract *k, tn_stream_impl *stream);

/* Destroys what the case still has of a device, the latest first; NULL: of all. */
void tc_release(tc_contract *k, const tn_device_impl *device);

#endif
