/* Threads, devices and hosts at once, while the streams of the double are late by what a seed
 * says. Made for ThreadSanitizer; cmocka's assertions are for the main thread. */
#include "tests/cuda/life.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

enum { N = 1000, BYTES = N * sizeof(float), THREADS = 3 };

static void run(void *(*const mains[])(void *), void *const users[], int n) {
    pthread_t threads[THREADS];
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, mains[i], users[i]), 0);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* ---- several hosts ----------------------------------------------------------------------- */

enum { HEADER = 64 }; /* before what a host gives out: which it was */

typedef struct owner {
    tn_host host; /* first: the plugin hands it back */
    life life;
    int64_t n_taken, n_foreign;
    pthread_mutex_t lock;
    tn_status status;
    char message[512];
} owner;

static void *owner_alloc(const tn_host *host, uint64_t bytes, uint64_t alignment) {
    owner *o = (owner *)(uintptr_t)host;
    char *p = aligned_alloc(HEADER, (bytes + 2 * HEADER - 1) / HEADER * HEADER);
    if (!p || alignment > HEADER)
        abort();
    memcpy(p, &host, sizeof(host));
    pthread_mutex_lock(&o->lock);
    o->n_taken++;
    pthread_mutex_unlock(&o->lock);
    return p + HEADER;
}

static void owner_dealloc(const tn_host *host, void *p) {
    owner *o = (owner *)(uintptr_t)host;
    if (!p)
        return;
    pthread_mutex_lock(&o->lock);
    o->n_taken--;
    o->n_foreign += memcmp((char *)p - HEADER, &host, sizeof(host)) != 0;
    pthread_mutex_unlock(&o->lock);
    free((char *)p - HEADER);
}

static void *live_twice(void *user) {
    owner *o = user;
    for (int i = 0; i < 2 && o->status == TN_OK && !o->life.wrong[0]; i++) {
        o->life = (life){.host = &o->host};
        o->status = life_live(&o->life);
        if (o->status != TN_OK)
            snprintf(o->message, sizeof o->message, "%s: %s", o->life.step, mini_error());
        life_end(&o->life);
    }
    return NULL;
}

/* Each starts the plugin, opens both devices, works, and ends it, as the others do. */
static void hosts_of_a_process_live_beside_each_other(void **state) {
    static owner owners[THREADS];
    void *users[THREADS];
    for (int i = 0; i < THREADS; i++) {
        owners[i] = (owner){.host = *mini_host_table()};
        owners[i].host.alloc = owner_alloc;
        owners[i].host.dealloc = owner_dealloc;
        pthread_mutex_init(&owners[i].lock, NULL);
        users[i] = &owners[i];
    }
    rig_say("seed=1 delay=100us");
    run((void *(*const[])(void *)){live_twice, live_twice, live_twice}, users, THREADS);
    for (int i = 0; i < THREADS; i++) {
        if (owners[i].status != TN_OK || owners[i].life.wrong[0])
            fail_msg("host %d: %s %s", i, owners[i].message, owners[i].life.wrong);
        assert_int_equal(owners[i].n_taken, 0);
        assert_int_equal(owners[i].n_foreign, 0);
    }
}

/* ---- workers ----------------------------------------------------------------------------- */

static mini m; /* device 0 */

/* A thread with a stream and memory of its own, on either device. */
typedef struct worker {
    mini m; /* with the device */
    tn_stream_impl *stream;
    tn_memory in, out;
    int number, n_wrong;
    tn_status status;
    char message[512];
} worker;

static void note(worker *w, tn_status status) {
    if (w->status != TN_OK || status == TN_OK)
        return;
    w->status = status;
    snprintf(w->message, sizeof w->message, "%s", mini_error());
}

static tn_memory allocate(worker *w, int32_t space, void **out_host) {
    tn_memory memory = 0;
    note(w, mini_alloc(w->m.ops->memory, w->m.device, space, BYTES, &memory, out_host));
    return memory;
}

static void start_worker(worker *w, int number, uint32_t device) {
    void *host;
    *w = (worker){.m = m, .number = number};
    if (device)
        assert_ok(m.ops->open(m.self, device, &w->m.device));
    assert_ok(m.ops->streams->create(w->m.device, 0, &w->stream));
    w->in = allocate(w, TN_SPACE_DEVICE, &host);
    w->out = allocate(w, TN_SPACE_DEVICE, &host);
    assert_int_equal(w->status, TN_OK);
}

