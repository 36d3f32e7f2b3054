/* The caching allocator: memory is used again in the order of streams, and outlives them. */
#include "tests/core/allocator_test.h"

/* ---- reuse, in the order of streams ------------------------------------------------------ */

static void test_a_freed_block_is_reused_at_once_on_its_stream(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    tn_stream *s = tn_stream_create(d->id, 0);
    fake_hold(true);
    for (uint64_t bytes = 100; bytes < 4 * MIB; bytes *= 8) {
        tni_block *b = take(d, bytes);
        tn_memory memory = b->memory;
        uint64_t offset = b->offset;
        tni_block_free(b);
        b = take(d, bytes);
        assert_int_equal(b->memory, memory);
        assert_int_equal(b->offset, offset);
        tni_block *other = tni_block_alloc(d, s, bytes);
        assert_ptr_equal(tni_block_stream(other), s);
        assert_true(other->memory != memory);
        tni_block_free(b);
        tni_block *third = tni_block_alloc(d, s, bytes);
        assert_true(third->memory != memory);
        tni_block_free(third);
        tni_block_free(other);
    }
    tn_stream_drop(s);
}

static void test_synchronous_streams_share_their_blocks(void **state) {
    tni_device *d = open_fake();
    tn_stream *s = tn_stream_create(d->id, 0);
    for (uint64_t bytes = 100; bytes < 4 * MIB; bytes *= 8) {
        tni_block *b = take(d, bytes);
        assert_int_equal(tni_block_record_stream(b, s), TN_OK);
        uint64_t offset = b->offset;
        tn_memory memory = b->memory;
        tni_block_free(b);
        b = tni_block_alloc(d, s, bytes);
        assert_true(b->offset == offset && b->memory == memory);
        tni_block_free(b);
    }
    assert_true(n_segments(d) <= 4); /* one of each size */
    tn_stream_drop(s);
}

static void test_a_recorded_block_waits_for_the_other_stream(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    tn_stream *s = tn_stream_create(d->id, 0), *t = tn_stream_create(d->id, 0);
    fake_hold(true);
    tni_block *b = take(d, 2 * MIB);
    uint64_t bytes = b->bytes;
    tn_memory memory = b->memory;
    assert_int_equal(tni_block_record_stream(b, s), TN_OK);
    assert_int_equal(tni_block_record_stream(b, s), TN_OK);
    assert_int_equal(tni_block_record_stream(b, t), TN_OK);
    assert_int_equal(tni_block_record_stream(b, &d->default_stream), TN_OK);
    tni_block_free(b);
    assert_int_equal(stats_of(d).allocated_bytes, 0);
    assert_int_equal(stats_of(d).active_bytes, bytes);
    fake_advance(s->handle);
    tni_block *other = take(d, 2 * MIB);
    assert_true(other->memory != memory || other->offset != 0);
    fake_advance(t->handle);
    tni_block *again = take(d, 2 * MIB);
    assert_int_equal(stats_of(d).active_bytes, stats_of(d).allocated_bytes);
    assert_true(again->memory == memory && again->offset == 0);
    tni_block_free(other);
    tni_block_free(again);
    tn_stream_drop(s);
    tn_stream_drop(t);
}

static void test_a_small_recorded_block_skips_the_magazine(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    tn_stream *s = tn_stream_create(d->id, 0);
    tni_block_free(take(d, 100)); /* the thread has a cache now */
    fake_hold(true);
    tni_block *b = take(d, 100);
    tn_memory memory = b->memory;
    uint64_t offset = b->offset;
    assert_int_equal(tni_block_record_stream(b, s), TN_OK);
    tni_block_free(b);
    tni_block *other = take(d, 100);
    assert_true(other->memory != memory || other->offset != offset);
    tni_block_free(other);
    tn_stream_drop(s);
}

static void test_parked_blocks_survive_failing_events(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    tn_stream *s = tn_stream_create(d->id, 0);
    for (uint64_t n = 1; n <= 2; n++) { /* no event; an event that cannot be recorded */
        fake_hold(true);
        tni_block *b = take(d, 2 * MIB);
        tn_memory memory = b->memory;
        uint64_t offset = b->offset;
        assert_int_equal(tni_block_record_stream(b, s), TN_OK);
        d->memory->fill(d->handle, s->handle, memory, offset, 0, 1);
        fake_fail_at(n);
        tni_block_free(b);
        fake_fail_at(0);
        tni_block *other = take(d, 2 * MIB);
        assert_true(other->memory != memory || other->offset != offset);
        fake_advance(s->handle);
        tni_block *again = take(d, 2 * MIB);
        assert_true(again->memory == memory && again->offset == offset);
        tni_block_free(other);
        tni_block_free(again);
        tn_empty_cache(d->id);
    }
    tni_block *b = take(d, 512);
    tni_alloc_fail_at(1);
    assert_int_equal(tni_block_record_stream(b, s), TN_ERR_OUT_OF_MEMORY);
    assert_error(TN_ERR_OUT_OF_MEMORY, "another stream", NULL);
    tni_block_free(b);
    tn_stream_drop(s);
}

