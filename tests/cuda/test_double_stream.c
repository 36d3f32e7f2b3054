/* Streams and events of the driver double: what waits for what, and what does not. */
#include "tests/cuda/double_test.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

enum { N = 64 };

typedef struct memory {
    CUdeviceptr at;
    unsigned char *pinned;
} memory;

static memory begin_memory(void) {
    memory m;
    assert_good(cuMemAlloc(&m.at, N));
    assert_good(cuMemHostAlloc((void **)&m.pinned, N, 0));
    assert_good(cuMemsetD8Async(m.at, 0, N, NULL));
    assert_good(cuStreamSynchronize(NULL));
    memset(m.pinned, 1, N);
    return m;
}

static void end_memory(memory m) {
    assert_good(cuMemFree(m.at));
    assert_good(cuMemFreeHost(m.pinned));
}

static unsigned char first_byte(CUdeviceptr at) {
    unsigned char byte;
    CUstream own;
    assert_good(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    assert_good(cuMemcpyDtoHAsync(&byte, at, 1, own));
    assert_good(cuStreamDestroy(own));
    return byte;
}

/* ---- host memory ------------------------------------------------------------------------- */

static void pageable_memory_is_read_at_once(void **state) {
    memory m = begin_memory();
    CUstream stream;
    unsigned char host[N];
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    memset(host, 5, N);
    double_hold();
    assert_good(cuMemcpyHtoDAsync(m.at, host, N, stream));
    memset(host, 6, N);
    double_let_go();
    assert_good(cuStreamSynchronize(stream));
    assert_int_equal(first_byte(m.at), 5);
    assert_good(cuStreamDestroy(stream));
    end_memory(m);
}

static void pinned_memory_is_read_in_its_turn(void **state) {
    memory m = begin_memory();
    CUstream stream;
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    double_hold();
    assert_good(cuMemcpyHtoDAsync(m.at, m.pinned, N, stream));
    memset(m.pinned, 6, N);
    double_let_go();
    assert_good(cuStreamSynchronize(stream));
    assert_int_equal(first_byte(m.at), 6);
    assert_good(cuStreamDestroy(stream));
    end_memory(m);
}

static void pinned_memory_is_written_in_its_turn(void **state) {
    memory m = begin_memory();
    CUstream stream;
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    double_hold();
    assert_good(cuMemcpyDtoHAsync(m.pinned, m.at, N, stream));
    assert_int_equal(m.pinned[0], 1);
    assert_answer(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    double_let_go();
    assert_good(cuStreamSynchronize(stream));
    assert_int_equal(m.pinned[0], 0);
    assert_good(cuStreamQuery(stream));
    assert_good(cuStreamDestroy(stream));
    end_memory(m);
}

static void pageable_memory_is_written_before_the_call_returns(void **state) {
    memory m = begin_memory();
    CUstream stream;
    unsigned char host[N] = {9};
    assert_true(double_configure("delay=3ms"));
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_good(cuMemsetD8Async(m.at, 4, N, stream));
    assert_good(cuMemcpyDtoHAsync(host, m.at, N, stream));
    assert_int_equal(host[0], 4);
    assert_good(cuStreamDestroy(stream));
    end_memory(m);
}

/* ---- order ------------------------------------------------------------------------------- */

static void CUDA_CB wait_for_post(void *semaphore) {
    while (sem_wait(semaphore) != 0) {
    }
}

/* Is what goes into `second` held up by what is in `first`? The longer `ms`, the surer a yes. */
static bool waits_for(CUstream first, CUstream second, int ms) {
    memory m = begin_memory();
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    assert_good(cuLaunchHostFunc(first, wait_for_post, &semaphore));
    assert_good(cuMemsetD8Async(m.at, 2, N, second));
    CUresult seen = CUDA_ERROR_NOT_READY;
    for (int i = 0; i < ms && seen == CUDA_ERROR_NOT_READY; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        seen = cuStreamQuery(second);
    }
    sem_post(&semaphore);
    assert_good(cuStreamSynchronize(first));
    assert_good(cuStreamSynchronize(second));
    sem_destroy(&semaphore);
    end_memory(m);
    return seen == CUDA_ERROR_NOT_READY;
}

static void the_legacy_stream_waits_for_those_that_block(void **state) {
    CUstream blocks, other, free;
    assert_good(cuStreamCreate(&blocks, CU_STREAM_DEFAULT));
    assert_good(cuStreamCreate(&other, CU_STREAM_DEFAULT));
    assert_good(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING));
    assert_true(waits_for(NULL, blocks, 30));
    assert_true(waits_for(blocks, NULL, 30));
    assert_true(waits_for(blocks, CU_STREAM_LEGACY, 30));
    assert_true(waits_for(blocks, blocks, 30));
    assert_false(waits_for(NULL, free, 20000));
    assert_false(waits_for(free, NULL, 20000));
    assert_false(waits_for(blocks, other, 20000));
    assert_false(waits_for(blocks, free, 20000));
    assert_good(cuStreamDestroy(blocks));
    assert_good(cuStreamDestroy(other));
    assert_good(cuStreamDestroy(free));
}

static void a_destroyed_stream_does_what_it_was_given(void **state) {
    memory m = begin_memory();
    CUstream stream;
    assert_true(double_configure("delay=3ms"));
    assert_good(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    assert_good(cuMemsetD8Async(m.at, 3, N, stream));
    assert_good(cuMemsetD8Async(m.at, 4, N, stream));
    assert_good(cuStreamDestroy(stream));
    assert_good(cuMemcpyDtoH(m.pinned, m.at, N)); /* the legacy stream waits for it yet */
    assert_int_equal(m.pinned[0], 4);
    end_memory(m);
}

static void priorities_are_kept_in_their_range(void **state) {
    int least, greatest, priority;
    unsigned flags;
    CUstream stream;
    assert_good(cuCtxGetStreamPriorityRange(&least, &greatest));
    assert_true(greatest < least);
    assert_good(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest - 10));
    assert_good(cuStreamGetPriority(stream, &priority));
    assert_int_equal(priority, greatest);
    assert_good(cuStreamGetFlags(stream, &flags));
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    assert_good(cuStreamDestroy(stream));
    assert_answer(cuStreamCreate(&stream, 8), CUDA_ERROR_INVALID_VALUE);
}

/* ---- events ------------------------------------------------------------------------------ */

static void an_event_is_done_when_its_stream_is_there(void **state) {
    CUstream stream;
    CUevent event;
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_good(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    assert_good(cuEventQuery(event)); /* never recorded */
    assert_good(cuEventSynchronize(event));
    double_hold();
    assert_good(cuEventRecord(event, stream));
    assert_answer(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    double_let_go();
    assert_good(cuEventSynchronize(event));
    assert_good(cuEventQuery(event));
    assert_good(cuStreamDestroy(stream));
    assert_good(cuEventQuery(event));
    assert_good(cuEventDestroy(event));
}

static void streams_wait_for_events(void **state) {
    memory m = begin_memory();
    CUstream first, second;
    CUevent event;
    assert_good(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    assert_good(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    assert_good(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    assert_true(double_configure("delay=2ms"));
    for (int i = 1; i < 20; i++) {
        assert_good(cuMemsetD8Async(m.at, (unsigned char)i, N, first));
        assert_good(cuEventRecord(event, first));
        assert_good(cuStreamWaitEvent(second, event, 0));
        assert_good(cuEventRecord(event, second)); /* the wait is for what it stood for then */
        assert_good(cuMemcpyDtoHAsync(m.pinned, m.at, N, second));
        assert_good(cuStreamSynchronize(second));
        assert_int_equal(m.pinned[0], i);
    }
    assert_good(cuStreamDestroy(first));
    assert_good(cuStreamDestroy(second));
    assert_good(cuEventDestroy(event));
    end_memory(m);
}

static void waits_outlive_the_event(void **state) {
    memory m = begin_memory();
    CUstream first, second;
    CUevent event;
    assert_good(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    assert_good(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    assert_good(cuEventCreate(&event, 0));
    assert_true(double_configure("delay=5ms"));
    assert_good(cuMemsetD8Async(m.at, 1, N, first));
    assert_good(cuMemsetD8Async(m.at, 8, N, first));
    assert_good(cuEventRecord(event, first));
    assert_good(cuStreamWaitEvent(second, event, 0));
    assert_good(cuEventDestroy(event));
    assert_good(cuStreamDestroy(first));
    assert_good(cuMemcpyDtoHAsync(m.pinned, m.at, N, second));
    assert_good(cuStreamSynchronize(second));
    assert_int_equal(m.pinned[0], 8);
    assert_good(cuStreamDestroy(second));
    end_memory(m);
}

static void events_wait_across_devices(void **state) {
    memory m = begin_memory();
    CUcontext other, popped;
    CUstream here, there;
    CUevent event;
    assert_good(cuStreamCreate(&here, CU_STREAM_NON_BLOCKING));
    assert_good(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    assert_good(cuDevicePrimaryCtxRetain(&other, 1));
    assert_good(cuCtxPushCurrent(other));
    assert_good(cuStreamCreate(&there, CU_STREAM_NON_BLOCKING));
    assert_good(cuCtxPopCurrent(&popped));
    assert_true(double_configure("delay=5ms"));
    assert_good(cuMemsetD8Async(m.at, 1, N, here));
    assert_good(cuMemsetD8Async(m.at, 9, N, here));
    assert_good(cuEventRecord(event, here));
    assert_good(cuStreamWaitEvent(there, event, 0));
    assert_good(cuMemcpyDtoHAsync(m.pinned, m.at, N, there));
    assert_good(cuStreamSynchronize(there));
    assert_int_equal(m.pinned[0], 9);
    assert_good(cuStreamDestroy(here));
    assert_good(cuStreamDestroy(there));
    assert_good(cuEventDestroy(event));
    assert_good(cuDevicePrimaryCtxRelease(1));
    end_memory(m);
}

static void events_measure_time(void **state) {
    CUstream stream;
    CUevent begin, end, plain;
    float ms = -1;
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_good(cuEventCreate(&begin, 0));
    assert_good(cuEventCreate(&end, 0));
    assert_good(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    assert_good(cuEventRecord(begin, stream));
    assert_answer(cuEventElapsedTime(&ms, begin, end), CUDA_ERROR_INVALID_HANDLE);
    assert_good(cuEventRecord(plain, stream));
    assert_good(cuStreamSynchronize(stream));
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    double_hold();
    assert_good(cuEventRecord(end, stream));
    assert_answer(cuEventElapsedTime(&ms, begin, end), CUDA_ERROR_NOT_READY);
    double_let_go();
    assert_good(cuEventSynchronize(end));
    assert_good(cuEventElapsedTime(&ms, begin, end));
    assert_true(ms >= 3 && ms < 10000);
    assert_good(cuEventElapsedTime(&ms, end, begin));
    assert_true(ms <= -3);
    assert_answer(cuEventElapsedTime(&ms, begin, plain), CUDA_ERROR_INVALID_HANDLE);
    assert_good(cuEventDestroy(begin));
    assert_good(cuEventDestroy(end));
    assert_good(cuEventDestroy(plain));
    assert_good(cuStreamDestroy(stream));
}

/* ---- host functions and threads ---------------------------------------------------------- */

typedef struct seen {
    CUresult answer;
    int n;
} seen;

static void CUDA_CB call_driver(void *user) {
    seen *s = user;
    CUdeviceptr at;
    s->answer = cuMemAlloc(&at, 1);
    s->n++;
}

static void host_functions_run_in_order_and_cannot_call(void **state) {
    CUstream stream;
    seen s = {CUDA_SUCCESS, 0};
    assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    assert_answer(cuLaunchHostFunc(stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    double_hold();
    assert_good(cuLaunchHostFunc(stream, call_driver, &s));
    assert_good(cuLaunchHostFunc(stream, call_driver, &s));
    assert_int_equal(s.n, 0);
    double_let_go();
    assert_good(cuStreamSynchronize(stream));
    assert_int_equal(s.n, 2);
    assert_int_equal(s.answer, CUDA_ERROR_NOT_PERMITTED);
    assert_good(cuStreamDestroy(stream));
}

static void *use_streams(void *context) {
    CUcontext popped;
    assert_good(cuCtxPushCurrent(context));
    for (int i = 0; i < 30; i++) {
        memory m = begin_memory();
        CUstream stream;
        assert_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        assert_good(cuMemsetD8Async(m.at, (unsigned char)i, N, stream));
        assert_good(cuMemcpyDtoHAsync(m.pinned, m.at, N, stream));
        assert_good(cuStreamSynchronize(stream));
        assert_int_equal(m.pinned[N - 1], i);
        assert_good(cuStreamDestroy(stream));
        end_memory(m);
    }
    assert_good(cuCtxPopCurrent(&popped));
    return NULL;
}

static void threads_use_one_context(void **state) {
    pthread_t threads[4];
    assert_true(double_configure("delay=50us"));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_streams, *state), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void) {
    setenv("TENON_TEST_CUDA", "devices=2 memory=16M", 1);
    const struct CMUnitTest tests[] = {
        DOUBLE_TEST(pageable_memory_is_read_at_once),
        DOUBLE_TEST(pinned_memory_is_read_in_its_turn),
        DOUBLE_TEST(pinned_memory_is_written_in_its_turn),
        DOUBLE_TEST(pageable_memory_is_written_before_the_call_returns),
        DOUBLE_TEST(the_legacy_stream_waits_for_those_that_block),
        DOUBLE_TEST(a_destroyed_stream_does_what_it_was_given),
        DOUBLE_TEST(priorities_are_kept_in_their_range),
        DOUBLE_TEST(an_event_is_done_when_its_stream_is_there),
        DOUBLE_TEST(streams_wait_for_events),
        DOUBLE_TEST(waits_outlive_the_event),
        DOUBLE_TEST(events_wait_across_devices),
        DOUBLE_TEST(events_measure_time),
        DOUBLE_TEST(host_functions_run_in_order_and_cannot_call),
        DOUBLE_TEST(threads_use_one_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
