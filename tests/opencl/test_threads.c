/* Two threads with a stream each on one device: the plugin's locks, and events between streams. */
#include "tests/opencl/rig.h"

#include <pthread.h>
#include <semaphore.h>
#include <tenon/kernels.h>

enum { N = 3000, SLOTS = 3, ROUNDS = 60, BYTES = N * sizeof(float) };

static mini m;

/* ---- calls from any thread; cmocka's assertions are for the main one --------------------- */

typedef struct view {
    tn_tensor_view view;
    int64_t size, stride;
} view;

static void make_view(view *v, tn_memory memory) {
    v->size = N;
    v->stride = 1;
    v->view = (tn_tensor_view){.struct_size = sizeof v->view,
                               .memory = memory,
                               .numel = N,
                               .dtype = TN_F32,
                               .rank = 1,
                               .sizes = &v->size,
                               .strides = &v->stride};
}

static tn_status call(const char *op, tn_stream_impl *stream, tn_memory self, tn_memory out) {
    bool is_add = strcmp(op, "add") == 0;
    const tn_kernel *kernel = mini_find(&m, op, TN_F32, is_add ? TN_DTYPE_NONE : TN_F32);
    view views[2];
    if (!kernel)
        return TN_ERR_NOT_FOUND;
    make_view(&views[0], self);
    make_view(&views[1], out);
    tn_cell input = {.tag = TN_CELL_TENSOR, .v.view = &views[0].view};
    const tn_cell args[] = {input, input, mini_i64(1)}; /* copy takes the first, add all three */
    const tn_tensor_view *outs[] = {&views[1].view};
    tn_call c = {.struct_size = sizeof c,
                 .device = m.device,
                 .stream = stream,
                 .user = kernel->user,
                 .args = args,
                 .outs = outs,
                 .n_args = is_add ? 3 : 1,
                 .n_outs = 1};
    return kernel->run(&c);
}

static tn_memory allocate(int32_t space, uint64_t bytes, void **out_host) {
    tn_memory memory = 0;
    mini_alloc(m.ops->memory, m.device, space, bytes, &memory, out_host);
    return memory;
}

/* ---- one hands to the other -------------------------------------------------------------- */

/* Slot i holds a round's numbers from the moment `full` is recorded, until `taken` is. */
static struct {
    tn_memory slots[SLOTS];
    tn_event_impl *full[SLOTS], *taken[SLOTS];
    sem_t n_full, n_taken;
} belt;

typedef struct worker {
    tn_stream_impl *stream;
    tn_memory own;
    tn_status status;
    int n_wrong, number;
} worker;

/* Writes round + index, and doubles it into the slot. Never waits for the device. */
static tn_status give(worker *w, int round) {
    int slot = round % SLOTS;
    float numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = (float)(round + i);
    tn_status status =
        m.ops->memory->copy_from_host(m.device, w->stream, w->own, 0, numbers, 0, BYTES);
    if (status == TN_OK && round >= SLOTS)
        status = m.ops->events->wait(w->stream, belt.taken[slot]);
    if (status == TN_OK)
        status = call("add", w->stream, w->own, belt.slots[slot]);
    return status == TN_OK ? m.ops->events->record(belt.full[slot], w->stream) : status;
}

static tn_status take(worker *w, int round) {
    int slot = round % SLOTS;
    float numbers[N];
    tn_status status = m.ops->events->wait(w->stream, belt.full[slot]);
    if (status == TN_OK)
        status = call("copy", w->stream, belt.slots[slot], w->own);
    if (status == TN_OK)
        status = m.ops->events->record(belt.taken[slot], w->stream);
    if (status == TN_OK)
        status = m.ops->memory->copy_to_host(m.device, w->stream, numbers, 0, w->own, 0, BYTES);
    for (int i = 0; i < N && status == TN_OK; i++)
        w->n_wrong += numbers[i] != 2.0f * (float)(round + i);
    return status;
}

/* The other goes on when one has failed: nothing waits for ever. */
static void *giver(void *context) {
    worker *w = context;
    for (int round = 0; round < ROUNDS; round++) {
        if (round >= SLOTS)
            sem_wait(&belt.n_taken);
        if (w->status == TN_OK)
            w->status = give(w, round);
        sem_post(&belt.n_full);
    }
    return NULL;
}

