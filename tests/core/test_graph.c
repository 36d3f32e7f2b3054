/* Graphs: what is captured and replayed, what changes from replay to replay, what is refused.
 * On the chip, or on the device that the command names: the CPU has nothing to capture. */
#include "tests/core/ops_test.h"

#include <tenon/graph.h>
#include <pthread.h>

static char device_name[32] = "sim:0";
#define GRAPH_TEST(name) \
    cmocka_unit_test_prestate_setup_teardown(name, on_device, leave_device, device_name)

static bool on_sim(void) {
    return strcmp(device_name, "sim:0") == 0;
}

/* ---- work to capture --------------------------------------------------------------------- */

typedef struct sums {
    tn_tensor *x, *y; /* inputs */
    tn_tensor *z;     /* the result, kept */
} sums;

static tn_status add_up(void *user) {
    sums *s = user;
    tn_tensor *z = tn_add(tn_mul(s->x, s->y), s->x);
    s->z = z ? tn_keep(z) : NULL;
    return z ? TN_OK : tn_error_status();
}

static void test_a_replay_reads_its_inputs_anew(void **state) {
    sums s = {of(TN_F32, TN_SHAPE(3), 1, 2, 3), of(TN_F32, TN_SHAPE(3), 4, 5, 6), NULL};
    tn_graph *g;
    assert_ok(tn_graph_capture(dev, add_up, &s, &g));
    assert_true(tn_device_equal(tn_graph_device(g), dev));
    double *before = values_of(s.z);
    assert_true(isnan(before[0]) || !on_sim()); /* nothing has run: sim poisons fresh memory */
    free(before);
    assert_ok(tn_graph_replay(g));
    assert_elements(s.z, TN_SHAPE(3), 5, 12, 21);
    for (int i = 2; i < 5; i++) {
        tn_copy_(s.x, of(TN_F32, TN_SHAPE(3), i, i + 1, i + 2));
        assert_ok(tn_graph_replay(g));
        assert_elements(s.z, TN_SHAPE(3), i * 5, (i + 1) * 6, (i + 2) * 7);
    }
    tn_drop(s.z);
    tn_graph_destroy(g);
}

/* ---- training ---------------------------------------------------------------------------- */

enum { IN = 12, HIDDEN = 16, OUT = 5, BATCH = 8, STEPS = 20 };

typedef struct mlp {
    tn_tensor *w1, *b1, *w2, *b2, *x, *labels, *loss;
    tn_optimizer *adamw;
    tn_optimizer *sgd;
    bool recomputes; /* the hidden layer is a checkpoint */
} mlp;

static tn_status hidden(tn_tensor *const *inputs, uint64_t n_inputs, tn_tensor **outputs,
                        uint64_t n_outputs, void *user) {
    const mlp *m = user;
    outputs[0] = tn_dropout(tn_relu(tn_linear(inputs[0], m->w1, m->b1)), 0.3, true);
    return outputs[0] ? TN_OK : tn_error_status();
}

static tn_status train(void *user) {
    mlp *m = user;
    TN_SCOPE;
    if (m->adamw)
        tn_optimizer_zero_grad(m->adamw);
    else
        tn_optimizer_zero_grad(m->sgd);
    tn_tensor *h = NULL;
    if (m->recomputes)
        tn_checkpoint(hidden, m, NULL, &m->x, 1, &h, 1);
    else
        hidden(&m->x, 1, &h, 1, m);
    tn_tensor *loss = tn_cross_entropy(tn_linear(h, m->w2, m->b2), m->labels);
    if (tn_backward(loss) == TN_OK)
        tn_copy_(m->loss, tn_detach(loss));
    if (m->adamw)
        tn_optimizer_step(m->adamw);
    else
        tn_optimizer_step(m->sgd);
    return tn_error_status();
}

