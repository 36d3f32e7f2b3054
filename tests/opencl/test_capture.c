/* Graphs, which are commands that are queued again: above a driver that fails, without host
 * memory, beside other work. */
#include "tests/opencl/scene.h"

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

/* Nothing is left of it, and the same can be done then. A launch that was begun is brought to its
 * end. */
static void any_call_may_fail(void **state) {
    scene s;
    uint64_t at = 0, n_failed = 0;
    bool was_reached;
    set_up(&s);
    assert_ok(use(&s)); /* kernels are built */
    destroy_graphs(&s);
    int64_t before = layer_alive(NULL);
    do {
        char words[48];
        const char *which = "";
        snprintf(words, sizeof words, "fail=*:-6@%llu", (unsigned long long)++at);
        layer_say(words);
        tn_status status = use(&s);
        was_reached = layer_calls() >= at;
        layer_say("");
        if (status != TN_OK) {
            n_failed++;
            assert_int_equal(status, TN_ERR_OUT_OF_MEMORY);
            assert_text(mini_error(), "opencl:0");
            assert_text(mini_error(), "CL_OUT_OF_HOST_MEMORY");
            destroy_graphs(&s);
            assert_ok(use(&s));
        }
        check(&s);
        destroy_graphs(&s);
        if (layer_alive(&which) != before)
            fail_msg("with '%s' objects are left, maybe of kind %s", words, which);
    } while (was_reached);
    print_message("%llu calls, %llu of them cannot fail unnoticed\n", (unsigned long long)at - 1,
                  (unsigned long long)n_failed);
    assert_true(at > 40 && n_failed >= 5);
    tear_down(&s);
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

static void graphs_stay_on_their_device(void **state) {
    scene s;
    tn_device_impl *second;
    tn_stream_impl *there;
    set_up(&s);
    assert_ok(record(&s, &s.graph));
    assert_ok(s.m.ops->open(s.m.self, 0, &second));
    assert_ok(s.m.ops->streams->create(second, 0, &there));
    assert_ok(s.ext->begin(there));
    assert_ok(s.ext->end(there, &s.second));
    assert_int_equal(s.ext->launch(s.graph, there), TN_ERR_INVALID_ARGUMENT);
    assert_text(mini_error(), "a graph of opencl:0 cannot be launched on a stream of opencl:0");
    assert_int_equal(s.ext->update(s.graph, s.second), TN_ERR_INVALID_ARGUMENT);
    assert_text(mini_error(), "cannot be updated");
    s.ext->destroy(s.second);
    s.second = NULL;
    s.m.ops->streams->destroy(there);
    s.m.ops->close(second);
    assert_ok(s.ext->launch(s.graph, s.m.stream));
    assert_ok(mini_synchronize(&s.m));
    check(&s);
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
        TEST(graphs_stay_on_their_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
