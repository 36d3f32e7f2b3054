/* The caching allocator: what fits where, and what happens when nothing fits. */
#include "tests/core/allocator_test.h"

/* ---- sizes ------------------------------------------------------------------------------- */

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
    assert_error(TN_ERR_OUT_OF_MEMORY, "fake:0", NULL);
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
    check_pools(d);
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
    assert_error(TN_ERR_OUT_OF_MEMORY, "64.00 KiB", "largest allocation", NULL);
    tni_block_free(b);
    tni_block_free(whole);
}

/* ---- split, join, best fit --------------------------------------------------------------- */

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
        check_pools(d);
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

/* ---- full -------------------------------------------------------------------------------- */

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
    assert_error(TN_ERR_OUT_OF_MEMORY, "fake:0: no memory for 100.00 MiB (100.00 MiB rounded)",
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
    assert_error(TN_ERR_OUT_OF_MEMORY, "limit 64.00 MiB", "limit would be passed", NULL);
    assert_null(tni_block_alloc(d, &d->default_stream, 80 * MIB));
    assert_error(TN_ERR_OUT_OF_MEMORY, "tn_memory_set_limit", NULL);
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
    assert_error(TN_ERR_OUT_OF_MEMORY, "limit 16.00 MiB", NULL);
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

/* ---- never a leak ------------------------------------------------------------------------ */

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
                    assert_int_equal(tn_error_status(), TN_ERR_OUT_OF_MEMORY);
                tn_error_clear();
                if (blocks[i] && i % 2)
                    tni_block_record_stream(blocks[i], i % 3 ? s : &d->default_stream);
                tn_error_clear();
            }
            check_pools(d);
            for (int i = 0; i < 8; i++)
                if (blocks[i])
                    tni_block_free(blocks[i]);
            assert_int_equal(tn_error_status(), TN_OK);
            tni_alloc_fail_at(0);
            fake_fail_at(0);
            check_pools(d);
            assert_int_equal(tn_empty_cache(d->id), TN_OK);
            assert_int_equal(fake_count().live_bytes, 0);
            assert_int_equal(stats_of(d).allocated_bytes, 0);
        }
    }
    tn_stream_drop(s);
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
        TEST(test_a_full_device_gets_its_cache_back_and_is_asked_again),
        TEST(test_parked_blocks_are_waited_for_before_giving_up),
        TEST(test_when_segments_do_not_fit_blocks_may),
        TEST(test_out_of_memory_tells_the_figures),
        TEST(test_a_limit_is_kept),
        TEST(test_the_environment_sets_a_limit),
        TEST(test_garbage_is_collected_oldest_first),
        TEST(test_every_failure_of_device_and_host_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