static void end_worker(worker *w) {
    m.ops->memory->dealloc(w->m.device, TN_SPACE_DEVICE, w->in);
    m.ops->memory->dealloc(w->m.device, TN_SPACE_DEVICE, w->out);
    m.ops->streams->destroy(w->stream);
    if (w->m.device != m.device)
        m.ops->close(w->m.device);
}

static void assert_well(worker *w) {
    if (w->status != TN_OK || w->n_wrong)
        fail_msg("worker %d: %d numbers are wrong, %s", w->number, w->n_wrong, w->message);
}

static void give(worker *w, float first) {
    float numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = first + (float)i;
    note(w, w->m.ops->memory->copy_from_host(w->m.device, w->stream, w->in, 0, numbers, 0, BYTES));
}

static void take(worker *w, tn_memory memory, float first, float factor) {
    float numbers[N];
    note(w, w->m.ops->memory->copy_to_host(w->m.device, w->stream, numbers, 0, memory, 0, BYTES));
    for (int i = 0; i < N && w->status == TN_OK; i++)
        w->n_wrong += numbers[i] != factor * (first + (float)i);
}

/* ---- from device to device --------------------------------------------------------------- */

enum { SLOTS = 3, ROUNDS = 40 };

/* Slot i, on device 0, holds a round's numbers from `full` on, until `taken`. */
static struct {
    tn_memory slots[SLOTS];
    tn_event_impl *full[SLOTS], *taken[SLOTS];
    sem_t n_full, n_taken;
} belt;

static void *giver(void *user) {
    worker *w = user;
    for (int round = 0; round < ROUNDS; round++) {
        int slot = round % SLOTS;
        if (round >= SLOTS) {
            sem_wait(&belt.n_taken);
            note(w, m.ops->events->wait(w->stream, belt.taken[slot]));
        }
        give(w, (float)round);
        note(w, rig_negate(&w->m, w->stream, w->in, belt.slots[slot], N));
        note(w, m.ops->events->record(belt.full[slot], w->stream));
        sem_post(&belt.n_full);
    }
    return NULL;
}

/* Never waits for the other device on the host: events order the two. */
static void *taker(void *user) {
    worker *w = user;
    for (int round = 0; round < ROUNDS; round++) {
        int slot = round % SLOTS;
        sem_wait(&belt.n_full);
        note(w, m.ops->events->wait(w->stream, belt.full[slot]));
        note(w, m.ops->memory->copy_peer(w->m.device, w->stream, w->in, 0, m.device,
                                         belt.slots[slot], 0, BYTES));
        note(w, m.ops->events->record(belt.taken[slot], w->stream));
        note(w, rig_negate(&w->m, w->stream, w->in, w->out, N));
        take(w, w->in, (float)round, -1);
        take(w, w->out, (float)round, 1);
        sem_post(&belt.n_taken);
    }
    return NULL;
}

static void threads_of_two_devices_hand_over_with_events(void **state) {
    worker a, b;
    void *host;
    rig_open(&m);
    start_worker(&a, 0, 0);
    start_worker(&b, 1, 1);
    sem_init(&belt.n_full, 0, 0);
    sem_init(&belt.n_taken, 0, 0);
    for (int i = 0; i < SLOTS; i++) {
        belt.slots[i] = allocate(&a, TN_SPACE_DEVICE, &host);
        assert_ok(m.ops->events->create(a.m.device, 0, &belt.full[i]));
        assert_ok(m.ops->events->create(b.m.device, 0, &belt.taken[i]));
    }
    rig_say("seed=2 delay=200us");
    run((void *(*const[])(void *)){giver, taker}, (void *[]){&a, &b}, 2);
    assert_well(&a);
    assert_well(&b);
    assert_ok(m.ops->streams->synchronize(a.stream));
    assert_ok(m.ops->streams->synchronize(b.stream));
    for (int i = 0; i < SLOTS; i++) {
        m.ops->memory->dealloc(a.m.device, TN_SPACE_DEVICE, belt.slots[i]);
        m.ops->events->destroy(belt.full[i]);
        m.ops->events->destroy(belt.taken[i]);
    }
    end_worker(&b);
    end_worker(&a);
    assert_true(mini_close(&m));
}