static mlp make_mlp(void) {
    return (mlp){.w1 = requiring_grad(noise(TN_F32, TN_SHAPE(HIDDEN, IN), 1)),
                 .b1 = requiring_grad(noise(TN_F32, TN_SHAPE(HIDDEN), 2)),
                 .w2 = requiring_grad(noise(TN_F32, TN_SHAPE(OUT, HIDDEN), 3)),
                 .b2 = requiring_grad(noise(TN_F32, TN_SHAPE(OUT), 4)),
                 .x = tn_zeros(TN_SHAPE(BATCH, IN)),
                 .labels = tn_zeros(TN_SHAPE(BATCH), TN_I64),
                 .loss = tn_zeros(TN_SCALAR_SHAPE)};
}

static void next_batch(mlp *m, int i) {
    double labels[BATCH];
    for (int k = 0; k < BATCH; k++)
        labels[k] = (3 * k + i % 2) % OUT;
    tn_copy_(m->x, noise(TN_F32, TN_SHAPE(BATCH, IN), 100 + (uint32_t)i % 2));
    tn_copy_(m->labels, of_values(TN_I64, TN_SHAPE(BATCH), labels, BATCH));
}

/* Trains, each step called or replayed; losses are told. The learning rate changes on the way. */
static void run_steps(bool replayed, bool sgd, bool recomputes, double losses[STEPS]) {
    mlp m = make_mlp();
    m.recomputes = recomputes;
    tn_graph *g = NULL;
    tn_tensor *params[] = {m.w1, m.b1, m.w2, m.b2};
    tn_sgd_options o = tn_sgd_defaults();
    tn_adam_options a = tn_adamw_defaults();
    o.momentum = 0.9;
    o.lr = a.lr = 0.01;
    if (sgd)
        m.sgd = tn_sgd_create(params, 4, &o);
    else
        m.adamw = tn_adamw_create(params, 4, &a);
    tn_manual_seed(7);
    if (replayed)
        assert_ok(tn_graph_capture(dev, train, &m, &g));
    for (int i = 0; i < STEPS; i++) {
        TN_SCOPE;
        next_batch(&m, i);
        if (i == STEPS / 2 && sgd)
            assert_ok(tn_optimizer_set_lr(m.sgd, 0.02));
        if (i == STEPS / 2 && !sgd)
            assert_ok(tn_optimizer_set_lr(m.adamw, 0.03));
        assert_ok(replayed ? tn_graph_replay(g) : train(&m));
        assert_ok(tn_item(m.loss, &losses[i]));
    }
    if (!sgd) {
        assert_int_equal(tn_optimizer_steps(m.adamw, 0), STEPS);
    }
    uint64_t seed, offset;
    assert_ok(tn_generator_get(dev, &seed, &offset));
    assert_int_equal(offset, STEPS * BATCH * HIDDEN / 4);
    tn_graph_destroy(g);
    tn_optimizer_destroy(m.adamw);
    tn_optimizer_destroy(m.sgd);
}

/* To the last bit. */
static void test_training_by_replay_is_training(void **state) {
    for (int sgd = 0; sgd < 2; sgd++) {
        double called[STEPS], replayed[STEPS];
        run_steps(false, sgd, false, called);
        for (int recomputes = 0; recomputes < 2; recomputes++) {
            run_steps(true, sgd, recomputes, replayed);
            for (int i = 0; i < STEPS; i++)
                assert_true(called[i] == replayed[i]);
        }
        assert_true(called[STEPS - 1] + called[STEPS - 2] < called[0] + called[1]);
    }
}

/* Afterwards the same can be captured and replayed. */
static void test_any_allocation_may_fail(void **state) {
    uint64_t n = 1, made, n_failed = 0;
    do {
        TN_SCOPE;
        double loss;
        tn_graph *g = NULL;
        mlp m = make_mlp();
        tn_adam_options a = tn_adamw_defaults();
        m.adamw = tn_adamw_create((tn_tensor *[]){m.w1, m.b1, m.w2, m.b2}, 4, &a);
        next_batch(&m, 0);
        tn_manual_seed(7);
        tni_alloc_fail_at(n);
        tn_status status = tn_graph_capture(dev, train, &m, &g);
        if (status == TN_OK)
            status = tn_graph_replay(g);
        made = tni_alloc_fail_at(0);
        if (status != TN_OK) {
            n_failed++;
            assert_error(TN_ERR_OUT_OF_MEMORY, "memory", NULL);
            if (!g)
                assert_ok(tn_graph_capture(dev, train, &m, &g));
            assert_ok(tn_graph_replay(g));
        }
        assert_ok(tn_item(m.loss, &loss));
        assert_true(loss > 0 && loss < 20);
        tn_graph_destroy(g);
        tn_optimizer_destroy(m.adamw);
    } while (made >= n++);
    assert_true(n_failed > (on_sim() ? 100 : 30)); /* sim composes the loss and the step */
}

