/* The caching allocator: what fits where, what is reused when, what is given back. */
#include "core_test.h"
#include "core/memory/pool.h"

#include <pthread.h>
#include <stdatomic.h>

static const uint64_t MIB = 1 << 20;

static tni_block *take(tni_device *d, uint64_t bytes) {
    tni_block *b = tni_block_alloc(d, &d->default_stream, bytes);
    if (!b)
        fail_msg("%s", tn_error_message());
    return b;
}

static tni_device *open_with(const char *conf) {
    setenv("TENON_ALLOC_CONF", conf, 1);
    return open_fake();
}

static uint64_t n_segments(const tni_device *d) {
    uint64_t n = 0;
    for (tni_segment *s = d->allocator->segments; s; s = s->next)
        n++;
    return n;
}

/* The invariants of the pools: blocks cover their segments without gap, no two free ones touch. */
static void check(tni_device *d) {
    tni_allocator *a = d->allocator;
    uint64_t reserved = 0;
    tni_allocator_lock(a);
    for (tni_segment *s = a->segments; s; s = s->next) {
        uint64_t at = 0;
        const tni_block *previous = NULL;
        for (tni_block *b = s->first; b; previous = b, b = b->next) {
            assert_int_equal(b->offset, at);
            assert_ptr_equal(b->previous, previous);
            assert_ptr_equal(b->segment, s);
            assert_int_equal(b->offset % d->alignment, 0);
            assert_false(previous && previous->state == TNI_BLOCK_FREE &&
                         b->state == TNI_BLOCK_FREE);
            at += b->bytes;
        }
        assert_int_equal(at, s->bytes);
        reserved += s->bytes;
    }
    assert_int_equal(reserved, a->reserved_bytes);
    tni_allocator_unlock(a);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static void test_segments_have_the_sizes_of_their_class(void **state) {
    tni_device *d = open_fake();
    const tni_alloc_conf *c = &d->allocator->conf;
    const struct {
        uint64_t bytes, segment;
    } cases[] = {
        {1, c->small_segment},
        {c->small_max, c->small_segment},
        {c->small_max + 1, c->large_segment},
        {c->large_min - 512, c->large_segment},
        {c->large_min, (c->large_min + c->large_round - 1) / c->large_round * c->large_round},
        {3 * c->large_round + c->large_min + 1,
         (4 * c->large_round + c->large_min + c->large_round - 1) / c->large_round *
             c->large_round},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_block *b = take(d, cases[i].bytes);
        assert_int_equal(b->segment->bytes, cases[i].segment);
        assert_true(b->bytes >= cases[i].bytes && b->bytes % 512 == 0);
        assert_int_equal(b->requested, cases[i].bytes);
        tni_block_free(b);
        tn_empty_cache(d->id);
        assert_int_equal(fake_count().live_bytes, 0);
    }
    assert_null(tni_block_alloc(d, &d->default_stream, UINT64_MAX));
    assert_error(TN_OUT_OF_MEMORY, "fake:0", NULL);
}

static void test_blocks_are_aligned(void **state) {
    fake.alignment = 4096;
    tni_device *d = open_fake();
    tni_block *blocks[20];
    for (int i = 0; i < 20; i++) {
        blocks[i] = take(d, (uint64_t)i * 777 + 1);
        assert_int_equal(blocks[i]->offset % 4096, 0);
        assert_int_equal((uintptr_t)blocks[i]->host % 4096, 0);
        assert_ptr_equal(blocks[i]->host, (char *)blocks[i]->segment->host + blocks[i]->offset);
    }
    check(d);
    for (int i = 0; i < 20; i++)
        tni_block_free(blocks[i]);
}

static void test_the_largest_allocation_is_respected(void **state) {
    fake.max_allocation = 64 * 1024;
    tni_device *d = open_fake();
    tni_block *b = take(d, 10);
    assert_true(b->segment->bytes <= 64 * 1024);
    tni_block *whole = take(d, 64 * 1024);
    assert_int_equal(whole->segment->bytes, 64 * 1024);
    assert_null(tni_block_alloc(d, &d->default_stream, 64 * 1024 + 1));
    assert_error(TN_OUT_OF_MEMORY, "64.00 KiB", "largest allocation", NULL);
    tni_block_free(b);
    tni_block_free(whole);
}

/* ---- split, join, best fit ------------------------------------------------------------------ */

static void test_blocks_split_and_join_to_one(void **state) {
    tni_device *d = open_with("magazines:off");
    enum { N = 16 };
    tni_block *blocks[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = take(d, 700);
        assert_int_equal(blocks[i]->bytes, 1024);
    }
    assert_int_equal(n_segments(d), 1);
    static const int order[N] = {3, 1, 2, 0, 15, 8, 10, 9, 4, 14, 5, 7, 6, 13, 11, 12};
    for (int i = 0; i < N; i++) {
        tni_block_free(blocks[order[i]]);
        check(d);
    }
    tni_segment *s = d->allocator->segments;
    assert_null(s->first->next);
    assert_int_equal(s->first->bytes, s->bytes);
    assert_int_equal(s->first->state, TNI_BLOCK_FREE);
}

static void test_the_best_fit_is_taken(void **state) {
    tni_device *d = open_with("magazines:off");
    /* holes of 3, 1 and 2 granules, kept apart by live blocks */
    tni_block *hole3 = take(d, 1536), *wall1 = take(d, 512), *hole1 = take(d, 512);
    tni_block *wall2 = take(d, 512), *hole2 = take(d, 1024), *wall3 = take(d, 512);
    uint64_t at2 = hole2->offset, at1 = hole1->offset;
    tni_block_free(hole3);
    tni_block_free(hole1);
    tni_block_free(hole2);
    tni_block *b = take(d, 1000);
    assert_int_equal(b->offset, at2);
    tni_block *c = take(d, 10);
    assert_int_equal(c->offset, at1);
    tni_block_free(b);
    tni_block_free(c);
    tni_block_free(wall1);
    tni_block_free(wall2);
    tni_block_free(wall3);
}

static void test_large_blocks_that_must_not_be_split_stay_whole(void **state) {
    tni_device *d = open_with("max_split_size_mb:32");
    tni_block *big = take(d, 64 * MIB);
    tni_block_free(big);
    tni_block *small = take(d, 40 * MIB); /* 24 MiB too much for the idle one of 64 */
    assert_int_equal(n_segments(d), 2);
    tni_block *near = take(d, 64 * MIB - d->allocator->conf.large_segment / 2);
    assert_ptr_equal(near, big);
    assert_int_equal(near->bytes, 64 * MIB);
    tni_block_free(small);
    tni_block_free(near);
}

static void test_large_sizes_are_rounded_to_divisions(void **state) {
    tni_device *d = open_with("roundup_power2_divisions:4");
    tni_block *b = take(d, 33 * MIB); /* 32 MiB / 4: the next is 40 MiB */
    assert_int_equal(b->bytes, 40 * MIB);
    tni_block_free(b);
}

/* ---- reuse, in the order of streams --------------------------------------------------------- */

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
        assert_ptr_equal(other->stream, s);
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
    assert_int_equal(tni_block_record_stream(b, s), TN_OUT_OF_MEMORY);
    assert_error(TN_OUT_OF_MEMORY, "another stream", NULL);
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
        d->memory->read(d->handle, s->handle, host, result->memory, result->offset, 4 * MIB);
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
    fake_stream_error(s->handle, TN_INTERNAL, "of the fill");
    tni_block_free(b);
    assert_true(s->handle && fake_count().live_bytes > 0);
    fake_fail_at(1); /* no event: the work cannot be waited for, so the memory stays */
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_true(fake_count().live_bytes > 0);
    assert_int_equal(tn_stream_query(s), TN_NOT_READY);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_int_equal(fake_count().live_bytes, 0);
    assert_int_equal(tn_stream_query(s), TN_INTERNAL); /* and its error is still to be had */
    assert_error(TN_INTERNAL, "of the fill", NULL);
    tn_stream_drop(s);
}

