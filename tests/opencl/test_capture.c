/* Graphs, which are commands that are queued again: above a driver that fails, without host memory, beside
 * other work, in threads. */
#include "tests/opencl/rig.h"

#include <pthread.h>
#include <tenon/ext/capture.h>
#include <tenon/kernels.h>

enum { N = 200, BYTES = N * sizeof(float) };

typedef struct scene {
    mini m; /* with the stream that captures */
    const tn_ext_capture *ext;
    tn_stream_impl *other;
    tn_memory in, negated, index, out, pinned;
    float *numbers, *results; /* in `pinned` */
    tn_graph_impl *graph, *second;
} scene;

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

static tn_status negate(scene *s, tn_stream_impl *stream, tn_memory in, tn_memory out) {
    view self;
    const tn_cell args[] = {make_view(&self, TN_F32, in)};
    return run(s, stream, "neg", args, 1, out);
}

static tn_status add(scene *s, tn_stream_impl *stream, tn_memory a, tn_memory b, tn_memory out) {
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

static tn_memory allocate(scene *s, uint64_t bytes) {
    tn_memory memory = 0;
    void *host;
    assert_ok(mini_alloc(s->m.ops->memory, s->m.device, TN_SPACE_DEVICE, bytes, &memory, &host));
    return memory;
}

static void set_index(scene *s, int64_t first) {
    int64_t index[N];
    for (int i = 0; i < N; i++)
        index[i] = i ? N - 1 - i : first;
    assert_ok(s->m.ops->memory->copy_from_host(s->m.device, s->m.stream, s->index, 0, index, 0,
                                               sizeof index));
    assert_ok(mini_synchronize(&s->m));
}

static void set_up(scene *s) {
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

static void tear_down(scene *s) {
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

/* Pinned numbers are read, negated, taken by their index, and written behind. */
static tn_status record(scene *s, tn_graph_impl **out) {
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

static void check(scene *s) {
    for (int i = 0; i < N; i++)
        assert_true(s->results[i] == -s->numbers[N - 1 - i]);
    memset(s->results, 0, BYTES);
}

/* All that the extension has. */
static tn_status use(scene *s) {
    tn_status status = record(s, &s->graph);
    if (status == TN_OK)
        status = record(s, &s->second);
    if (status == TN_OK)
        status = s->ext->launch(s->graph, s->m.stream);
    if (status == TN_OK)
        status = s->ext->update(s->graph, s->second);
    for (int i = 0; i < 3 && status == TN_OK; i++)
        status = s->ext->launch(i < 2 ? s->graph : s->second, i < 1 ? s->m.stream : s->other);
    if (status == TN_OK)
        status = s->m.ops->streams->synchronize(s->other);
    return status;
}

static void destroy_graphs(scene *s) {
    s->ext->destroy(s->graph);
    s->ext->destroy(s->second);
    s->graph = s->second = NULL;
}

/* ---- drivers that fail ------------------------------------------------------------------- */

static void assert_lost(tn_status status) {
    assert_int_equal(status, TN_ERR_DEVICE_LOST);
    assert_text(mini_error(), "lost");
    assert_text(mini_error(), "end the program");
}

static void use_lost(scene *s) {
    tn_graph_impl *none = NULL;
    assert_lost(s->ext->begin(s->m.stream));
    assert_lost(s->ext->end(s->m.stream, &none));
    assert_null(none);
    if (!s->graph)
        return;
    assert_lost(s->ext->launch(s->graph, s->other));
    assert_lost(s->ext->update(s->graph, s->graph));
}

/* Nothing is left of it, and the same can be done then. A launch that was begun is brought to its end. */
static void any_call_may_fail(void **state) {
    uint64_t at = 0, n_failed = 0;
    bool was_reached;
    do {
        scene s;
        char words[48];
        const char *which = "";
        set_up(&s);
        snprintf(words, sizeof words, "fail=*:-6@%llu", (unsigned long long)++at);
        layer_say(words);
        tn_status status = use(&s);
        was_reached = layer_calls() >= at;
        layer_say("");
        if (status != TN_OK) {
            n_failed++;
            assert_int_not_equal(status, TN_ERR_DEVICE_LOST);
            assert_text(mini_error(), "opencl:0");
            assert_text(mini_error(), "CL_OUT_OF_HOST_MEMORY");
            destroy_graphs(&s);
            assert_ok(use(&s));
        }
        check(&s);
        tear_down(&s);
        if (layer_alive(&which))
            fail_msg("with '%s' objects are left, of kind %s", words, which);
    } while (was_reached);
    print_message("%llu calls, %llu of them cannot fail unnoticed\n", (unsigned long long)at - 1,
                  (unsigned long long)n_failed);
    assert_true(at > 60 && n_failed > 10);
}

static void a_launch_that_fails_at_once_has_queued_nothing(void **state) {
    scene s;
    set_up(&s);
    assert_ok(record(&s, &s.graph));
    layer_say("fail=clEnqueueWriteBuffer:-5@1");
    assert_int_equal(s.ext->launch(s.graph, s.m.stream), TN_ERR_OUT_OF_MEMORY);
    assert_text(mini_error(), "launching a graph: CL_OUT_OF_RESOURCES (-5)");
    assert_ok(mini_synchronize(&s.m));
    assert_true(s.results[0] == 0);
    assert_ok(s.ext->launch(s.graph, s.m.stream));
    assert_ok(mini_synchronize(&s.m));
    check(&s);
    tear_down(&s);
}

/* Also when it is tried again. */
static void a_launch_that_fails_half_way_loses_the_device(void **state) {
    static const char *const calls[] = {"clEnqueueCopyBuffer", "clEnqueueNDRangeKernel",
                                        "clSetKernelArg", "clEnqueueFillBuffer",
                                        "clEnqueueReadBuffer"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        scene s;
        char words[128];
        set_up(&s);
        assert_ok(use(&s));
        snprintf(words, sizeof words, "fail=%s:-5@1;fail=%s:-5@1", calls[i], calls[i]);
        layer_say(words);
        assert_lost(s.ext->launch(s.graph, s.m.stream));
        assert_text(mini_error(), "opencl:0 (");
        assert_text(mini_error(), "half way with CL_OUT_OF_RESOURCES (-5)");
        use_lost(&s);
        assert_lost(mini_synchronize(&s.m));
        tear_down(&s);
        assert_int_equal(layer_alive(NULL), 0);
    }
}

/* Nothing says when a launch is over: it is waited for. */
static void launches_that_cannot_be_marked_are_in_order(void **state) {
    scene s;
    set_up(&s);
    assert_ok(record(&s, &s.graph));
    layer_say("fail=clEnqueueMarkerWithWaitList:-6");
    for (int i = 0; i < 4; i++) {
        s.numbers[0] = (float)i;
        assert_ok(s.ext->launch(s.graph, i % 2 ? s.other : s.m.stream));
        check(&s);
    }
    tear_down(&s);
}

static void any_allocation_may_fail(void **state) {
    scene s;
    int64_t n = 0;
    tn_status status;
    set_up(&s);
    assert_ok(use(&s)); /* kernels are built */
    destroy_graphs(&s);
    int64_t before = mini_outstanding();
    do {
        mini_fail_alloc_after(n++);
        status = use(&s);
        mini_fail_alloc_after(-1);
        if (status != TN_OK) {
            assert_int_equal(status, TN_ERR_OUT_OF_MEMORY);
            assert_text(mini_error(), "no host memory for");
            destroy_graphs(&s);
            assert_int_equal(mini_outstanding(), before);
        }
    } while (status != TN_OK);
    check(&s);
    assert_true(n > 12); /* two captures, their commands, their graphs */
    tear_down(&s);
}

/* ---- beside other work ------------------------------------------------------------------- */

/* Arguments are the kernel's, whoever launches it: those of a graph are its own. */
static void calls_between_launches_change_nothing(void **state) {
    scene s;
    set_up(&s);
    assert_ok(record(&s, &s.graph));
    for (int i = 0; i < 20; i++) {
        s.numbers[i] += 7;
        tn_memory other = allocate(&s, BYTES);
        assert_ok(negate(&s, s.m.stream, other, other));
        assert_ok(s.ext->launch(s.graph, s.m.stream));
        assert_ok(negate(&s, s.m.stream, other, other));
        assert_ok(mini_synchronize(&s.m));
        s.m.ops->memory->dealloc(s.m.device, TN_SPACE_DEVICE, other);
        check(&s);
    }
    tear_down(&s);
}

static void an_index_out_of_range_is_the_launching_streams(void **state) {
    scene s;
    set_up(&s);
    assert_ok(record(&s, &s.graph));
    set_index(&s, N);
    for (int i = 0; i < 3; i++) {
        assert_ok(s.ext->launch(s.graph, s.other));
        assert_ok(mini_synchronize(&s.m));
        assert_int_equal(s.m.ops->streams->synchronize(s.other), TN_ERR_INDEX_OUT_OF_RANGE);
        assert_text(mini_error(), "index 200 is out of range for a dimension of size 200");
        assert_ok(s.m.ops->streams->synchronize(s.other));
    }
    set_index(&s, N - 1);
    assert_ok(s.ext->launch(s.graph, s.m.stream));
    assert_ok(mini_synchronize(&s.m));
    check(&s);
    tear_down(&s);
}

/* ---- threads ----------------------------------------------------------------------------- */

enum { THREADS = 3, TIMES = 60 };

typedef struct worker {
    scene *s;
    tn_stream_impl *stream;
    tn_status status;
} worker;

/* Launches the graph of all, and makes and launches one of its own. */
static void *work(void *context) {
    worker *w = context;
    scene *s = w->s;
    for (int i = 0; i < TIMES && w->status == TN_OK; i++) {
        tn_graph_impl *own = NULL;
        tn_memory memory = 0;
        void *host;
        w->status = s->ext->launch(s->graph, w->stream);
        if (w->status == TN_OK)
            w->status =
                mini_alloc(s->m.ops->memory, s->m.device, TN_SPACE_DEVICE, BYTES, &memory, &host);
        if (w->status == TN_OK)
            w->status = s->ext->begin(w->stream);
        if (w->status == TN_OK)
            w->status = negate(s, w->stream, memory, memory);
        if (w->status == TN_OK)
            w->status = s->ext->end(w->stream, &own);
        if (w->status == TN_OK)
            w->status = s->ext->launch(own, w->stream);
        if (own)
            s->ext->destroy(own);
        s->m.ops->memory->dealloc(s->m.device, TN_SPACE_DEVICE, memory);
    }
    return NULL;
}

/* A graph counts how often it was launched. */
static void threads_launch_one_graph(void **state) {
    scene s;
    worker workers[THREADS];
    pthread_t threads[THREADS];
    float ones[N], counts[N];
    set_up(&s);
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    const tn_memory_ops *memory = s.m.ops->memory;
    assert_ok(memory->copy_from_host(s.m.device, s.m.stream, s.in, 0, ones, 0, BYTES));
    assert_ok(memory->fill(s.m.device, s.m.stream, s.out, 0, 0, BYTES));
    assert_ok(mini_synchronize(&s.m));
    assert_ok(s.ext->begin(s.m.stream));
    assert_ok(add(&s, s.m.stream, s.out, s.in, s.negated));
    assert_ok(memory->copy(s.m.device, s.m.stream, s.out, 0, s.negated, 0, BYTES));
    assert_ok(s.ext->end(s.m.stream, &s.graph));
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.s = &s};
        assert_ok(s.m.ops->streams->create(s.m.device, 0, &workers[i].stream));
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].status, TN_OK);
        assert_ok(s.m.ops->streams->synchronize(workers[i].stream));
        s.m.ops->streams->destroy(workers[i].stream);
    }
    assert_ok(memory->copy_to_host(s.m.device, s.m.stream, counts, 0, s.out, 0, BYTES));
    for (int i = 0; i < N; i++)
        assert_true(counts[i] == THREADS * TIMES);
    tear_down(&s);
}

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        TEST(any_call_may_fail),
        TEST(a_launch_that_fails_at_once_has_queued_nothing),
        TEST(a_launch_that_fails_half_way_loses_the_device),
        TEST(launches_that_cannot_be_marked_are_in_order),
        TEST(any_allocation_may_fail),
        TEST(calls_between_launches_change_nothing),
        TEST(an_index_out_of_range_is_the_launching_streams),
        TEST(threads_launch_one_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
