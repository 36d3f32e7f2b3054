/* The profiler: what an event says, what becomes of it, and that it is gone when it is off. */
#include "core/profile/profile.h"
#include "tests/core/ops_test.h"

#include <pthread.h>

/* The events of one operator, copied. */
typedef struct found {
    const char *op;
    tn_profile_event last;
    char args[TNI_PROFILE_ARGS];
    int n, n_all;
} found;

static void note(const tn_profile_event *e, void *user) {
    found *f = user;
    f->n_all++;
    if (strcmp(e->op, f->op) != 0)
        return;
    f->n++;
    f->last = *e;
    strcpy(f->args, e->args);
}

static found find(const char *op) {
    found f = {.op = op};
    uint64_t lost = 99;
    assert_ok(tn_profile_events(note, &f, &lost));
    assert_int_equal(lost, 0);
    return f;
}

static bool on_cpu(void) {
    char name[64];
    return strcmp(tn_device_name(dev, name, sizeof name), "cpu:0") == 0;
}

static void an_event_says_what_ran(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3)), *y = counting(TN_F32, TN_SHAPE(3));
    assert_ok(tn_profile_start());
    assert_true(tn_profile_is_on());
    assert_non_null(tn_add(x, y));
    assert_ok(tn_profile_stop());
    assert_non_null(tn_mul(x, y)); /* after the end */

    found f = find("add.Tensor");
    char name[64];
    assert_int_equal(f.n, 1);
    assert_int_equal(f.n_all, 1);
    assert_string_equal(f.args, "f32[2, 3], f32[3]");
    assert_string_equal(f.last.device, tn_device_name(dev, name, sizeof name));
    assert_int_equal(f.last.how, TN_PROFILE_KERNEL);
    assert_string_equal(f.last.kernel, on_cpu() ? "org.tenon.cpu" : "org.tenon.sim");
    assert_int_equal(f.last.status, TN_OK);
    assert_int_equal(f.last.depth, 0);
    assert_true(f.last.bytes >= 24);
    assert_true(f.last.start_ns >= 0 && f.last.host_ns > 0);
    /* the CPU is synchronous; the simulated chip has streams, which can tell */
    assert_true(on_cpu() ? f.last.device_ns == -1 : f.last.device_ns >= 0);
    assert_true(on_cpu() == (f.last.device_start_ns == -1));
}

static void how_it_ran_is_told(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3));
    assert_ok(tn_profile_start());
    assert_non_null(tn_silu(x)); /* a kernel on the one, a decomposition on the other */
    assert_non_null(tn_transpose(x, 0, 1));
    assert_non_null(tn_t(x));
    assert_non_null(tn_linear(x, x));
    assert_null(tn_add(x, tn_ones(TN_SHAPE(7))));
    tn_error_clear();
    assert_ok(tn_profile_stop());

    found silu = find("silu"), sigmoid = find("sigmoid");
    assert_int_equal(silu.last.how, on_cpu() ? TN_PROFILE_KERNEL : TN_PROFILE_DECOMPOSITION);
    assert_int_equal(sigmoid.n, on_cpu() ? 0 : 1);
    if (!on_cpu()) {
        assert_int_equal(sigmoid.last.depth, 1);
        assert_true(sigmoid.last.start_ns >= silu.last.start_ns);
        assert_true(sigmoid.last.host_ns <= silu.last.host_ns);
        assert_string_equal(silu.last.kernel, "");
    }
    assert_int_equal(find("transpose").last.how, TN_PROFILE_VIEW);
    assert_int_equal(find("transpose").last.device_ns, -1);
    assert_int_equal(find("t").last.device_ns, -1); /* made of views alone */
    assert_true(on_cpu() || find("linear").last.device_ns > 0);
    assert_int_equal(find("linear").last.how, TN_PROFILE_COMPOSITE);
    assert_int_equal(find("add.Tensor").last.status, TN_ERR_SHAPE);
}

static void starting_again_forgets(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2));
    assert_ok(tn_profile_start());
    assert_int_equal(tn_profile_start(), TN_ERR_STATE);
    assert_error(TN_ERR_STATE, "tn_profile_start", "on already", NULL);
    assert_non_null(tn_neg(x));
    assert_ok(tn_profile_stop());
    assert_ok(tn_profile_stop());
    assert_ok(tn_profile_start());
    assert_ok(tn_profile_stop());
    assert_int_equal(find("neg").n_all, 0);
}

static void long_lists_of_arguments_are_cut(void **state) {
    tn_tensor *many[40];
    for (int i = 0; i < 40; i++)
        many[i] = tn_ones(TN_SHAPE(1, 2));
    assert_ok(tn_profile_start());
    assert_non_null(tn_cat(many, 40));
    assert_ok(tn_profile_stop());
    found f = find("cat");
    assert_int_equal(strncmp(f.args, "f32[1, 2], f32[1, 2], ", 22), 0);
    assert_string_equal(f.args + strlen(f.args) - 3, "...");
}

enum { N_THREADS = 3, N_CALLS = 700 };

static void *many_calls(void *device) {
    for (int i = 0; i < N_CALLS; i++) {
        TN_SCOPE;
        tn_neg(tn_ones(TN_SHAPE(1), TN_F32, *(tn_device *)device));
    }
    return NULL;
}