/* ---- streams that go ------------------------------------------------------------------------ */

static void test_a_dropped_streams_memory_is_used_again(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    for (int i = 0; i < 20; i++) {
        tn_stream *s = tn_stream_create(d->id, 0);
        tni_block *b = tni_block_alloc(d, s, 3 * MIB), *small = tni_block_alloc(d, s, 10);
        tn_stream_drop(s);
        assert_ptr_equal(b->stream, s); /* alive as long as its block */
        assert_int_equal(b->stream->device->ordinal, d->ordinal);
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

/* ---- full ----------------------------------------------------------------------------------- */

static void test_a_full_device_gets_its_cache_back_and_is_asked_again(void **state) {
    fake.memory_bytes = 64 * MIB;
    tni_device *d = open_fake();
    tni_block *b = take(d, 40 * MIB);
    tni_block_free(b);
    tni_block_free(take(d, 100));
    b = take(d, 50 * MIB);
    assert_int_equal(stats_of(d).n_retries, 1);
    assert_int_equal(stats_of(d).n_out_of_memory, 0);
    tni_block_free(b);
}

static void test_parked_blocks_are_waited_for_before_giving_up(void **state) {
    fake.async = true;
    fake.memory_bytes = 64 * MIB;
    tni_device *d = open_fake();
    tn_stream *s = tn_stream_create(d->id, 0);
    fake_hold(true);
    tni_block *b = take(d, 40 * MIB);
    tni_block_record_stream(b, s);
    tni_block_free(b);
    b = take(d, 50 * MIB);
    tni_block_free(b);
    tn_stream_drop(s);
}

static void test_when_segments_do_not_fit_blocks_may(void **state) {
    fake.memory_bytes = 3 * MIB;
    tni_device *d = open_fake();
    tni_block *b = take(d, 2 * MIB); /* a segment would be 20 MiB */
    assert_non_null(b);
    tni_block_free(b);
}

static void test_out_of_memory_tells_the_figures(void **state) {
    fake.memory_bytes = 32 * MIB;
    tni_device *d = open_fake();
    tni_block *b = take(d, 16 * MIB);
    assert_null(tni_block_alloc(d, &d->default_stream, 100 * MIB - 1));
    assert_error(TN_OUT_OF_MEMORY, "fake:0: no memory for 100.00 MiB (100.00 MiB rounded)",
                 "16.00 MiB allocated", "16.00 MiB held from the device",
                 "16.00 MiB of 32.00 MiB free on the device",
                 "scopes of this thread hold 0 tensors", "the fake device is full", NULL);
    assert_int_equal(stats_of(d).n_out_of_memory, 1);
    tni_block_free(b);
}

static void test_a_limit_is_kept(void **state) {
    tni_device *d = open_fake();
    assert_int_equal(tn_memory_set_limit(d->id, 64 * MIB), TN_OK);
    tni_block *a = take(d, 40 * MIB);
    assert_null(tni_block_alloc(d, &d->default_stream, 40 * MIB));
    assert_error(TN_OUT_OF_MEMORY, "limit 64.00 MiB", "limit would be passed", NULL);
    assert_null(tni_block_alloc(d, &d->default_stream, 80 * MIB));
    assert_error(TN_OUT_OF_MEMORY, "tn_memory_set_limit", NULL);
    assert_int_equal(stats_of(d).limit_bytes, 64 * MIB);
    assert_true(stats_of(d).reserved_bytes <= 64 * MIB);
    tni_block_free(a);
    assert_int_equal(tn_memory_set_limit(d->id, MIB), TN_OK); /* lets go of the cache */
    assert_int_equal(stats_of(d).reserved_bytes, 0);
    assert_int_equal(tn_memory_set_limit(d->id, 0), TN_OK);
    tni_block_free(take(d, 80 * MIB));
}

static void test_the_environment_sets_a_limit(void **state) {
    tni_device *d = open_with("limit_mb:16");
    assert_int_equal(stats_of(d).limit_bytes, 16 * MIB);
    assert_null(tni_block_alloc(d, &d->default_stream, 17 * MIB));
    assert_error(TN_OUT_OF_MEMORY, "limit 16.00 MiB", NULL);
}

static void test_garbage_is_collected_oldest_first(void **state) {
    fake.memory_bytes = 100 * MIB;
    tni_device *d = open_with("garbage_collection_threshold:0.5");
    tni_block *a = take(d, 20 * MIB), *b = take(d, 22 * MIB);
    tni_block_free(a);
    tni_block_free(b);
    tni_block *c = take(d, 24 * MIB); /* 66 MiB would be more than half of 100 */
    assert_int_equal(n_segments(d), 2);
    for (tni_segment *s = d->allocator->segments; s; s = s->next)
        assert_int_not_equal(s->bytes, 20 * MIB);
    assert_int_equal(stats_of(d).n_retries, 0);
    tni_block_free(c);
}

/* ---- figures -------------------------------------------------------------------------------- */

static void test_statistics_add_up(void **state) {
    tni_device *d = open_fake();
    tni_block *a = take(d, 1000), *b = take(d, 5 * MIB);
    tn_memory_stats s = stats_of(d);
    assert_int_equal(s.requested_bytes, 1000 + 5 * MIB);
    assert_int_equal(s.allocated_bytes, a->bytes + b->bytes);
    assert_int_equal(s.reserved_bytes, a->segment->bytes + b->segment->bytes);
    assert_int_equal(s.n_allocations, 2);
    assert_int_equal(s.n_device_allocs, 2);
    tni_block_free(a);
    tni_block_free(b);
    for (int i = 0; i < 10; i++)
        tni_block_free(take(d, 900));
    s = stats_of(d);
    assert_int_equal(s.allocated_bytes, 0);
    assert_int_equal(s.requested_bytes, 0);
    assert_int_equal(s.active_bytes, 0);
    assert_int_equal(s.n_allocations, 12);
    assert_int_equal(s.n_frees, 12);
    assert_int_equal(s.n_device_allocs, 2);
    assert_true(s.allocated_peak >= 5 * MIB + 1024);
    assert_int_equal(s.reserved_peak, s.reserved_bytes);
    assert_int_equal(tn_memory_reset_peaks(d->id), TN_OK);
    assert_int_equal(stats_of(d).allocated_peak, 0);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    s = stats_of(d);
    assert_int_equal(s.reserved_bytes, 0);
    assert_int_equal(s.n_device_frees, 2);
    assert_true(s.reserved_peak > 0);
}

static void test_statistics_are_cut_to_the_callers_size(void **state) {
    tni_device *d = open_fake();
    tni_block *b = take(d, 512);
    struct {
        uint64_t struct_size, allocated, guard;
    } mine = {16, 0, 77};
    assert_int_equal(tn_memory_stats_get(d->id, (tn_memory_stats *)&mine), TN_OK);
    assert_int_equal(mine.struct_size, 16);
    assert_int_equal(mine.allocated, 512);
    assert_int_equal(mine.guard, 77);
    assert_int_equal(tn_memory_stats_get(d->id, NULL), TN_INVALID_ARGUMENT);
    assert_error(TN_INVALID_ARGUMENT, "struct_size", NULL);
    tni_block_free(b);
}

static void test_the_snapshot_is_json(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    tn_stream *s = tn_stream_create(d->id, 0);
    fake_hold(true);
    tni_block *a = take(d, 1000), *b = take(d, 3 * MIB), *c = tni_block_alloc(d, s, 10);
    tni_block *parked = take(d, 2 * MIB);
    tni_block_record_stream(parked, s);
    tni_block_free(parked);
    char *text = tn_memory_snapshot(d->id);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"device\": \"fake:0\""));
    assert_non_null(strstr(text, "\"state\": \"live\""));
    assert_non_null(strstr(text, "\"state\": \"free\""));
    assert_non_null(strstr(text, "\"state\": \"waiting\""));
    assert_non_null(strstr(text, "\"stream\": 1"));
    FILE *python = popen(PYTHON " -m json.tool >/dev/null", "w");
    fputs(text, python);
    assert_int_equal(pclose(python), 0);
    tn_string_free(text);
    for (uint64_t n = 1; n < 3; n++) {
        tni_alloc_fail_at(n);
        text = tn_memory_snapshot(d->id);
        tni_alloc_fail_at(0);
        if (!text)
            assert_error(TN_OUT_OF_MEMORY, "snapshot", NULL);
        tn_string_free(text);
    }
    tni_block_free(a);
    tni_block_free(b);
    tni_block_free(c);
    tn_stream_drop(s);
}