/* ---- everything at once ------------------------------------------------------------------ */

static void use_everything(worker *w, int round) {
    const tn_device_ops *ops = w->m.ops;
    float first = (float)(round + 100 * w->number);
    tn_event_impl *event = NULL;
    tn_memory_info info = {.struct_size = sizeof info};
    void *host = NULL;
    tn_memory pinned = allocate(w, TN_SPACE_PINNED, &host);
    if (!pinned)
        return;
    give(w, first);
    note(w, rig_negate(&w->m, w->stream, w->in, w->out, N));
    note(w, ops->events->create(w->m.device, 0, &event));
    if (event) {
        note(w, ops->events->record(event, w->stream));
        tn_status status = ops->events->query(event);
        note(w, status == TN_NOT_READY ? TN_OK : status);
        note(w, ops->events->synchronize(event));
    }
    take(w, w->out, first, -1);
    note(w, ops->memory->copy_to_host(w->m.device, w->stream, host, pinned, w->in, 0, BYTES));
    note(w, ops->streams->synchronize(w->stream));
    w->n_wrong += w->status == TN_OK && ((float *)host)[N - 1] != first + N - 1;
    note(w, ops->memory->info(w->m.device, TN_SPACE_DEVICE, &info));
    ops->events->destroy(event);
    ops->memory->dealloc(w->m.device, TN_SPACE_PINNED, pinned);
}

static void *user_main(void *user) {
    worker *w = user;
    for (int round = 0; round < ROUNDS && w->status == TN_OK; round++)
        use_everything(w, round);
    return NULL;
}

/* Two on one device, the third on the other. */
static void use_everything_at_once(void) {
    worker workers[THREADS];
    rig_open(&m);
    for (int i = 0; i < THREADS; i++)
        start_worker(&workers[i], i, i == 2);
    rig_say("seed=3 delay=50us");
    run((void *(*const[])(void *)){user_main, user_main, user_main},
        (void *[]){&workers[0], &workers[1], &workers[2]}, THREADS);
    for (int i = THREADS; i-- > 0;) {
        assert_well(&workers[i]);
        end_worker(&workers[i]);
    }
    assert_true(mini_close(&m));
}

static void threads_use_everything_at_once(void **state) {
    use_everything_at_once();
}

/* All want the first kernel in the same moment, which is compiled. */
static void threads_build_kernels_at_once(void **state) {
    mini_option("cache", "off");
    use_everything_at_once();
    mini_option("cache", rig_cache);
}

/* ---- a stream's errors are its own ------------------------------------------------------- */

static void *fail_with_an_index(void *user) {
    worker *w = user;
    static int64_t indices[THREADS][N];
    char expected[96];
    int64_t *own = indices[w->number];
    tn_memory index = 0;
    void *host;
    note(w, mini_alloc(w->m.ops->memory, w->m.device, TN_SPACE_DEVICE, N * sizeof *own, &index,
                       &host));
    give(w, 0);
    for (int round = 0; round < ROUNDS && w->status == TN_OK; round++) {
        own[round] = w->number == 2 ? 0 : N + 100 * w->number + round;
        note(w, w->m.ops->memory->copy_from_host(w->m.device, w->stream, index, 0, own, 0,
                                                 N * sizeof *own));
        note(w, rig_select(&w->m, w->stream, w->in, index, w->out, N));
        tn_status status = w->m.ops->streams->synchronize(w->stream);
        snprintf(expected, sizeof expected, "index %d is out of range", (int)own[round]);
        if (w->number == 2)
            note(w, status);
        else
            w->n_wrong += status != TN_ERR_INDEX_OUT_OF_RANGE || !strstr(mini_error(), expected);
        own[round] = 0;
    }
    w->m.ops->memory->dealloc(w->m.device, TN_SPACE_DEVICE, index);
    return NULL;
}

static void an_index_error_is_told_to_who_made_it(void **state) {
    worker workers[THREADS];
    rig_open(&m);
    for (int i = 0; i < THREADS; i++)
        start_worker(&workers[i], i, 0);
    rig_say("seed=4 delay=50us");
    run((void *(*const[])(void *)){fail_with_an_index, fail_with_an_index, fail_with_an_index},
        (void *[]){&workers[0], &workers[1], &workers[2]}, THREADS);
    for (int i = 0; i < THREADS; i++) {
        assert_well(&workers[i]);
        end_worker(&workers[i]);
    }
    assert_true(mini_close(&m));
}

