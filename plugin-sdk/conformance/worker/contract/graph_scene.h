/* Captures that must succeed, and the scene in which cases make them. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_GRAPH_SCENE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_GRAPH_SCENE_H

#include "plugin-sdk/conformance/worker/contract/buffers.h"

#include <tenon/ext/capture.h>

/* The plugin's table, complete. NULL where there is none, and the case ends. */
const tn_ext_capture *tc_capture_extension(tc_contract *k);

/* A device that cannot capture ends the case. */
bool tc_capture_begin(tc_contract *k, const tn_ext_capture *ext, tn_stream_impl *stream);
bool tc_capture_end(tc_contract *k, const tn_ext_capture *ext, tn_stream_impl *stream,
                    tn_graph_impl **out);
bool tc_graph_launch(tc_contract *k, const tn_ext_capture *ext, tn_graph_impl *graph,
                     tn_stream_impl *stream);

enum { TC_SCENE_BYTES = 60000 };

typedef struct tc_scene {
    tc_contract *k;
    tc_subject *s;
    const tn_ext_capture *ext;
    tn_stream_impl *stream, *other; /* `stream` is the one that captures */
    tc_buffer a, b;                 /* of TC_SCENE_BYTES */
    tn_graph_impl *graph, *second;  /* what is not NULL goes with the scene */
} tc_scene;

/* False where there is nothing to capture with, or the case has failed; finish it either way. */
bool tc_scene_set_up(tc_contract *k, tc_scene *n);
void tc_scene_finish(tc_scene *n);

/* Destroys `graph`, if there is one, for the next. */
void tc_scene_drop(tc_scene *n);

bool tc_scene_begin(tc_scene *n);
bool tc_scene_end(tc_scene *n, tn_graph_impl **out);
bool tc_scene_launch(tc_scene *n, tn_graph_impl *graph, tn_stream_impl *stream);

/* On the capturing stream; the models stay as they are. */
bool tc_scene_fill(tc_scene *n, tc_buffer *b, uint64_t from, uint64_t bytes, int value);
bool tc_scene_copy(tc_scene *n, tc_buffer *to, uint64_t at, tc_buffer *from, uint64_t bytes);

/* A graph that fills all of `b`. */
bool tc_scene_capture_fill(tc_scene *n, tc_buffer *b, int value, tn_graph_impl **out);

/* Waits for the stream and compares with the model. */
bool tc_scene_check(tc_scene *n, tc_buffer *b, tn_stream_impl *stream, tn_requirement requirement,
                    const char *what);

#endif
