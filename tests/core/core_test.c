/* Starting fresh, and checking that nothing is left. */
#include "tests/core/core_test.h"

static int64_t outstanding_before;

int fresh(void **state) {
    fake_reset();
    unsetenv("TENON_DEVICE");
    unsetenv("TENON_ALLOC_CONF");
    unsetenv("TENON_NUM_THREADS");
    unsetenv("TENON_SCOPE_DEBUG");
    tn_error_clear();
    tni_log_on(TN_LOG_ERROR, "test"); /* keeps a copy of TENON_LOG from then on */
    outstanding_before = tni_alloc_outstanding();
    return 0;
}

int leave_clean(void **state) {
    fake_hold(false);
    tni_alloc_fail_at(0);
    fake_fail_at(0);
    tn_error_clear();
    assert_int_equal(tn_shutdown(), TN_OK);
    fake_counts c = fake_count();
    assert_int_equal(c.n_allocs, c.n_frees);
    assert_int_equal(c.n_bad_frees, 0);
    assert_int_equal(c.live_bytes, 0);
    assert_int_equal(c.live_pinned_bytes, 0);
    assert_int_equal(c.n_streams, 0);
    assert_int_equal(c.n_events, 0);
    assert_int_equal(c.n_devices, 0);
    assert_int_equal(tni_alloc_outstanding(), outstanding_before);
    return 0;
}

tni_device *open_fake(void) {
    assert_int_equal(tn_plugin_register(fake_query), TN_OK);
    tn_device id = tn_device_parse("fake:0");
    assert_string_equal(tn_error_message(), "");
    tni_device *d = tni_device_get(id);
    assert_non_null(d);
    return d;
}

tn_memory_stats stats_of(const tni_device *device) {
    tn_memory_stats s = {.struct_size = sizeof s};
    assert_int_equal(tn_memory_stats_get(device->id, &s), TN_OK);
    return s;
}

void assert_error(tn_status status, ...) {
    assert_string_equal(tn_status_name(tn_error_status()), tn_status_name(status));
    const char *message = tn_error_message();
    va_list texts;
    va_start(texts, status);
    for (const char *text; (text = va_arg(texts, const char *));)
        if (!strstr(message, text))
            fail_msg("'%s' is not in: %s", text, message);
    va_end(texts);
    tn_error_clear();
}