/* ---- settings ------------------------------------------------------------------------------- */

static char logged[2048];

static void keep_line(void *user, int32_t level, const char *subsystem, const char *line) {
    strncat(logged, line, sizeof logged - strlen(logged) - 1);
}

static void test_settings_that_are_none_are_told(void **state) {
    tni_alloc_conf conf, plain;
    logged[0] = '\0';
    tn_log_set(TN_LOG_WARN, keep_line, NULL);
    tni_alloc_conf_parse("", &plain);
    assert_string_equal(logged, "");
    tni_alloc_conf_parse("max_split_size_mb:64,,garbage_collection_threshold:0.75,limit_mb:3,"
                         "roundup_power2_divisions:8,small_segment_kb:64,large_segment_kb:128",
                         &conf);
    assert_string_equal(logged, "");
    assert_int_equal(conf.max_split, 64 * MIB);
    assert_true(conf.gc_threshold == 0.75);
    assert_int_equal(conf.limit, 3 * MIB);
    assert_int_equal(conf.power2_divisions, 8);
    assert_int_equal(conf.small_segment, 64 * 1024);
    assert_true(conf.small_max <= 64 * 1024);
    tni_alloc_conf_parse("expandable_segments:true", &conf);
    assert_non_null(strstr(logged, "'expandable_segments' is no setting"));
    assert_non_null(strstr(logged, "max_split_size_mb, "));
    static const char *const bad[] = {"limit_mb:x",
                                      "limit_mb",
                                      "limit_mb:-1",
                                      "magazines:maybe",
                                      "roundup_power2_divisions:3",
                                      "garbage_collection_threshold:2",
                                      "small_segment_kb:99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        logged[0] = '\0';
        tni_alloc_conf_parse(bad[i], &conf);
        assert_non_null(strstr(logged, "it must be"));
        assert_int_equal(conf.limit, plain.limit);
        assert_int_equal(conf.magazines, plain.magazines);
        assert_int_equal(conf.power2_divisions, plain.power2_divisions);
        assert_int_equal(conf.small_segment, plain.small_segment);
        assert_true(conf.gc_threshold == plain.gc_threshold);
    }
    tn_log_set(-1, NULL, NULL);
}