/* ---- what cannot be captured ------------------------------------------------------------- */

typedef struct attempt {
    tn_tensor *x, *index;
    tn_stream *other;
    tn_graph *graph;
    tn_event *event;
} attempt;

static tn_status reads(void *user) {
    double value;
    return tn_item(tn_sum(((attempt *)user)->x), &value);
}
static tn_status copies_out(void *user) {
    float values[4];
    return tn_to_host(((attempt *)user)->x, values, sizeof values);
}
static tn_status prints(void *user) {
    char *text = tn_to_string(((attempt *)user)->x);
    tn_string_free(text);
    return tn_error_status();
}
static tn_status counts(void *user) {
    return tn_nonzero(((attempt *)user)->x) ? TN_OK : tn_error_status();
}
static tn_status waits(void *user) {
    return tn_synchronize(dev);
}
static tn_status waits_for_stream(void *user) {
    return tn_stream_synchronize(tn_current_stream(dev));
}
static tn_status records_event(void *user) {
    return tn_event_record(((attempt *)user)->event, tn_current_stream(dev));
}
static tn_status waits_for_event(void *user) {
    return tn_event_wait(((attempt *)user)->event, tn_current_stream(dev));
}
static tn_status writes(void *user) {
    static const float values[4] = {1, 2, 3, 4};
    return tn_from_data(values, TN_SHAPE(4), TN_F32, dev) ? TN_OK : tn_error_status();
}
static tn_status changes_stream(void *user) {
    return tn_set_current_stream(((attempt *)user)->other);
}
static tn_status replays(void *user) {
    return tn_graph_replay(((attempt *)user)->graph);
}
static tn_status nothing(void *user) {
    return TN_OK;
}
static tn_status captures(void *user) {
    tn_graph *g;
    return tn_graph_capture(dev, nothing, NULL, &g);
}
static tn_status mixes(void *user) {
    tn_tensor *there = tn_zeros(TN_SHAPE(4), TN_F32, tn_device_parse("sim:1"));
    return tn_exp(there) ? TN_OK : tn_error_status();
}
static tn_status moves(void *user) {
    tn_tensor *there = tn_to_device(((attempt *)user)->x, tn_device_parse("cpu:0"));
    return there ? TN_OK : tn_error_status();
}
static tn_status takes_too_much(void *user) {
    return tn_empty(TN_SHAPE((int64_t)1 << 40)) ? TN_OK : tn_error_status();
}
static tn_status gives_up(void *user) {
    return TN_ERR_NOT_FOUND;
}

static const struct refusal {
    tn_status (*fn)(void *user);
    tn_status status;
    const char *named, *advice;
} refusals[] = {
    {reads, TN_ERR_STATE, "tn_item", "after a replay"},
    {copies_out, TN_ERR_STATE, "tn_to_host", "after a replay"},
    {prints, TN_ERR_STATE, "tn_to_string", "after a replay"},
    {counts, TN_ERR_STATE, "tn_nonzero", "after a replay"},
    {waits, TN_ERR_STATE, "tn_synchronize", "after a replay"},
    {waits_for_stream, TN_ERR_STATE, "tn_stream_synchronize", "after a replay"},
    {records_event, TN_ERR_STATE, "tn_event_record", "round a replay"},
    {waits_for_event, TN_ERR_STATE, "tn_event_wait", "before a replay"},
    {writes, TN_ERR_STATE, "writing from host memory", "tn_pinned_alloc"},
    {changes_stream, TN_ERR_STATE, "tn_set_current_stream", "at the replay"},
    {replays, TN_ERR_STATE, "tn_graph_replay", "capture what the graph does"},
    {captures, TN_ERR_STATE, "tn_graph_capture", "one function"},
    {mixes, TN_ERR_DEVICE, "tn_exp", "sim:1"},
    {moves, TN_ERR_STATE, "tn_to_device", "after a replay"},
    {takes_too_much, TN_ERR_OUT_OF_MEMORY, device_name, "split the tensor"},
    {gives_up, TN_ERR_NOT_FOUND, "tn_graph_capture", "NOT_FOUND"},
};