static void *taker(void *context) {
    worker *w = context;
    for (int round = 0; round < ROUNDS; round++) {
        sem_wait(&belt.n_full);
        if (w->status == TN_OK)
            w->status = take(w, round);
        sem_post(&belt.n_taken);
    }
    return NULL;
}

static void start_worker(worker *w) {
    void *host;
    *w = (worker){0};
    assert_ok(m.ops->streams->create(m.device, 0, &w->stream));
    assert_true((w->own = allocate(TN_SPACE_DEVICE, BYTES, &host)) != 0);
}

static void finish_worker(worker *w) {
    assert_ok(m.ops->streams->synchronize(w->stream));
    m.ops->memory->dealloc(m.device, TN_SPACE_DEVICE, w->own);
    m.ops->streams->destroy(w->stream);
}

static void run_both(void *(*first)(void *), void *(*second)(void *), worker *a, worker *b) {
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, second, b), 0);
    first(a);
    pthread_join(other, NULL);
    assert_int_equal(a->status, TN_OK);
    assert_int_equal(b->status, TN_OK);
    assert_int_equal(a->n_wrong + b->n_wrong, 0);
}

static void streams_of_two_threads_hand_over_with_events(void **state) {
    worker a, b;
    void *host;
    if (!mini_open(&m, rig_plugin, 0))
        fail_msg("%s", mini_error());
    sem_init(&belt.n_full, 0, 0);
    sem_init(&belt.n_taken, 0, 0);
    for (int i = 0; i < SLOTS; i++) {
        assert_true((belt.slots[i] = allocate(TN_SPACE_DEVICE, BYTES, &host)) != 0);
        assert_ok(m.ops->events->create(m.device, 0, &belt.full[i]));
        assert_ok(m.ops->events->create(m.device, 0, &belt.taken[i]));
    }
    start_worker(&a);
    start_worker(&b);
    run_both(giver, taker, &a, &b);
    finish_worker(&a);
    finish_worker(&b);
    for (int i = 0; i < SLOTS; i++) {
        m.ops->memory->dealloc(m.device, TN_SPACE_DEVICE, belt.slots[i]);
        m.ops->events->destroy(belt.full[i]);
        m.ops->events->destroy(belt.taken[i]);
    }
    assert_true(mini_close(&m));
}

/* ---- everything at once ------------------------------------------------------------------ */

static tn_status use_everything(worker *w, int round) {
    float back[N] = {0};
    tn_event_impl *event = NULL;
    void *host = NULL, *unused;
    tn_memory memory = allocate(TN_SPACE_DEVICE, BYTES, &unused);
    tn_memory pinned = allocate(TN_SPACE_PINNED, BYTES, &host);
    if (!memory || !pinned)
        return TN_ERR_OUT_OF_MEMORY;
    for (int i = 0; i < N; i++)
        ((float *)host)[i] = (float)(i * round);
    tn_status status =
        m.ops->memory->copy_from_host(m.device, w->stream, w->own, 0, host, pinned, BYTES);
    if (status == TN_OK)
        status = call(round % 2 ? "add" : "copy", w->stream, w->own, memory);
    if (status == TN_OK)
        status = m.ops->events->create(m.device, 0, &event);
    if (status == TN_OK)
        status = m.ops->events->record(event, w->stream);
    if (status == TN_OK)
        status = m.ops->memory->copy_to_host(m.device, w->stream, back, 0, memory, 0, BYTES);
    if (status == TN_OK)
        status = m.ops->events->query(event); /* a read to pageable memory has waited */
    if (status == TN_OK || status == TN_NOT_READY)
        status = m.ops->streams->synchronize(w->stream);
    for (int i = 0; i < N && status == TN_OK; i++)
        w->n_wrong += back[i] != (float)(i * round) * (round % 2 ? 2.0f : 1.0f);
    m.ops->events->destroy(event);
    m.ops->memory->dealloc(m.device, TN_SPACE_DEVICE, memory);
    m.ops->memory->dealloc(m.device, TN_SPACE_PINNED, pinned);
    return status;
}

static void *user(void *context) {
    worker *w = context;
    for (int round = 0; round < ROUNDS && w->status == TN_OK; round++)
        w->status = use_everything(w, round);
    return NULL;
}

