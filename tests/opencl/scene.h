/* What the tests of captures share: a device with memory, and graphs on it. */
#ifndef TNI_TESTS_OPENCL_SCENE_H
#define TNI_TESTS_OPENCL_SCENE_H

#include "tests/opencl/rig.h"

#include <tenon/ext/capture.h>

enum { N = 200, BYTES = N * sizeof(float) };

typedef struct scene {
    mini m; /* with the stream that captures */
    const tn_ext_capture *ext;
    tn_stream_impl *other;
    tn_memory in, negated, index, out, pinned;
    float *numbers, *results; /* in `pinned` */
    tn_graph_impl *graph, *second;
} scene;

void set_up(scene *s);
/* Gives back what the scene has, graphs included. */
void tear_down(scene *s);

tn_memory allocate(scene *s, uint64_t bytes);
/* The index that comes first. */
void set_index(scene *s, int64_t first);

tn_status negate(scene *s, tn_stream_impl *stream, tn_memory in, tn_memory out);
tn_status add(scene *s, tn_stream_impl *stream, tn_memory a, tn_memory b, tn_memory out);

/* Pinned numbers are read, negated, taken by their index, and written behind. Without a graph
 * nothing is captured any more. */
tn_status record(scene *s, tn_graph_impl **out);
/* That was done; forgets it. */
void check(scene *s);

#endif
