/* See graph_scene.h. */
#include "plugin-sdk/conformance/worker/contract/graph_scene.h"

const tn_ext_capture *tc_capture_extension(tc_contract *k) {
    const tn_ext_capture *ext = tc_subject_extension(k->subject, TN_EXT_CAPTURE);
    if (!tc_has_streams(k))
        return NULL;
    if (!ext)
        TC_NOT_OFFERED(k, "no tenon.capture/1");
    else if (!TN_HAS(ext, tn_ext_capture, destroy) || !ext->begin || !ext->end || !ext->abandon ||
             !ext->launch || !ext->destroy)
        TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, TN_EXT_CAPTURE " lacks a function");
    else
        return ext;
    return NULL;
}

bool tc_capture_begin(tc_contract *k, const tn_ext_capture *ext, tn_stream_impl *stream) {
    tn_status status = ext->begin(stream);
    if (status == TN_ERR_UNSUPPORTED)
        return TC_NOT_OFFERED(k, "this device cannot capture");
    return tc_must(k, TNP_CAPTURE_RECORDS, status, "begin of a capture");
}

bool tc_capture_end(tc_contract *k, const tn_ext_capture *ext, tn_stream_impl *stream,
                    tn_graph_impl **out) {
    *out = NULL;
    if (!tc_must(k, TNP_CAPTURE_RECORDS, ext->end(stream, out), "end of a capture"))
        return false;
    return *out || TC_BROKEN(k, TNP_CAPTURE_RECORDS, "end of a capture gave no graph");
}

bool tc_graph_launch(tc_contract *k, const tn_ext_capture *ext, tn_graph_impl *graph,
                     tn_stream_impl *stream) {
    return tc_must(k, TNP_CAPTURE_REPLAYS, ext->launch(graph, stream), "launch of a graph");
}

bool tc_scene_set_up(tc_contract *k, tc_scene *n) {
    *n = (tc_scene){.k = k, .s = k->subject, .ext = tc_capture_extension(k)};
    return n->ext && tc_stream_create(k, n->s, 0, &n->stream) &&
           tc_stream_create(k, n->s, 0, &n->other) &&
           tc_buffer_create(k, n->s, TN_SPACE_DEVICE, TC_SCENE_BYTES, &n->a) &&
           tc_buffer_create(k, n->s, TN_SPACE_DEVICE, TC_SCENE_BYTES, &n->b);
}

void tc_scene_drop(tc_scene *n) {
    if (n->graph)
        n->ext->destroy(n->graph);
    n->graph = NULL;
}

void tc_scene_finish(tc_scene *n) {
    if (!n->ext)
        return;
    tc_scene_drop(n);
    if (n->second)
        n->ext->destroy(n->second);
}

bool tc_scene_begin(tc_scene *n) {
    return tc_capture_begin(n->k, n->ext, n->stream);
}
bool tc_scene_end(tc_scene *n, tn_graph_impl **out) {
    return tc_capture_end(n->k, n->ext, n->stream, out);
}
bool tc_scene_launch(tc_scene *n, tn_graph_impl *graph, tn_stream_impl *stream) {
    return tc_graph_launch(n->k, n->ext, graph, stream);
}

bool tc_scene_fill(tc_scene *n, tc_buffer *b, uint64_t from, uint64_t bytes, int value) {
    return tc_must(
        n->k, TNP_CAPTURE_RECORDS,
        n->s->memory->fill(n->s->device, n->stream, b->memory, from, (uint8_t)value, bytes),
        "fill on a stream that captures");
}

bool tc_scene_copy(tc_scene *n, tc_buffer *to, uint64_t at, tc_buffer *from, uint64_t bytes) {
    return tc_must(
        n->k, TNP_CAPTURE_RECORDS,
        n->s->memory->copy(n->s->device, n->stream, to->memory, at, from->memory, 0, bytes),
        "copy on a stream that captures");
}

bool tc_scene_check(tc_scene *n, tc_buffer *b, tn_stream_impl *stream, tn_requirement requirement,
                    const char *what) {
    return tc_stream_sync(n->k, stream) &&
           tc_buffer_check(n->k, b, n->s->stream, requirement, what);
}

bool tc_scene_capture_fill(tc_scene *n, tc_buffer *b, int value, tn_graph_impl **out) {
    return tc_scene_begin(n) && tc_scene_fill(n, b, 0, b->bytes, value) && tc_scene_end(n, out);
}