/* What fn says of its own does not matter: the failure before it counts. */
static tn_status ignores(void *user) {
    const struct refusal *r = ((void **)user)[0];
    r->fn(((void **)user)[1]);
    tn_error_clear();
    return TN_OK;
}

static void test_what_cannot_be_captured_says_so(void **state) {
    sums s = {of(TN_F32, TN_SHAPE(3), 1, 2, 3), of(TN_F32, TN_SHAPE(3), 4, 5, 6), NULL};
    attempt a = {.x = of(TN_F32, TN_SHAPE(4), 1, 0, 2, 0),
                 .other = tn_stream_create(dev, 0),
                 .event = tn_event_create(dev, false)};
    assert_ok(tn_graph_capture(dev, add_up, &s, &a.graph));
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        tn_graph *g = a.graph;
        for (int ignored = 0; ignored < 1 + (r->fn != gives_up); ignored++) {
            void *both[] = {(void *)r, &a};
            tn_status status = ignored ? tn_graph_capture(dev, ignores, both, &g)
                                       : tn_graph_capture(dev, r->fn, &a, &g);
            assert_int_equal(status, r->status);
            assert_null(g);
            assert_error(r->status, r->named, r->advice, NULL);
            assert_false(tn_is_capturing());
            assert_ok(tn_graph_replay(a.graph));
            assert_elements(s.z, TN_SHAPE(3), 5, 12, 21);
            assert_ok(tn_synchronize(dev));
        }
    }
    tn_drop(s.z);
    tn_graph_destroy(a.graph);
    tn_event_destroy(a.event);
    tn_stream_drop(a.other);
}

