/* See scene.h. */
#include "tests/opencl/scene.h"

#include <tenon/kernels.h>

/* ---- kernels ----------------------------------------------------------------------------- */

typedef struct view {
    tn_tensor_view view;
    int64_t size, stride;
} view;

static tn_cell make_view(view *v, tn_dtype dtype, tn_memory memory) {
    v->size = N;
    v->stride = 1;
    v->view = (tn_tensor_view){.struct_size = sizeof v->view,
                               .memory = memory,
                               .numel = N,
                               .dtype = dtype,
                               .rank = 1,
                               .sizes = &v->size,
                               .strides = &v->stride};
    return (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &v->view};
}

static tn_status run(scene *s, tn_stream_impl *stream, const char *op, const tn_cell *args,
                     uint32_t n_args, tn_memory out) {
    const tn_kernel *kernel = mini_find(&s->m, op, TN_F32, TN_DTYPE_NONE);
    view result;
    if (!kernel)
        return TN_ERR_NOT_FOUND;
    make_view(&result, TN_F32, out);
    const tn_tensor_view *outs[] = {&result.view};
    tn_call call = {.struct_size = sizeof call,
                    .device = s->m.device,
                    .stream = stream,
                    .user = kernel->user,
                    .args = args,
                    .outs = outs,
                    .n_args = n_args,
                    .n_outs = 1};
    return kernel->run(&call);
}

tn_status negate(scene *s, tn_stream_impl *stream, tn_memory in, tn_memory out) {
    view self;
    const tn_cell args[] = {make_view(&self, TN_F32, in)};
    return run(s, stream, "neg", args, 1, out);
}

tn_status add(scene *s, tn_stream_impl *stream, tn_memory a, tn_memory b, tn_memory out) {
    view self, other;
    const tn_cell args[] = {make_view(&self, TN_F32, a), make_view(&other, TN_F32, b), mini_i64(1)};
    return run(s, stream, "add", args, 3, out);
}

static tn_status select_by_index(scene *s, tn_stream_impl *stream) {
    view self, index;
    const tn_cell args[] = {
        [TN_ARG_index_select_self] = make_view(&self, TN_F32, s->negated),
        [TN_ARG_index_select_dim] = mini_i64(0),
        [TN_ARG_index_select_index] = make_view(&index, TN_I64, s->index),
    };
    return run(s, stream, "index_select", args, 3, s->out);
}

/* ---- a life ------------------------------------------------------------------------------ */

tn_memory allocate(scene *s, uint64_t bytes) {
    tn_memory memory = 0;
    void *host;
    assert_ok(mini_alloc(s->m.ops->memory, s->m.device, TN_SPACE_DEVICE, bytes, &memory, &host));
    return memory;
}

void set_index(scene *s, int64_t first) {
    int64_t index[N];
    for (int i = 0; i < N; i++)
        index[i] = i ? N - 1 - i : first;
    assert_ok(s->m.ops->memory->copy_from_host(s->m.device, s->m.stream, s->index, 0, index, 0,
                                               sizeof index));
    assert_ok(mini_synchronize(&s->m));
}

void set_up(scene *s) {
    void *host;
    *s = (scene){0};
    if (!mini_open(&s->m, rig_plugin, 0))
        fail_msg("%s", mini_error());
    s->ext = s->m.plugin->extension(s->m.self, TN_EXT_CAPTURE);
    assert_non_null(s->ext);
    assert_ok(s->m.ops->streams->create(s->m.device, 0, &s->other));
    s->in = allocate(s, BYTES);
    s->negated = allocate(s, BYTES);
    s->index = allocate(s, 2 * BYTES);
    s->out = allocate(s, BYTES);
    assert_ok(
        mini_alloc(s->m.ops->memory, s->m.device, TN_SPACE_PINNED, 2 * BYTES, &s->pinned, &host));
    s->numbers = host;
    s->results = s->numbers + N;
    set_index(s, N - 1);
    for (int i = 0; i < N; i++)
        s->numbers[i] = (float)(i + 1);
    memset(s->results, 0, BYTES);
}

void tear_down(scene *s) {
    const tn_memory memory[] = {s->in, s->negated, s->index, s->out};
    s->ext->abandon(s->m.stream);
    s->ext->destroy(s->graph);
    s->ext->destroy(s->second);
    s->m.ops->streams->destroy(s->other);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        s->m.ops->memory->dealloc(s->m.device, TN_SPACE_DEVICE, memory[i]);
    s->m.ops->memory->dealloc(s->m.device, TN_SPACE_PINNED, s->pinned);
    assert_true(mini_close(&s->m));
}

tn_status record(scene *s, tn_graph_impl **out) {
    const tn_memory_ops *memory = s->m.ops->memory;
    tn_device_impl *device = s->m.device;
    tn_stream_impl *stream = s->m.stream;
    tn_status status = s->ext->begin(stream);
    if (status != TN_OK)
        return status;
    status = memory->copy_from_host(device, stream, s->out, 0, s->numbers, s->pinned, BYTES);
    if (status == TN_OK)
        status = memory->copy(device, stream, s->in, 0, s->out, 0, BYTES);
    if (status == TN_OK)
        status = negate(s, stream, s->in, s->negated);
    if (status == TN_OK)
        status = memory->fill(device, stream, s->out, 1, 0xff, BYTES - 2);
    if (status == TN_OK)
        status = select_by_index(s, stream);
    if (status == TN_OK)
        status = memory->copy_to_host(device, stream, s->results, s->pinned, s->out, 0, BYTES);
    if (status == TN_OK)
        return s->ext->end(stream, out);
    s->ext->abandon(stream);
    return status;
}

void check(scene *s) {
    for (int i = 0; i < N; i++)
        assert_true(s->results[i] == -s->numbers[N - 1 - i]);
    memset(s->results, 0, BYTES);
}