static void threads_record_at_once(void **state) {
    pthread_t threads[N_THREADS];
    assert_ok(tn_profile_start());
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, many_calls, &dev), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_ok(tn_profile_stop());
    found f = find("neg");
    assert_int_equal(f.n, N_THREADS * N_CALLS);
    assert_true(f.last.thread < N_THREADS);
}

static void the_table_adds_up(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3));
    assert_ok(tn_profile_start());
    for (int i = 0; i < 5; i++)
        assert_non_null(tn_silu(x));
    assert_ok(tn_profile_stop());
    char *table = tn_profile_table();
    assert_non_null(table);
    const char *line = strstr(table, "\nsilu ");
    char device[64], how[64];
    long long calls, host, self;
    assert_non_null(line);
    assert_int_equal(
        sscanf(line, " silu %63s %63s %lld %lld %lld", device, how, &calls, &host, &self), 5);
    assert_string_equal(how, on_cpu() ? "kernel" : "decomposition");
    assert_int_equal(calls, 5);
    assert_true(self <= host);
    long long n_all, all_host, all_self;
    line = strstr(table, "\nall ");
    assert_non_null(line);
    assert_int_equal(sscanf(line, " all %lld %lld %lld", &n_all, &all_host, &all_self), 3);
    assert_int_equal(n_all, find("silu").n_all);
    assert_true(llabs(all_host - all_self) <= 1); /* the same, cut to microseconds */
    tn_string_free(table);
}

static void the_trace_is_json(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2, 3));
    char path[] = "/tmp/tenon-trace-XXXXXX", command[256];
    close(mkstemp(path));
    assert_ok(tn_profile_start());
    assert_non_null(tn_silu(x));
    assert_ok(tn_profile_stop());
    assert_ok(tn_profile_write_trace(path));
    snprintf(command, sizeof command,
             PYTHON " -c 'import json; t = json.load(open(\"%s\"))[\"traceEvents\"]; "
                    "e = [x for x in t if x.get(\"name\") == \"silu\"]; "
                    "assert len(e) == %d and all(x[\"dur\"] >= 0 for x in e)'",
             path, on_cpu() ? 1 : 2); /* the host's lane, and the stream's */
    assert_int_equal(system(command), 0);
    unlink(path);
    assert_int_equal(tn_profile_write_trace("/no/such/folder/trace.json"), TN_ERR_IO);
    assert_error(TN_ERR_IO, "tn_profile_write_trace", "/no/such/folder/trace.json", NULL);
    assert_int_equal(tn_profile_write_trace(NULL), TN_ERR_INVALID_ARGUMENT);
    tn_error_clear();
}

static void calls_without_memory_are_counted(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(2)), *y = NULL;
    for (uint64_t n = 1; !y; n++) {
        assert_ok(tn_profile_start());
        tni_alloc_fail_at(n);
        y = tn_neg(x);
        tni_alloc_fail_at(0);
        assert_ok(tn_profile_stop());
        tn_error_clear();
    }
    /* the event's own memory is not the call's: one was lost, or none was needed */
    found f = {.op = "neg"};
    uint64_t lost;
    assert_ok(tn_profile_events(note, &f, &lost));
    assert_int_equal(f.n + (int)lost, 1);
}

/* A callback that calls operators, whose events come after those that are listed. */
static void call_operators(const tn_profile_event *e, void *user) {
    found *f = user;
    note(e, f);
    assert_non_null(tn_neg(counting(TN_F32, TN_SHAPE(3))));
    uint64_t lost;
    found inner = {.op = "neg"};
    assert_ok(tn_profile_events(note, &inner, &lost));
    assert_int_equal(inner.n, f->n_all);
}

static void begin_anew(const tn_profile_event *e, void *user) {
    found *f = user;
    note(e, f);
    assert_ok(tn_profile_stop());
    assert_ok(tn_profile_start());
}

static void a_callback_may_call_tenon(void **state) {
    tn_tensor *x = counting(TN_F32, TN_SHAPE(3));
    assert_ok(tn_profile_start());
    for (int i = 0; i < 3; i++)
        assert_non_null(tn_add(x, x));
    found f = {.op = "add.Tensor"};
    assert_ok(tn_profile_events(call_operators, &f, NULL));
    assert_int_equal(f.n, 3);
    f.n_all = 0;
    assert_ok(tn_profile_events(begin_anew, &f, NULL));
    assert_int_equal(f.n_all, 1);
    assert_ok(tn_profile_stop());
}

static void *start_and_stop(void *user) {
    for (int i = 0; i < 50; i++) {
        tn_profile_start();
        tn_profile_stop();
    }
    tn_error_clear();
    return NULL;
}

static void starting_while_others_are_timed(void **state) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, start_and_stop, NULL), 0);
    for (int i = 0; i < 300; i++) {
        TN_SCOPE;
        assert_non_null(tn_neg(counting(TN_F32, TN_SHAPE(3))));
    }
    pthread_join(thread, NULL);
    assert_ok(tn_profile_stop());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OPS_TEST(an_event_says_what_ran),    OPS_TEST(how_it_ran_is_told),
        OPS_TEST(starting_again_forgets),    OPS_TEST(long_lists_of_arguments_are_cut),
        OPS_TEST(threads_record_at_once),    OPS_TEST(the_table_adds_up),
        OPS_TEST(the_trace_is_json),         OPS_TEST(calls_without_memory_are_counted),
        OPS_TEST(a_callback_may_call_tenon), OPS_TEST(starting_while_others_are_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