/* ---- never a leak --------------------------------------------------------------------------- */

static void test_every_failure_of_device_and_host_leaves_nothing(void **state) {
    fake.async = true;
    tni_device *d = open_with("magazines:on");
    tn_stream *s = tn_stream_create(d->id, 0);
    for (int host = 0; host < 2; host++) {
        for (uint64_t n = 1; n < 40; n++) {
            if (host)
                tni_alloc_fail_at(n);
            else
                fake_fail_at(n);
            tni_block *blocks[8] = {0};
            static const uint64_t sizes[8] = {100,     100,      70000,   1 << 20,
                                              5 << 20, 12 << 20, 2 << 20, 600};
            for (int i = 0; i < 8; i++) {
                blocks[i] = tni_block_alloc(d, i % 3 ? &d->default_stream : s, sizes[i]);
                if (!blocks[i])
                    assert_int_equal(tn_error_status(), TN_OUT_OF_MEMORY);
                tn_error_clear();
                if (blocks[i] && i % 2)
                    tni_block_record_stream(blocks[i], i % 3 ? s : &d->default_stream);
                tn_error_clear();
            }
            check(d);
            for (int i = 0; i < 8; i++)
                if (blocks[i])
                    tni_block_free(blocks[i]);
            assert_int_equal(tn_error_status(), TN_OK);
            tni_alloc_fail_at(0);
            fake_fail_at(0);
            check(d);
            assert_int_equal(tn_empty_cache(d->id), TN_OK);
            assert_int_equal(fake_count().live_bytes, 0);
            assert_int_equal(stats_of(d).allocated_bytes, 0);
        }
    }
    tn_stream_drop(s);
}

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
    check(d);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_int_equal(fake_count().live_bytes, 0);
}