/* The first call of each kernel builds it, in both threads at once. */
static void two_threads_use_everything_at_once(void **state) {
    worker a, b;
    if (!mini_open(&m, rig_plugin, 0))
        fail_msg("%s", mini_error());
    start_worker(&a);
    start_worker(&b);
    run_both(user, user, &a, &b);
    finish_worker(&a);
    finish_worker(&b);
    assert_true(mini_close(&m));
}

/* ---- many launches ----------------------------------------------------------------------- */

enum { TARGETS = 64, TIMES = 30 };

/* Copies a number of its own to all of them, again and again; arguments that another thread has set
 * would bring the other's. */
static tn_status copy_everywhere(worker *w, const tn_memory *targets, float number) {
    float numbers[N], back[N];
    tn_status status = TN_OK;
    for (int i = 0; i < N; i++)
        numbers[i] = number;
    status = m.ops->memory->copy_from_host(m.device, w->stream, w->own, 0, numbers, 0, BYTES);
    for (int i = 0; i < TARGETS && status == TN_OK; i++)
        status = call("copy", w->stream, w->own, targets[i]);
    for (int i = 0; i < TARGETS && status == TN_OK; i++) {
        status = m.ops->memory->copy_to_host(m.device, w->stream, back, 0, targets[i], 0, BYTES);
        w->n_wrong += status == TN_OK && memcmp(back, numbers, BYTES) != 0;
    }
    return status;
}

static void *launcher(void *context) {
    worker *w = context;
    tn_memory targets[TARGETS];
    void *host;
    for (int i = 0; i < TARGETS; i++)
        targets[i] = allocate(TN_SPACE_DEVICE, BYTES, &host);
    for (int t = 0; t < TIMES && w->status == TN_OK; t++)
        w->status = copy_everywhere(w, targets, (float)(2 * t + w->number));
    for (int i = 0; i < TARGETS; i++)
        m.ops->memory->dealloc(m.device, TN_SPACE_DEVICE, targets[i]);
    return NULL;
}

static void launches_of_two_threads_keep_their_arguments(void **state) {
    worker a, b;
    if (!mini_open(&m, rig_plugin, 0))
        fail_msg("%s", mini_error());
    start_worker(&a);
    start_worker(&b);
    b.number = 1;
    run_both(launcher, launcher, &a, &b);
    finish_worker(&a);
    finish_worker(&b);
    assert_true(mini_close(&m));
}

/* ---- asking beside calls ----------------------------------------------------------------- */

/* No lock of the driver's orders what these look at. */
static void *looker(void *context) {
    worker *w = context;
    tn_memory_info info = {.struct_size = sizeof info};
    for (int i = 0; i < 20 * ROUNDS && w->status == TN_OK; i++) {
        w->status = m.ops->memory->info(m.device, TN_SPACE_DEVICE, &info);
        w->n_wrong += info.free_bytes > info.total_bytes;
        if (!mini_find(&m, "add", TN_F32, TN_DTYPE_NONE))
            w->status = TN_ERR_NOT_FOUND;
    }
    return NULL;
}

static void asking_beside_calls_disturbs_nothing(void **state) {
    worker a, b;
    if (!mini_open(&m, rig_plugin, 0))
        fail_msg("%s", mini_error());
    start_worker(&a);
    start_worker(&b);
    run_both(user, looker, &a, &b);
    finish_worker(&a);
    finish_worker(&b);
    assert_true(mini_close(&m));
}

/* ---- two devices open at once ------------------------------------------------------------ */

/* What a driver changes of the process is put back also where two start in the same moment. */
static void *open_and_work(void *context) {
    worker *w = context;
    tn_device_impl *device = NULL;
    w->status = m.ops->open(m.self, 0, &device);
    if (w->status == TN_OK)
        m.ops->close(device);
    return NULL;
}

static void devices_opened_beside_calls_disturb_nothing(void **state) {
    worker a, b;
    if (!mini_open(&m, rig_plugin, 0))
        fail_msg("%s", mini_error());
    start_worker(&a);
    start_worker(&b);
    run_both(user, open_and_work, &a, &b);
    finish_worker(&a);
    finish_worker(&b);
    assert_true(mini_close(&m));
}

int all_tests(void) {
    const struct CMUnitTest tests[] = {
        TEST(streams_of_two_threads_hand_over_with_events),
        TEST(two_threads_use_everything_at_once),
        TEST(launches_of_two_threads_keep_their_arguments),
        TEST(asking_beside_calls_disturbs_nothing),
        TEST(devices_opened_beside_calls_disturb_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
