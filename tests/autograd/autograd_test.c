/* See autograd_test.h. */
#include "tests/autograd/autograd_test.h"
#include "base/log.h"

static int64_t outstanding_before;

int fresh(void **state) {
    /* Whatever a test that failed left. */
    tn_error_clear();
    tn_set_inference_mode(false);
    tn_set_grad_enabled(true);
    tn_scope_close(0);
    tni_log_on(TN_LOG_ERROR, "test"); /* reads its settings once, and keeps them */
    outstanding_before = tni_alloc_outstanding();
    return 0;
}

int leave_clean(void **state) {
    tni_alloc_fail_at(0);
    tn_scope_close(0);
    assert_string_equal(tn_error_message(), "");
    assert_true(tn_grad_enabled());
    assert_false(tn_inference_mode());
    assert_int_equal(tni_tensors_alive(), 0);
    assert_int_equal(tn_shutdown(), TN_OK);
    assert_int_equal(tni_alloc_outstanding(), outstanding_before);
    return 0;
}

tn_device cpu(void) {
    return tn_device_parse("cpu:0");
}

tn_tensor *values(tn_ints shape, const double *data) {
    return tn_from_data(data, shape, TN_F64, cpu());
}

tn_tensor *leaf(tn_ints shape, const double *data) {
    return tn_set_requires_grad(values(shape, data), true);
}

void check_ok(tn_status status, const char *file, int line) {
    if (status != TN_OK) {
        print_error("%s: %s\n", tn_status_name(status), tn_error_message());
        _fail(file, line);
    }
}

double item(tn_tensor *t) {
    double value = NAN;
    assert_ok(tn_item(t, &value));
    return value;
}

void check_values(tn_tensor *t, const double *expected, uint64_t n, const char *file, int line) {
    if (!t || (uint64_t)tn_numel(t) != n) {
        print_error("%lld elements instead of %llu; %s\n", t ? (long long)tn_numel(t) : -1,
                    (unsigned long long)n, tn_error_message());
        _fail(file, line);
        return;
    }
    TN_SCOPE;
    TN_NO_GRAD;
    double *data = calloc(n ? n : 1, sizeof(double));
    tn_tensor *wide = tn_to_dtype(t, TN_F64);
    check_ok(tn_to_host(wide, data, n * sizeof(double)), file, line);
    for (uint64_t i = 0; i < n; i++) {
        if (!(fabs(data[i] - expected[i]) <= 1e-9 * (1 + fabs(expected[i])))) {
            print_error("element %llu is %.17g, expected %.17g\n", (unsigned long long)i, data[i],
                        expected[i]);
            _fail(file, line);
        }
    }
    free(data);
}

void check_error(const char *file, int line, tn_status status, ...) {
    const char *message = tn_error_message();
    if (tn_error_status() != status) {
        print_error("status %s instead of %s: %s\n", tn_status_name(tn_error_status()),
                    tn_status_name(status), message);
        _fail(file, line);
    }
    va_list texts;
    va_start(texts, status);
    for (const char *text; (text = va_arg(texts, const char *));) {
        if (!strstr(message, text)) {
            print_error("'%s' is not in: %s\n", text, message);
            _fail(file, line);
        }
    }
    va_end(texts);
    tn_error_clear();
}
