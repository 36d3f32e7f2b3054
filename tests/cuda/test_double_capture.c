/* Captures and graphs of the driver double: what becomes a node, what is forbidden meanwhile, and
 * what a launch does. */
#include "tests/cuda/double_kernel.h"

#include <pthread.h>

enum { N = 64 };

static CUstream stream, other;
static CUevent forked, joined;
static add_kernel add;
static CUdeviceptr out;

static int begin_capture(void **state) {
    begin_double(state);
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_good(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    assert_good(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
    assert_good(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    add = load_add();
    out = alloc_words(N, 0);
    return 0;
}

static int end_capture(void **state) {
    assert_good(cuMemFree(out));
    assert_good(cuModuleUnload(add.module));
    assert_good(cuEventDestroy(forked));
    assert_good(cuEventDestroy(joined));
    assert_good(cuStreamDestroy(stream));
    assert_good(cuStreamDestroy(other));
    return end_double(state);
}

static void begin(CUstreamCaptureMode mode) {
    assert_good(cuStreamBeginCapture(stream, mode));
}

static CUgraphExec end(void) {
    CUgraph graph;
    CUgraphExec executable;
    assert_good(cuStreamEndCapture(stream, &graph));
    assert_good(cuGraphInstantiate(&executable, graph, 0));
    assert_good(cuGraphDestroy(graph));
    return executable;
}

/* The capture was spoilt: that is said at its end, and all is as before. */
static void assert_spoilt(void) {
    CUgraph graph = (CUgraph)&graph;
    CUstreamCaptureStatus status;
    assert_good(cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    assert_answer(launch_add(add, out, 1, N, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_answer(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_null(graph);
    assert_good(cuStreamSynchronize(stream));
    assert_int_equal(double_alive(DOUBLE_GRAPH), 0);
}

/* ---- what a graph does ------------------------------------------------------------------- */

static void a_graph_runs_what_was_captured(void **state) {
    static int n_calls;
    unsigned char *pinned;
    CUstreamCaptureStatus status;
    assert_good(cuMemHostAlloc((void **)&pinned, N * 4, 0));
    assert_good(cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    assert_good(cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_good(cuMemsetD32Async(out, 5, N, stream));
    assert_good(launch_add(add, out, 10, N, stream));
    assert_good(cuMemcpyDtoHAsync(pinned, out, N * 4, stream));
    memset(pinned, 0, N * 4);
    CUgraph graph;
    size_t n_nodes;
    assert_good(cuStreamEndCapture(stream, &graph));
    assert_good(cuGraphGetNodes(graph, NULL, &n_nodes));
    assert_int_equal(n_nodes, 3);
    assert_good(cuStreamSynchronize(stream));
    assert_int_equal(pinned[0], 0); /* nothing has run */

    CUgraphExec executable;
    assert_good(cuGraphInstantiate(&executable, graph, 0));
    assert_good(cuGraphDestroy(graph));
    for (n_calls = 0; n_calls < 5; n_calls++) {
        memset(pinned, 0, N * 4);
        assert_good(cuGraphLaunch(executable, stream));
        assert_good(cuStreamSynchronize(stream));
        assert_int_equal(pinned[0], 15);
    }
    assert_good(cuGraphExecDestroy(executable));
    assert_answer(cuGraphLaunch(executable, stream), CUDA_ERROR_INVALID_VALUE);
    assert_good(cuMemFreeHost(pinned));
}

static void launches_of_a_graph_come_one_after_the_other(void **state) {
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_good(launch_add(add, out, 1, N, stream));
    assert_good(launch_add(add, out, 1, N, stream));
    CUgraphExec executable = end();
    assert_true(double_configure("delay=200us"));
    for (int i = 0; i < 20; i++)
        assert_good(cuGraphLaunch(executable, i % 2 ? stream : other));
    assert_good(cuGraphExecDestroy(executable)); /* those under way go on */
    assert_good(cuStreamSynchronize(stream));
    assert_good(cuStreamSynchronize(other));
    assert_words(out, N, 40);
}

static void streams_join_a_capture_through_events(void **state) {
    CUdeviceptr second = alloc_words(N, 0);
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_good(cuMemsetD32Async(out, 1, N, stream));
    assert_good(cuEventRecord(forked, stream));
    assert_good(cuStreamWaitEvent(other, forked, 0));
    assert_good(cuMemcpyDtoDAsync(second, out, N * 4, other));
    assert_good(launch_add(add, second, 4, N, other));
    assert_good(cuEventRecord(joined, other));
    assert_good(cuStreamWaitEvent(stream, joined, 0));
    assert_good(
        launch_add(add, out, 1, N, stream)); /* after the copy, or 2 would have been copied */
    CUgraphExec executable = end();
    assert_answer(cuEventQuery(forked), CUDA_ERROR_CAPTURED_EVENT);
    assert_answer(cuEventSynchronize(joined), CUDA_ERROR_CAPTURED_EVENT);
    for (int i = 0; i < 30; i++) {
        assert_good(cuGraphLaunch(executable, stream));
        assert_good(cuStreamSynchronize(stream));
        assert_words(out, N, 2);
        assert_words(second, N, 5);
    }
    assert_good(cuGraphExecDestroy(executable));
    assert_good(cuEventRecord(forked, stream));
    assert_good(cuEventSynchronize(forked));
    assert_good(cuMemFree(second));
}

static void branches_run_in_any_order(void **state) {
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_good(cuMemsetD32Async(out, 0, 1, stream));
    assert_good(cuEventRecord(forked, stream));
    assert_good(cuStreamWaitEvent(other, forked, 0));
    assert_good(cuMemsetD32Async(out, 1, 1, stream));
    assert_good(cuMemsetD32Async(out, 2, 1, other)); /* a race of the captured program's own */
    assert_good(cuEventRecord(joined, other));
    assert_good(cuStreamWaitEvent(stream, joined, 0));
    CUgraphExec executable = end();
    bool seen[3] = {false};
    for (int i = 0; i < 200 && !(seen[1] && seen[2]); i++) {
        uint32_t value;
        assert_good(cuGraphLaunch(executable, stream));
        assert_good(cuStreamSynchronize(stream));
        assert_good(cuMemcpyDtoH(&value, out, 4));
        seen[value] = true;
    }
    assert_true(seen[1] && seen[2]);
    assert_good(cuGraphExecDestroy(executable));
}

static void a_graph_is_captured_into_another(void **state) {
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_good(launch_add(add, out, 1, N, stream));
    assert_good(launch_add(add, out, 1, N, stream));
    CUgraphExec inner = end();
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_good(cuMemsetD32Async(out, 100, N, stream));
    assert_good(cuGraphLaunch(inner, stream));
    assert_good(cuGraphLaunch(inner, stream));
    assert_good(launch_add(add, out, 50, N, stream));
    CUgraphExec outer = end();
    assert_good(cuGraphExecDestroy(inner));
    assert_good(cuGraphLaunch(outer, stream));
    assert_good(cuStreamSynchronize(stream));
    assert_words(out, N, 154);
    assert_good(cuGraphExecDestroy(outer));
}

static void an_update_keeps_the_topology(void **state) {
    CUgraph graph;
    CUgraphExecUpdateResultInfo info;
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_good(cuMemsetD32Async(out, 1, N, stream));
    assert_good(launch_add(add, out, 1, N, stream));
    CUgraphExec executable = end();

    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_good(cuMemsetD32Async(out, 10, N, stream));
    assert_good(launch_add(add, out, 32, N, stream));
    assert_good(cuStreamEndCapture(stream, &graph));
    double_hold();
    assert_good(cuGraphLaunch(executable, stream)); /* as it was before the update */
    assert_good(cuGraphExecUpdate(executable, graph, &info));
    double_let_go();
    assert_good(cuStreamSynchronize(stream));
    assert_words(out, N, 2);
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    assert_good(cuGraphDestroy(graph));
    assert_good(cuGraphLaunch(executable, stream));
    assert_good(cuStreamSynchronize(stream));
    assert_words(out, N, 42);

    for (int i = 0; i < 2; i++) {
        begin(CU_STREAM_CAPTURE_MODE_RELAXED);
        assert_good(launch_add(add, out, 1, N, stream));
        for (int k = 0; k < 1 + i; k++)
            assert_good(launch_add(add, out, 1, N, stream));
        assert_good(cuStreamEndCapture(stream, &graph));
        assert_answer(cuGraphExecUpdate(executable, graph, &info),
                      CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
        assert_int_equal(info.result, i ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
                                        : CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
        assert_good(cuGraphDestroy(graph));
    }
    assert_good(cuGraphLaunch(executable, stream));
    assert_good(cuStreamSynchronize(stream));
    assert_words(out, N, 42);
    assert_good(cuGraphExecDestroy(executable));
}

static void CUDA_CB count(void *n) {
    ++*(int *)n;
}

static CUresult run_count(void *n) {
    ++**(int **)n;
    return CUDA_SUCCESS;
}

static void host_functions_and_libraries_are_nodes(void **state) {
    int n = 0, n_library = 0, *at = &n_library;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_good(cuLaunchHostFunc(stream, count, &n));
    assert_good(double_stream_enqueue(stream, run_count, &at, sizeof(at)));
    CUgraphExec executable = end();
    assert_int_equal(n + n_library, 0);
    assert_good(cuGraphLaunch(executable, stream));
    assert_good(cuGraphLaunch(executable, stream));
    assert_good(cuStreamSynchronize(stream));
    assert_int_equal(n, 2);
    assert_int_equal(n_library, 2);
    assert_good(cuGraphExecDestroy(executable));
}

static void memory_freed_since_is_an_illegal_address(void **state) {
    CUdeviceptr gone = alloc_words(N, 0);
    assert_good(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_good(cuMemsetD32Async(gone, 1, N, stream));
    CUgraphExec executable = end();
    assert_good(cuMemFree(gone));
    assert_good(cuGraphLaunch(executable, stream));
    assert_answer(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_good(cuGraphExecDestroy(executable));
}

/* ---- what is forbidden meanwhile --------------------------------------------------------- */

static void a_capturing_stream_is_not_waited_for(void **state) {
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_answer(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_spoilt();
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_answer(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_spoilt();
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_answer(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_spoilt();
}

static void pageable_memory_is_not_captured(void **state) {
    char host[4] = "";
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_answer(cuMemcpyHtoDAsync(out, host, 4, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_spoilt();
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_answer(cuMemcpyDtoHAsync(host, out, 4, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_spoilt();
}

static void the_legacy_stream_is_out_of_bounds(void **state) {
    CUstream blocks;
    CUgraph graph;
    assert_answer(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
                  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_good(cuStreamCreate(&blocks, CU_STREAM_DEFAULT));
    assert_good(cuStreamBeginCapture(blocks, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_answer(launch_add(add, out, 1, N, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_answer(cuStreamEndCapture(blocks, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_good(cuStreamBeginCapture(blocks, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_answer(cuStreamSynchronize(NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_answer(cuStreamEndCapture(blocks, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_good(cuStreamDestroy(blocks));
    /* One that does not wait for it may capture. */
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_good(launch_add(add, out, 1, N, NULL));
    assert_good(cuStreamSynchronize(NULL));
    assert_good(cuGraphExecDestroy(end()));
}

static void a_capture_is_ended_where_it_began(void **state) {
    CUgraph graph;
    assert_answer(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_answer(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                  CUDA_ERROR_ILLEGAL_STATE);
    assert_good(cuEventRecord(forked, stream));
    assert_good(cuStreamWaitEvent(other, forked, 0));
    assert_answer(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    assert_spoilt();
}

static void work_that_did_not_come_back_is_told(void **state) {
    CUgraph graph;
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_good(cuEventRecord(forked, stream));
    assert_good(cuStreamWaitEvent(other, forked, 0));
    assert_good(launch_add(add, out, 1, N, other));
    assert_answer(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_null(graph);
    assert_good(cuStreamSynchronize(other));
    assert_words(out, N, 0);
}

static void captures_and_other_work_do_not_mix(void **state) {
    CUgraph graph;
    /* What the capture would wait for is outside. */
    assert_good(cuEventRecord(joined, other));
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_answer(cuStreamWaitEvent(stream, joined, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    assert_spoilt();
    /* Two captures. */
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_good(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_good(cuEventRecord(joined, other));
    assert_answer(cuStreamWaitEvent(stream, joined, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    assert_answer(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_spoilt();
    /* An event of a capture that is over. */
    assert_answer(cuStreamWaitEvent(stream, joined, 0), CUDA_ERROR_CAPTURED_EVENT);
}

static void unsafe_calls_spoil_a_capture(void **state) {
    CUdeviceptr at;
    void *pinned;
    assert_good(cuEventRecord(forked, other));
    for (int i = 0; i < 5; i++) {
        begin(i % 2 ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL : CU_STREAM_CAPTURE_MODE_GLOBAL);
        assert_answer(i == 0   ? cuMemAlloc(&at, 1)
                      : i == 1 ? cuMemFree(out)
                      : i == 2 ? cuMemHostAlloc(&pinned, 1, 0)
                      : i == 3 ? cuEventQuery(forked)
                               : cuStreamSynchronize(other),
                      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert_spoilt();
    }
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_good(cuMemAlloc(&at, 1));
    assert_good(cuMemFree(at));
    assert_good(cuGraphExecDestroy(end()));

    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_good(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_good(cuMemAlloc(&at, 1));
    assert_good(cuThreadExchangeStreamCaptureMode(&mode));
    assert_good(cuGraphExecDestroy(end()));
    assert_good(cuMemFree(at));
}

typedef struct thread_call {
    CUcontext context;
    bool ends_capture;
    CUresult answer;
} thread_call;

static void *call_in_thread(void *argument) {
    thread_call *call = argument;
    CUcontext popped;
    CUdeviceptr at;
    CUgraph graph;
    cuCtxPushCurrent(call->context);
    call->answer = call->ends_capture ? cuStreamEndCapture(stream, &graph) : cuMemAlloc(&at, 1);
    if (!call->ends_capture && !call->answer)
        cuMemFree(at);
    cuCtxPopCurrent(&popped);
    return NULL;
}

static CUresult in_another_thread(CUcontext context, bool ends_capture) {
    thread_call call = {context, ends_capture, CUDA_SUCCESS};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, call_in_thread, &call), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return call.answer;
}

static void modes_say_who_minds(void **state) {
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    assert_answer(in_another_thread(*state, false), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_spoilt();
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    assert_good(in_another_thread(*state, false));
    assert_answer(in_another_thread(*state, true), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    assert_good(cuGraphExecDestroy(end()));
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_good(in_another_thread(*state, false));
    assert_good(cuGraphExecDestroy(end()));
}

static void a_capture_tells_of_itself(void **state) {
    CUstreamCaptureStatus status;
    cuuint64_t id = 0, again = 0;
    CUgraph graph = NULL;
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
#if CUDA_VERSION >= 13000
    assert_good(cuStreamGetCaptureInfo(stream, &status, &id, &graph, NULL, NULL, NULL));
    assert_good(cuStreamGetCaptureInfo(stream, &status, &again, NULL, NULL, NULL, NULL));
#else
    assert_good(cuStreamGetCaptureInfo(stream, &status, &id, &graph, NULL, NULL));
    assert_good(cuStreamGetCaptureInfo(stream, &status, &again, NULL, NULL, NULL));
#endif
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_true(id != 0 && id == again);
    assert_answer(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE); /* the capture's yet */
    assert_good(cuGraphExecDestroy(end()));
}

static void a_stream_that_goes_takes_its_capture_along(void **state) {
    CUstream gone;
    assert_good(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
    assert_good(cuStreamBeginCapture(gone, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_good(launch_add(add, out, 1, N, gone));
    assert_good(cuStreamDestroy(gone));
    assert_int_equal(double_alive(DOUBLE_GRAPH), 0);
    assert_good(cuStreamSynchronize(stream)); /* nothing minds */
}

#define CAPTURE_TEST(test) cmocka_unit_test_setup_teardown(test, begin_capture, end_capture)

int main(void) {
    setenv("TENON_TEST_CUDA", "memory=64M seed=5", 1);
    const struct CMUnitTest tests[] = {
        CAPTURE_TEST(a_graph_runs_what_was_captured),
        CAPTURE_TEST(launches_of_a_graph_come_one_after_the_other),
        CAPTURE_TEST(streams_join_a_capture_through_events),
        CAPTURE_TEST(branches_run_in_any_order),
        CAPTURE_TEST(a_graph_is_captured_into_another),
        CAPTURE_TEST(an_update_keeps_the_topology),
        CAPTURE_TEST(host_functions_and_libraries_are_nodes),
        CAPTURE_TEST(a_capturing_stream_is_not_waited_for),
        CAPTURE_TEST(pageable_memory_is_not_captured),
        CAPTURE_TEST(the_legacy_stream_is_out_of_bounds),
        CAPTURE_TEST(a_capture_is_ended_where_it_began),
        CAPTURE_TEST(work_that_did_not_come_back_is_told),
        CAPTURE_TEST(captures_and_other_work_do_not_mix),
        CAPTURE_TEST(unsafe_calls_spoil_a_capture),
        CAPTURE_TEST(modes_say_who_minds),
        CAPTURE_TEST(a_capture_tells_of_itself),
        CAPTURE_TEST(a_stream_that_goes_takes_its_capture_along),
        cmocka_unit_test_setup_teardown(memory_freed_since_is_an_illegal_address, begin_capture,
                                        end_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