static void test_a_device_without_queues_cannot_capture(void **state) {
    tn_graph *g;
    sums s = {0};
    assert_int_equal(tn_graph_capture(tn_device_parse("cpu:0"), add_up, &s, &g),
                     TN_ERR_UNSUPPORTED);
    assert_error(TN_ERR_UNSUPPORTED, "cpu:0", "no queue", NULL);
    assert_int_equal(tn_graph_capture(dev, NULL, NULL, &g), TN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tn_graph_replay(NULL), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
    tn_graph_destroy(NULL);
}

/* ---- memory ------------------------------------------------------------------------------ */

static tn_status long_chain(void *user) {
    sums *s = user;
    TN_SCOPE;
    tn_tensor *t = s->x;
    for (int i = 0; i < 10; i++)
        t = tn_add(t, s->y);
    s->z = t ? tn_keep(t) : NULL;
    return t ? TN_OK : tn_error_status();
}

/* Others get none of it, neither do unused segments go back; the end gives all back. */
static void test_memory_is_the_graphs_own(void **state) {
    enum { N = 100000 };
    tn_memory_stats stats = {.struct_size = sizeof stats};
    sums s = {tn_full(TN_SHAPE(N), tn_float(1)), tn_full(TN_SHAPE(N), tn_float(2)), NULL};
    tn_graph *g;
    assert_ok(tn_graph_capture(dev, long_chain, &s, &g));
    char *text = tn_memory_snapshot(dev);
    assert_non_null(strstr(text, "\"graph\": true"));
    assert_non_null(strstr(text, "\"graph\": false"));
    tn_string_free(text);
    assert_ok(tn_empty_cache(dev));
    for (int i = 0; i < 3; i++) {
        tn_tensor *others[8];
        for (int k = 0; k < 8; k++)
            others[k] = tn_keep(tn_full(TN_SHAPE(N), tn_float(-k)));
        assert_ok(tn_graph_replay(g));
        double last;
        assert_ok(tn_item(tn_select(s.z, 0, N - 1), &last));
        assert_true(last == 21);
        for (int k = 0; k < 8; k++) {
            assert_ok(tn_item(tn_select(others[k], 0, N - 1), &last));
            assert_true(last == -k);
            tn_drop(others[k]);
        }
        assert_ok(tn_empty_cache(dev));
    }
    /* Of what the capture named the graph keeps what it needs; the result outlives it. */
    tn_graph_destroy(g);
    double last;
    assert_ok(tn_item(tn_select(s.z, 0, N - 1), &last));
    assert_true(last == 21);
    tn_drop(s.z);
    assert_ok(tn_empty_cache(dev));
    text = tn_memory_snapshot(dev);
    assert_null(strstr(text, "\"graph\": true"));
    tn_string_free(text);
}

/* Tensors that only the graph still has. */
static void test_inputs_that_are_dropped_stay(void **state) {
    sums s = {.z = NULL};
    tn_graph *g;
    {
        TN_SCOPE;
        s.x = of(TN_F32, TN_SHAPE(3), 1, 2, 3);
        s.y = of(TN_F32, TN_SHAPE(3), 4, 5, 6);
        assert_ok(tn_graph_capture(dev, add_up, &s, &g));
    }
    {
        TN_SCOPE;
        for (int i = 0; i < 50; i++)
            tn_full(TN_SHAPE(3), tn_float(-7));
    }
    assert_ok(tn_graph_replay(g));
    assert_elements(s.z, TN_SHAPE(3), 5, 12, 21);
    tn_graph_destroy(g);
    assert_elements(s.z, TN_SHAPE(3), 5, 12, 21);
    tn_drop(s.z);
}

/* ---- streams, errors, threads ------------------------------------------------------------ */

static tn_status count_on(void *user) {
    return tn_add_(((attempt *)user)->x, tn_ones(TN_SCALAR_SHAPE)) ? TN_OK : tn_error_status();
}

/* One run is behind the other whichever stream it is queued on. */
static void test_replays_on_several_streams_are_in_order(void **state) {
    attempt a = {.x = tn_zeros(TN_SHAPE(50000))};
    tn_stream *streams[3] = {tn_current_stream(dev), tn_stream_create(dev, 0),
                             tn_stream_create(dev, 0)};
    tn_graph *g;
    assert_ok(tn_graph_capture(dev, count_on, &a, &g));
    for (int i = 0; i < 30; i++) {
        assert_ok(tn_set_current_stream(streams[i * 7 % 3]));
        assert_ok(tn_graph_replay(g));
    }
    double value;
    assert_ok(tn_item(tn_select(a.x, 0, 49999), &value));
    assert_true(value == 30);
    assert_ok(tn_set_current_stream(streams[0]));
    tn_graph_destroy(g);
    tn_stream_drop(streams[1]);
    tn_stream_drop(streams[2]);
}

static tn_status picks(void *user) {
    attempt *a = user;
    tn_tensor *t = tn_gather(a->x, 0, a->index);
    return t ? TN_OK : tn_error_status();
}

static void test_errors_of_a_replay_are_its_streams(void **state) {
    attempt a = {.x = of(TN_F32, TN_SHAPE(3), 1, 2, 3), .index = of(TN_I64, TN_SHAPE(2), 0, 2)};
    tn_stream *first = tn_current_stream(dev), *other = tn_stream_create(dev, 0);
    tn_graph *g;
    assert_ok(tn_graph_capture(dev, picks, &a, &g));
    assert_ok(tn_graph_replay(g));
    assert_ok(tn_synchronize(dev));
    tn_copy_(a.index, of(TN_I64, TN_SHAPE(2), 0, 3));
    for (int i = 0; i < 3; i++) {
        assert_ok(tn_stream_synchronize(first));
        assert_ok(tn_set_current_stream(other));
        assert_ok(tn_graph_replay(g));
        assert_ok(tn_set_current_stream(first));
        assert_int_equal(tn_stream_synchronize(other), TN_ERR_INDEX_OUT_OF_RANGE);
        assert_error(TN_ERR_INDEX_OUT_OF_RANGE, on_sim() ? "gather" : "index 3 is out of range",
                     "tn_graph_replay", NULL);
        assert_ok(tn_stream_synchronize(first));
    }
    tn_copy_(a.index, of(TN_I64, TN_SHAPE(2), 1, 1));
    assert_ok(tn_graph_replay(g));
    assert_ok(tn_synchronize(dev));
    tn_graph_destroy(g);
    tn_stream_drop(other);
}

static void *work_beside(void *user) {
    TN_SCOPE;
    assert_ok(tn_set_default_device(dev));
    tn_tensor *t = tn_full(TN_SHAPE(1000), tn_float(3));
    double sum;
    assert_ok(tn_item(tn_sum(tn_mul(t, t)), &sum));
    assert_true(sum == 9000);
    assert_ok(tn_synchronize(dev));
    assert_false(tn_is_capturing());
    return NULL;
}

static tn_status with_a_thread(void *user) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, work_beside, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return add_up(user);
}

