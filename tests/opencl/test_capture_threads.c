/* Threads that capture and launch, on streams of their own and on one. */
#include "tests/opencl/scene.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 3, TIMES = 60, PARTS = 10 };

typedef struct worker {
    scene *s;
    tn_stream_impl *stream;
    tn_graph_impl *graph;
    tn_status status;
} worker;

static void fill_with(scene *s, tn_memory memory, float number) {
    float numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = number;
    assert_ok(
        s->m.ops->memory->copy_from_host(s->m.device, s->m.stream, memory, 0, numbers, 0, BYTES));
    assert_ok(mini_synchronize(&s->m));
}

static void check_all(scene *s, tn_memory memory, float number) {
    float numbers[N];
    assert_ok(
        s->m.ops->memory->copy_to_host(s->m.device, s->m.stream, numbers, 0, memory, 0, BYTES));
    for (int i = 0; i < N; i++)
        assert_true(numbers[i] == number);
}

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
    set_up(&s);
    fill_with(&s, s.in, 1);
    fill_with(&s, s.out, 0);
    assert_ok(s.ext->begin(s.m.stream));
    assert_ok(add(&s, s.m.stream, s.out, s.in, s.negated));
    assert_ok(s.m.ops->memory->copy(s.m.device, s.m.stream, s.out, 0, s.negated, 0, BYTES));
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
    check_all(&s, s.out, THREADS * TIMES);
    tear_down(&s);
}

static void *launch_often(void *context) {
    worker *w = context;
    for (int i = 0; i < 5 * TIMES && w->status == TN_OK; i++)
        w->status = w->s->ext->launch(w->graph, w->stream);
    return NULL;
}

/* Copies a number to memory that both use, and adds it to a sum of its own. */
static void record_sum(scene *s, tn_memory number, tn_memory sum, tn_graph_impl **out) {
    tn_stream_impl *stream = s->m.stream;
    assert_ok(s->m.ops->memory->fill(s->m.device, stream, sum, 0, 0, BYTES));
    assert_ok(s->ext->begin(stream));
    for (int i = 0; i < PARTS; i++) {
        assert_ok(s->m.ops->memory->copy(s->m.device, stream, s->negated, 0, number, 0, BYTES));
        assert_ok(add(s, stream, sum, s->negated, sum));
    }
    assert_ok(s->ext->end(stream, out));
}

/* Of two graphs on a stream the one is behind the other, whoever launches them. */
static void launches_of_two_threads_do_not_mix(void **state) {
    scene s;
    pthread_t thread;
    set_up(&s);
    tn_memory numbers[2] = {allocate(&s, BYTES), allocate(&s, BYTES)}, sums[2] = {s.in, s.out};
    for (int i = 0; i < 2; i++)
        fill_with(&s, numbers[i], (float)(i + 1));
    record_sum(&s, numbers[0], sums[0], &s.graph);
    record_sum(&s, numbers[1], sums[1], &s.second);
    worker workers[] = {{.s = &s, .stream = s.m.stream, .graph = s.graph},
                        {.s = &s, .stream = s.m.stream, .graph = s.second}};
    assert_int_equal(pthread_create(&thread, NULL, launch_often, &workers[0]), 0);
    launch_often(&workers[1]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(workers[i].status, TN_OK);
        check_all(&s, sums[i], (float)(5 * TIMES * PARTS * (i + 1)));
        s.m.ops->memory->dealloc(s.m.device, TN_SPACE_DEVICE, numbers[i]);
    }
    tear_down(&s);
}

enum { ADDS = 2000 };

static void *queue_adds(void *context) {
    worker *w = context;
    for (int i = 0; i < ADDS && w->status == TN_OK; i++)
        w->status = add(w->s, w->stream, w->s->out, w->s->in, w->s->out);
    return NULL;
}

/* Each call is recorded, or it runs. */
static void a_thread_queues_while_another_captures(void **state) {
    scene s;
    pthread_t thread;
    set_up(&s);
    worker w = {.s = &s, .stream = s.m.stream};
    fill_with(&s, s.in, 1);
    fill_with(&s, s.out, 0);
    assert_int_equal(pthread_create(&thread, NULL, queue_adds, &w), 0);
    for (int i = 0; i < 200; i++) {
        assert_ok(s.ext->begin(s.m.stream));
        sched_yield();
        assert_ok(s.ext->end(s.m.stream, &s.graph));
        assert_ok(s.ext->launch(s.graph, s.m.stream));
        s.ext->destroy(s.graph);
        s.graph = NULL;
    }
    pthread_join(thread, NULL);
    assert_int_equal(w.status, TN_OK);
    check_all(&s, s.out, ADDS);
    tear_down(&s);
}

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        TEST(threads_launch_one_graph),
        TEST(launches_of_two_threads_do_not_mix),
        TEST(a_thread_queues_while_another_captures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