/* ---- many threads --------------------------------------------------------------------------- */

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
    check(d);
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

/* ---- pinned memory -------------------------------------------------------------------------- */

static void test_pinned_memory_is_reused_when_streams_have_passed(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    fake_hold(true);
    void *a = tn_pinned_alloc(d->id, 5000);
    assert_non_null(a);
    memset(a, 1, 5000);
    assert_int_equal(fake_count().live_pinned_bytes, 8192);
    tn_pinned_free(a);
    void *b = tn_pinned_alloc(d->id, 5000);
    assert_ptr_not_equal(a, b);
    fake_advance(d->default_stream.handle);
    void *c = tn_pinned_alloc(d->id, 8192);
    assert_ptr_equal(c, a);
    tn_pinned_free(b);
    tn_pinned_free(c);
    tn_pinned_free(NULL);
    tn_pinned_free(c);
    assert_error(TN_INVALID_ARGUMENT, "tn_pinned_free", NULL);
    assert_int_equal(tn_empty_cache(d->id), TN_OK);
    assert_int_equal(fake_count().live_pinned_bytes, 0);
}

static void test_pinned_memory_survives_failures(void **state) {
    fake.async = true;
    tni_device *d = open_fake();
    fake_fail_at(1); /* the first answer is taken for a full device */
    void *a = tn_pinned_alloc(d->id, 100);
    assert_non_null(a);
    tni_alloc_fail_at(1);
    assert_null(tn_pinned_alloc(d->id, 100));
    assert_error(TN_OUT_OF_MEMORY, "pinned", NULL);
    tni_alloc_fail_at(1); /* no memory for the mark */
    tn_pinned_free(a);
    tni_alloc_fail_at(0);
    assert_int_equal(tn_error_status(), TN_OK);
    assert_ptr_equal(tn_pinned_alloc(d->id, 100), a);
    fake_fail_at(1);
    tn_pinned_free(a);
    fake_fail_at(0);
    assert_null(tn_pinned_alloc(d->id, UINT64_MAX));
    assert_error(TN_OUT_OF_MEMORY, "fake:0", NULL);
    assert_non_null(tn_pinned_alloc(d->id, 0)); /* shutdown takes back what was not freed */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_segments_have_the_sizes_of_their_class),
        TEST(test_blocks_are_aligned),
        TEST(test_the_largest_allocation_is_respected),
        TEST(test_blocks_split_and_join_to_one),
        TEST(test_the_best_fit_is_taken),
        TEST(test_large_blocks_that_must_not_be_split_stay_whole),
        TEST(test_large_sizes_are_rounded_to_divisions),
        TEST(test_a_freed_block_is_reused_at_once_on_its_stream),
        TEST(test_synchronous_streams_share_their_blocks),
        TEST(test_a_recorded_block_waits_for_the_other_stream),
        TEST(test_a_small_recorded_block_skips_the_magazine),
        TEST(test_parked_blocks_survive_failing_events),
        TEST(test_a_block_may_wait_for_another_device),
        TEST(test_the_simulated_chip_keeps_recorded_blocks),
        TEST(test_memory_is_given_back_after_the_work_on_it),
        TEST(test_a_dropped_streams_memory_is_used_again),
        TEST(test_a_full_device_gets_its_cache_back_and_is_asked_again),
        TEST(test_parked_blocks_are_waited_for_before_giving_up),
        TEST(test_when_segments_do_not_fit_blocks_may),
        TEST(test_out_of_memory_tells_the_figures),
        TEST(test_a_limit_is_kept),
        TEST(test_the_environment_sets_a_limit),
        TEST(test_garbage_is_collected_oldest_first),
        TEST(test_statistics_add_up),
        TEST(test_statistics_are_cut_to_the_callers_size),
        TEST(test_the_snapshot_is_json),
        TEST(test_settings_that_are_none_are_told),
        TEST(test_every_failure_of_device_and_host_leaves_nothing),
        TEST(test_empty_cache_reaches_other_threads),
        TEST(test_magazines_are_bounded_and_end_with_their_thread),
        TEST(test_no_two_live_blocks_overlap),
        TEST(test_pinned_memory_is_reused_when_streams_have_passed),
        TEST(test_pinned_memory_survives_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
