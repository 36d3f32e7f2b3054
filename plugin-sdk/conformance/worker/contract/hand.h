/* One of some threads that make calls at the same time: what it calls with, and what must come of it.
 *
 * A hand's bytes are its own and differ from every other's, and each round has a place of its own, so
 * that what one thread's call takes from another's stays to be seen until the hand is checked. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_HAND_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_HAND_H

#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/kernel/execute.h"

#include <tenon/ext/capture.h>

typedef struct tc_hand {
    tc_contract *k;
    tc_subject *s;
    int number;
    uint64_t most; /* bytes of one transfer */
    int rounds;    /* at most, before it is checked */
    int used;      /* of these */
    bool shares;   /* stream, events and graph are another hand's */
    tn_stream_impl *stream, *captures;
    tn_event_impl *event, *start, *end; /* the latter two are passed */
    double elapsed;                     /* between them */
    const tn_ext_capture *ext;          /* NULL: nothing can be captured */
    tn_graph_impl *graph;               /* fills `replayed` */
    tc_buffer from, to, replayed, pinned_from, pinned_to;
    unsigned char *scratch;
    tc_invocation call;
    tc_placed placed;
    bool has_kernel;
    uint64_t bits; /* that the kernel gives */
    char wrong[320];
} tc_hand;

/* Makes all that it calls with on its subject; what another hand shares with it is that one's. False
 * with the case failed; finish it either way. */
bool tc_hand_create(tc_hand *h, const tc_hand *other);
void tc_hand_finish(tc_hand *h);

/* When no thread calls: is all as its calls have made it? `what` goes into the message. */
bool tc_hand_check(tc_hand *h, const char *what);

/* Calls that several threads may make at once. */
typedef struct tc_slot {
    const char *name;
    bool moves; /* up to `most` bytes */
    bool (*can)(const tc_hand *h);
    void (*call)(tc_hand *h, int round); /* what goes wrong is told in `wrong` */
} tc_slot;

extern const tc_slot tc_slots[]; /* ended by one without name */

#endif