/* ---- graphs ------------------------------------------------------------------------------ */

static tn_graph_impl *shared_graph;

/* Captures, which must not be disturbed by what others do. */
static void *capture_main(void *user) {
    worker *w = user;
    const tn_ext_capture *capture = m.plugin->extension(m.self, TN_EXT_CAPTURE);
    for (int round = 0; round < ROUNDS && w->status == TN_OK; round++) {
        tn_graph_impl *graph = NULL;
        give(w, (float)round);
        note(w, capture->begin(w->stream));
        note(w, rig_negate(&w->m, w->stream, w->in, w->out, N));
        note(w, capture->end(w->stream, &graph));
        if (graph) {
            note(w, capture->launch(graph, w->stream));
            take(w, w->out, (float)round, -1);
            capture->destroy(graph);
        }
    }
    return NULL;
}

static void *replay_main(void *user) {
    worker *w = user;
    const tn_ext_capture *capture = m.plugin->extension(m.self, TN_EXT_CAPTURE);
    for (int round = 0; round < ROUNDS; round++) {
        note(w, capture->launch(shared_graph, w->stream));
        if (round % 4 == 0)
            note(w, w->m.ops->streams->synchronize(w->stream));
    }
    return NULL;
}

/* One captures, one launches a graph that two share, and so does the third. */
static void threads_capture_and_replay_at_once(void **state) {
    worker workers[THREADS];
    rig_open(&m);
    for (int i = 0; i < THREADS; i++)
        start_worker(&workers[i], i, 0);
    const tn_ext_capture *capture = m.plugin->extension(m.self, TN_EXT_CAPTURE);
    give(&workers[1], 7);
    assert_ok(m.ops->streams->synchronize(workers[1].stream));
    assert_ok(capture->begin(m.stream));
    assert_ok(rig_negate(&m, m.stream, workers[1].in, workers[1].out, N));
    assert_ok(capture->end(m.stream, &shared_graph));
    rig_say("seed=5 delay=50us");
    run((void *(*const[])(void *)){capture_main, replay_main, replay_main},
        (void *[]){&workers[0], &workers[1], &workers[2]}, THREADS);
    take(&workers[1], workers[1].out, 7, -1);
    capture->destroy(shared_graph);
    for (int i = 0; i < THREADS; i++) {
        assert_well(&workers[i]);
        end_worker(&workers[i]);
    }
    assert_true(mini_close(&m));
}

/* ---- loss -------------------------------------------------------------------------------- */

static void *work_until_lost(void *user) {
    worker *w = user;
    for (int round = 0; w->status == TN_OK; round++)
        use_everything(w, round);
    return NULL;
}

static void *lose_soon(void *user) {
    while (double_kernels() < *(uint64_t *)user)
        sched_yield();
    double_lose(1, CUDA_ERROR_ECC_UNCORRECTABLE);
    return NULL;
}

static void a_device_that_is_lost_at_work_leaves_the_other_at_work(void **state) {
    worker well, lost;
    uint64_t when = double_kernels() + 10;
    rig_open(&m);
    start_worker(&well, 0, 0);
    start_worker(&lost, 1, 1);
    rig_say("seed=6 delay=50us");
    run((void *(*const[])(void *)){user_main, work_until_lost, lose_soon},
        (void *[]){&well, &lost, &when}, THREADS);
    assert_well(&well);
    assert_int_equal(lost.status, TN_ERR_DEVICE_LOST);
    assert_text(lost.message, "cuda:1 (");
    assert_int_equal(lost.n_wrong, 0);
    end_worker(&lost);
    end_worker(&well);
    assert_true(mini_close(&m));
    rig_forget();
}

int all_tests(void) {
    life_load();
    const struct CMUnitTest tests[] = {
        TEST(hosts_of_a_process_live_beside_each_other),
        TEST(threads_of_two_devices_hand_over_with_events),
        TEST(threads_use_everything_at_once),
        TEST(threads_build_kernels_at_once),
        TEST(an_index_error_is_told_to_who_made_it),
        TEST(threads_capture_and_replay_at_once),
        TEST(a_device_that_is_lost_at_work_leaves_the_other_at_work), /* for ever: the last */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