static void test_a_block_may_wait_for_another_device(void **state) {
    fake.async = true;
    fake.n_devices = 2;
    tni_device *d = open_fake(), *other = tni_device_get(tn_device_parse("fake:1"));
    fake_hold(true);
    tni_block *b = take(d, 2 * MIB);
    assert_int_equal(tni_block_record_stream(b, &other->default_stream), TN_OK);
    tni_block_free(b);
    assert_true(stats_of(d).active_bytes > 0);
    /* Shutdown comes to rest although the stream never passed by itself. */
}

static void test_the_simulated_chip_keeps_recorded_blocks(void **state) {
    tni_device *d = tni_device_get(tn_device_parse("sim:0"));
    tn_stream *s = tn_stream_create(d->id, 0);
    uint8_t *host = malloc(4 * MIB);
    for (int i = 0; i < 50; i++) {
        tni_block *b = take(d, 4 * MIB), *c;
        uint8_t value = (uint8_t)(i + 1);
        assert_int_equal(tni_stream_wait_stream(s, &d->default_stream), TN_OK);
        d->memory->fill(d->handle, s->handle, b->memory, b->offset, value, b->bytes);
        tni_block *result = tni_block_alloc(d, s, 4 * MIB);
        d->memory->copy(d->handle, s->handle, result->memory, result->offset, b->memory, b->offset,
                        4 * MIB);
        assert_int_equal(tni_block_record_stream(b, s), TN_OK);
        tni_block_free(b);
        /* If this were b's memory, its zeroes would race with the copy. */
        c = take(d, 4 * MIB);
        d->memory->fill(d->handle, d->default_stream.handle, c->memory, c->offset, 0, c->bytes);
        d->memory->copy_to_host(d->handle, s->handle, host, 0, result->memory, result->offset,
                                4 * MIB);
        for (uint64_t k = 0; k < 4 * MIB; k += 4096)
            assert_int_equal(host[k], value);
        tni_block_free(c);
        tni_block_free(result);
    }
    free(host);
    tn_stream_drop(s);
}

static void test_memory_is_given_back_after_the_work_on_it(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    tn_stream *s = tn_stream_create(d->id, 0);
    fake_hold(true);
    tni_block *b = tni_block_alloc(d, s, 2 * MIB);
    d->memory->fill(d->handle, s->handle, b->memory, b->offset, 1, 100);
    fake_stream_error(s->handle, TN_ERR_INTERNAL, "of the fill");
    tni_block_free(b);
    assert_true(s->handle && fake_count().live_bytes > 0);
    fake_fail_at(1); /* no event: the work cannot be waited for, so the memory stays */
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_true(fake_count().live_bytes > 0);
    assert_int_equal(tn_stream_query(s), TN_NOT_READY);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_int_equal(fake_count().live_bytes, 0);
    assert_int_equal(tn_stream_query(s), TN_ERR_INTERNAL); /* and its error is still to be had */
    assert_error(TN_ERR_INTERNAL, "of the fill", NULL);
    tn_stream_drop(s);
}

/* ---- streams that go --------------------------------------------------------------------- */

static void test_a_dropped_streams_memory_is_used_again(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    for (int i = 0; i < 20; i++) {
        tn_stream *s = tn_stream_create(d->id, 0);
        tni_block *b = tni_block_alloc(d, s, 3 * MIB), *small = tni_block_alloc(d, s, 10);
        tn_stream_drop(s);
        assert_ptr_equal(tni_block_stream(b), s); /* alive as long as its block */
        assert_int_equal(s->device->ordinal, d->ordinal);
        tni_block_free(b);
        tni_block_free(small);
        tni_block *mine = take(d, 3 * MIB);
        tni_block_free(mine);
    }
    assert_true(n_segments(d) <= 6);
    assert_true(fake_count().n_streams <= 3);
    tn_empty_cache(d->id);
    assert_int_equal(fake_count().n_streams, 1);
    assert_int_equal(fake_count().live_bytes, 0);
}