static void test_other_threads_go_on(void **state) {
    sums s = {of(TN_F32, TN_SHAPE(3), 1, 2, 3), of(TN_F32, TN_SHAPE(3), 4, 5, 6), NULL};
    tn_graph *g;
    assert_ok(tn_graph_capture(dev, with_a_thread, &s, &g));
    assert_ok(tn_graph_replay(g));
    assert_elements(s.z, TN_SHAPE(3), 5, 12, 21);
    tn_drop(s.z);
    tn_graph_destroy(g);
}

/* A graph is the program's: the library does not end over it. */
static void test_shutdown_asks_for_graphs(void **state) {
    tn_graph *g;
    assert_ok(tn_graph_capture(dev, nothing, NULL, &g));
    assert_ok(tn_graph_replay(g));
    assert_int_equal(tn_shutdown(), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "1 graph", "tn_graph_destroy", NULL);
    tn_graph_destroy(g);
}

/* What is read from pinned memory is what is there at the replay. */
static tn_status uploads(void *user) {
    attempt *a = user;
    tn_tensor *t = tn_from_data(a->event, TN_SHAPE(4), TN_F32, dev);
    return t ? tn_copy_(a->x, t) ? TN_OK : tn_error_status() : tn_error_status();
}

static void test_pinned_memory_is_read_at_each_replay(void **state) {
    float *pinned = tn_pinned_alloc(dev, 4 * sizeof *pinned);
    attempt a = {.x = tn_zeros(TN_SHAPE(4)), .event = (void *)pinned};
    tn_graph *g;
    assert_ok(tn_graph_capture(dev, uploads, &a, &g));
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++)
            pinned[k] = (float)(10 * i + k);
        assert_ok(tn_graph_replay(g));
        assert_elements(a.x, TN_SHAPE(4), 10 * i, 10 * i + 1, 10 * i + 2, 10 * i + 3);
    }
    tn_graph_destroy(g);
    tn_pinned_free(pinned);
}

int main(int argc, char **argv) {
    if (!device_named(argc, argv, device_name))
        return 77;
    const struct CMUnitTest tests[] = {
        GRAPH_TEST(test_a_replay_reads_its_inputs_anew),
        GRAPH_TEST(test_training_by_replay_is_training),
        GRAPH_TEST(test_any_allocation_may_fail),
        GRAPH_TEST(test_what_cannot_be_captured_says_so),
        GRAPH_TEST(test_a_device_without_queues_cannot_capture),
        GRAPH_TEST(test_memory_is_the_graphs_own),
        GRAPH_TEST(test_inputs_that_are_dropped_stay),
        GRAPH_TEST(test_replays_on_several_streams_are_in_order),
        GRAPH_TEST(test_errors_of_a_replay_are_its_streams),
        GRAPH_TEST(test_other_threads_go_on),
        GRAPH_TEST(test_shutdown_asks_for_graphs),
        GRAPH_TEST(test_pinned_memory_is_read_at_each_replay),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
