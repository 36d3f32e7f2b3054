/* The caching allocator: its figures, its snapshot, its settings. */
#include "tests/core/allocator_test.h"

/* ---- figures ----------------------------------------------------------------------------- */

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
    assert_int_equal(tn_memory_stats_get(d->id, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "struct_size", NULL);
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
            assert_error(TN_ERR_OUT_OF_MEMORY, "snapshot", NULL);
        tn_string_free(text);
    }
    tni_block_free(a);
    tni_block_free(b);
    tni_block_free(c);
    tn_stream_drop(s);
}

/* ---- settings ---------------------------------------------------------------------------- */

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

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_statistics_add_up),
        TEST(test_statistics_are_cut_to_the_callers_size),
        TEST(test_the_snapshot_is_json),
        TEST(test_settings_that_are_none_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