/* Small results that outlive the streams which made them: they share segments, and once a stream
 * has handed over what it had, nobody asks for it again. */
static void test_what_outlives_dropped_streams_costs_nothing(void **state) {
    enum { N = 300 };
    fake.async = true;
    tni_device *d = open_fake();
    tni_block *kept[N], *more[N];
    for (int i = 0; i < N; i++) {
        tn_stream *s = tn_stream_create(d->id, 0);
        kept[i] = tni_block_alloc(d, s, 40);
        assert_non_null(kept[i]);
        tn_stream_drop(s);
    }
    check_pools(d);
    assert_true(n_segments(d) <= N / 10);
    assert_int_equal(fake_count().n_streams, 2);
    more[0] = take(d, 40);
    uint64_t n_waits = fake_count().n_waits;
    for (int i = 1; i < N; i++)
        more[i] = take(d, 40);
    assert_int_equal(fake_count().n_waits, n_waits);
    assert_true(n_segments(d) <= N / 10);
    assert_int_equal(fake_count().n_streams, 1);
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(tni_block_stream(kept[i]), &d->default_stream);
        tni_block_free(kept[i]);
        tni_block_free(more[i]);
    }
    check_pools(d);
    tn_empty_cache(d->id);
    assert_int_equal(fake_count().live_bytes, 0);
}

/* What is live when its stream goes is used again after the work that the stream had. */
static void test_an_adopted_block_waits_for_its_streams_work(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    tn_stream *s = tn_stream_create(d->id, 0);
    tni_block *b = tni_block_alloc(d, s, 40);
    tn_memory memory = b->memory;
    uint64_t offset = b->offset, n_waits = fake_count().n_waits;
    tn_stream_drop(s);
    tni_block *first = take(d, 40);
    assert_int_equal(fake_count().n_waits, n_waits + 1);
    assert_int_equal(first->memory, memory);
    assert_int_not_equal(first->offset, offset);
    tni_block_free(b);
    tni_block *second = take(d, 40);
    assert_true(second->memory == memory && second->offset == offset);
    tni_block_free(first);
    tni_block_free(second);
}

/* ---- log functions ----------------------------------------------------------------------- */

static tni_device *logged;
static tni_block *of_before;
static int n_lines;

static void use_memory_at_line(void *user, int32_t level, const char *subsystem, const char *line) {
    if (n_lines++ || strcmp(subsystem, "memory") != 0)
        return;
    assert_null(tni_block_alloc(logged, &logged->default_stream, 4 * MIB));
    assert_error(TN_ERR_STATE, "log function", "device memory is allocated", NULL);
    tn_memory_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(tn_memory_stats_get(logged->id, &stats), TN_ERR_STATE);
    assert_int_equal(tn_empty_cache(logged->id), TN_ERR_STATE);
    tn_error_clear();
    tni_block_free(of_before);
}

static void test_a_log_function_may_free_and_is_told_that_it_may_not_allocate(void **state) {
    logged = open_fake();
    of_before = take(logged, 4 * MIB);
    n_lines = 0;
    tn_log_set(TN_LOG_DEBUG, use_memory_at_line, NULL);
    tni_block *b = take(logged, 40 * MIB);
    tn_log_set(-1, NULL, NULL);
    assert_true(n_lines > 0);
    assert_int_equal(stats_of(logged).allocated_bytes, b->bytes);
    tni_block_free(b);
    check_pools(logged);
    assert_int_equal(tn_empty_cache(logged->id), TN_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_a_freed_block_is_reused_at_once_on_its_stream),
        TEST(test_synchronous_streams_share_their_blocks),
        TEST(test_a_recorded_block_waits_for_the_other_stream),
        TEST(test_a_small_recorded_block_skips_the_magazine),
        TEST(test_parked_blocks_survive_failing_events),
        TEST(test_a_block_may_wait_for_another_device),
        TEST(test_the_simulated_chip_keeps_recorded_blocks),
        TEST(test_memory_is_given_back_after_the_work_on_it),
        TEST(test_a_dropped_streams_memory_is_used_again),
        TEST(test_what_outlives_dropped_streams_costs_nothing),
        TEST(test_an_adopted_block_waits_for_its_streams_work),
        TEST(test_a_log_function_may_free_and_is_told_that_it_may_not_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
