/* Work that uses all that the plugin has: from its start, over both devices, to its end. What it
 * does is the same each time, and each of its calls looks at the current context. */
#ifndef TNI_TESTS_CUDA_LIFE_H
#define TNI_TESTS_CUDA_LIFE_H

#include "tests/cuda/rig.h"

#include <tenon/ext/capture.h>

enum { LIFE_N = 200, LIFE_BYTES = LIFE_N * sizeof(float), LIFE_LARGE = 64 << 10, LIFE_STREAMS = 3 };

/* What is 0 is not there. One thread at a time lives one; several threads live several. */
typedef struct life {
    const tn_host *host; /* NULL: mini_host_table() */
    mini m;              /* device 0, and the first stream */
    tn_device_impl *peer;
    tn_stream_impl *streams[LIFE_STREAMS], *peer_stream;
    tn_event_impl *start, *end;
    tn_memory in, negated, index, selected, copied, large, pinned, peer_memory;
    void *host_memory; /* of `pinned` */
    tn_graph_impl *graph, *another;
    const tn_ext_capture *capture;
    float results[LIFE_LARGE / sizeof(float)];
    CUcontext context; /* the thread's current one, and how many it has */
    int depth;
    const char *step;  /* the call that was made last */
    const char *names; /* what a message about it says, one of them: "creating a stream|..." */
    char wrong[160];   /* what a call did that it must not, or wrong numbers; else empty */
} life;

/* The plugin under test; loaded by life_load(). */
extern const tn_plugin *life_plugin;
void life_load(void);

/* Begins with the plugin's init. The first failure, which `step` had; what there is then stays. */
tn_status life_live(life *l);
/* All that there is goes, in the order in which it may; the plugin, too. */
void life_end(life *l);

/* A little work on an open device, which leaves nothing. */
tn_status life_use(tn_device_impl *device);

#endif
