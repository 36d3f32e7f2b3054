/* The caching allocator: magazines of threads, and many threads at once. */
#include "tests/core/allocator_test.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- magazines --------------------------------------------------------------------------- */

/* Holds blocks in its magazine until told to end. */
typedef struct idle_thread {
    tni_device *device;
    _Atomic int stage;
} idle_thread;

static void *fill_and_idle(void *arg) {
    idle_thread *t = arg;
    for (int i = 0; i < 20; i++)
        tni_block_free(tni_block_alloc(t->device, &t->device->default_stream, 3000));
    atomic_store(&t->stage, 1);
    while (atomic_load(&t->stage) != 2)
        usleep(100);
    tni_block_free(tni_block_alloc(t->device, &t->device->default_stream, 3000));
    return NULL;
}

static void test_empty_cache_reaches_other_threads(void **state) {
    tni_device *d = open_fake();
    idle_thread t = {.device = d};
    pthread_t thread;
    pthread_create(&thread, NULL, fill_and_idle, &t);
    while (atomic_load(&t.stage) != 1)
        usleep(100);
    assert_true(fake_count().live_bytes > 0);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_int_equal(fake_count().live_bytes, 0);
    atomic_store(&t.stage, 2);
    pthread_join(thread, NULL);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_int_equal(fake_count().live_bytes, 0);
    assert_int_equal(stats_of(d).n_allocations, stats_of(d).n_frees);
    assert_int_equal(stats_of(d).n_allocations, 21);
}

static void *exhaust(void *arg) {
    idle_thread *t = arg;
    for (int i = 0; i < 3000; i++) { /* more than a magazine holds */
        tni_block *b = tni_block_alloc(t->device, &t->device->default_stream, 512);
        tni_block *c = tni_block_alloc(t->device, &t->device->default_stream, 60000);
        tni_block_free(b);
        tni_block_free(c);
    }
    return NULL;
}

static void test_magazines_are_bounded_and_end_with_their_thread(void **state) {
    tni_device *d = open_fake();
    enum { N = 4000 };
    static tni_block *blocks[N];
    for (int i = 0; i < N; i++)
        blocks[i] = take(d, 512);
    for (int i = 0; i < N; i++)
        tni_block_free(blocks[i]);
    tni_cache_sums sums = tni_caches_sum(d->allocator);
    assert_true(sums.held_bytes <= TNI_CACHE_BYTES);
    idle_thread t = {.device = d};
    pthread_t thread;
    pthread_create(&thread, NULL, exhaust, &t);
    pthread_join(thread, NULL);
    assert_int_equal(tni_caches_sum(d->allocator).held_bytes, sums.held_bytes);
    check_pools(d);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_int_equal(fake_count().live_bytes, 0);
}

/* ---- many threads ------------------------------------------------------------------------ */

enum { THREADS = 4, SLOTS = 64, ROUNDS = 6000 };

typedef struct racer {
    tni_device *device;
    tn_stream *stream;
    uint64_t seed;
    uint8_t tag;
    bool ok;
} racer;

/* Blocks travel between the threads through these. */
static _Atomic(tni_block *) shared_slots[SLOTS];

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Writes the block's own address over its first and last bytes: whoever overlaps destroys it. */
static void sign(tni_block *b) {
    memcpy(b->host, &b, sizeof b);
    memcpy((char *)b->host + b->bytes - sizeof b, &b, sizeof b);
}

static bool is_signed(tni_block *b) {
    return memcmp(b->host, &b, sizeof b) == 0 &&
           memcmp((char *)b->host + b->bytes - sizeof b, &b, sizeof b) == 0;
}

static void *race(void *arg) {
    racer *r = arg;
    uint64_t x = r->seed;
    r->ok = true;
    for (int i = 0; i < ROUNDS; i++) {
        static const uint64_t limits[4] = {2000, 70000, 3 << 20, 12 << 20};
        uint64_t bytes =
            next_random(&x) %
            limits[next_random(&x) % 64 ? next_random(&x) % 2 : 2 + next_random(&x) % 2];
        tni_block *b = tni_block_alloc(r->device, r->stream, bytes + 1);
        if (!b) {
            r->ok = false;
            break;
        }
        sign(b);
        tni_block *other = atomic_exchange(&shared_slots[next_random(&x) % SLOTS], b);
        if (other && !is_signed(other))
            r->ok = false;
        if (other)
            tni_block_free(other);
        if (i % 1000 == 999)
            tn_empty_cache(r->device->id);
    }
    return NULL;
}

static void test_no_two_live_blocks_overlap(void **state) {
    tni_device *d = open_fake();
    racer racers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        racers[i] = (racer){.device = d,
                            .stream = &d->default_stream,
                            .seed = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(i + 1)};
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (int i = 0; i < 5; i++) {
        tn_string_free(tn_memory_snapshot(d->id));
        stats_of(d);
        usleep(1000);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(racers[i].ok);
    }
    check_pools(d);
    for (int i = 0; i < SLOTS; i++) {
        tni_block *b = atomic_exchange(&shared_slots[i], NULL);
        if (b) {
            assert_true(is_signed(b));
            tni_block_free(b);
        }
    }
    tn_memory_stats s = stats_of(d);
    assert_int_equal(s.allocated_bytes, 0);
    assert_int_equal(s.requested_bytes, 0);
    assert_int_equal(s.n_allocations, THREADS * ROUNDS);
    assert_int_equal(s.n_allocations, s.n_frees);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_int_equal(fake_count().live_bytes, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_empty_cache_reaches_other_threads),
        TEST(test_magazines_are_bounded_and_end_with_their_thread),
        TEST(test_no_two_live_blocks_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
