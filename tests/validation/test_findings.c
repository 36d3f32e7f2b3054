/* Every finding of the validation layer, brought about once.
 *
 * With a fault, the same is done without it first, and nothing may be found then. */
#include "tests/validation/findings.h"

#include "base/alloc.h"
#include "base/error.h"
#include "dispatcher/registry.h"
#include "loader/internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ext/capture.h>
#include <tenon/plugins.h>
#include <unistd.h>

/* ---- the plugin, as the rest of Tenon has it --------------------------------------------- */

const tni_plugin *p;
tn_device_impl *device, *second;
tn_stream_impl *stream;
tn_memory memory;

void start(void) {
    assert_int_equal(tn_plugin_register(brittle_query), TN_OK);
    p = tni_loader_get("brittle");
    tn_error_clear();
}

void stop(void) {
    tni_loader_finish();
    tni_registry_finish();
    p = NULL;
}

tn_allocation request(int32_t space, uint64_t bytes) {
    return (tn_allocation){
        .struct_size = sizeof(tn_allocation), .bytes = bytes, .alignment = 64, .space = space};
}

void open_all(void) {
    start();
    tn_cell value;
    for (int32_t i = 0; i <= TN_PROP_SPACES; i++)
        p->devices->property(p->self, 0, i, &value);
    assert_int_equal(p->devices->open(p->self, 0, &device), TN_OK);
    stream = NULL;
    if (p->devices->streams)
        p->devices->streams->create(device, 0, &stream);
    tn_allocation made = request(TN_SPACE_DEVICE, 256);
    assert_int_equal(p->devices->memory->alloc(device, &made), TN_OK);
    memory = made.memory;
}

void close_all(void) {
    if (stream)
        p->devices->streams->synchronize(stream);
    if (memory)
        p->devices->memory->dealloc(device, TN_SPACE_DEVICE, memory);
    if (stream)
        p->devices->streams->destroy(stream);
    p->devices->close(device);
    stop();
}

/* ---- running the cases ------------------------------------------------------------------- */

static char here[4096];

static void act(const finding_case *c, const char *fault) {
    char level[2] = {(char)('0' + c->level), '\0'};
    setenv("TENON_VALIDATE", level, 1);
    brittle = (brittle_settings){.fault = fault, .async = c->async == ASYNC};
    device = second = NULL;
    c->act();
    brittle_clean();
    assert_int_equal(chdir(here), 0);
    tn_error_clear();
}

static void print_findings(void) {
    tn_validation_finding f = {.struct_size = sizeof f};
    for (uint64_t i = 0; i < tn_validation_count(); i++) {
        assert_int_equal(tn_validation_get(i, &f), TN_OK);
        print_error("TNP-%u %s %s x%llu: %s\n", f.requirement, f.slot, f.op,
                    (unsigned long long)f.count, f.text);
    }
}

static void expect_nothing(const char *what) {
    if (tn_validation_count() == 0)
        return;
    print_findings();
    fail_msg("%s: findings, and there should be none", what);
}

static void expect(const finding_case *c, const char *what) {
    tn_validation_finding f = {.struct_size = sizeof f};
    for (uint64_t i = 0; i < tn_validation_count(); i++) {
        assert_int_equal(tn_validation_get(i, &f), TN_OK);
        if (f.requirement == c->requirement && strcmp(f.slot, c->slot) == 0 &&
            strstr(f.text, c->word)) {
            /* What comes up before the table is known bears the place that the plugin is from. */
            assert_true(strcmp(f.plugin, "org.tenon.brittle") == 0 || strchr(f.plugin, '('));
            tn_validation_clear();
            return;
        }
    }
    print_findings();
    fail_msg("%s: no finding TNP-%u of %s with '%s'", what, c->requirement, c->slot, c->word);
}

/* What a thread keeps from its first call on is there before anything is counted. */
static int warm_up(void **state) {
    finding_case c = {"silent", open_and_close, 0, "", "", SYNC, 1};
    act(&c, NULL);
    tni_error_plugin(TN_OK, NULL);
    tn_validation_clear();
    return 0;
}

static void run_case(void **state) {
    const finding_case *c = *state;
    tn_validation_clear();
    int64_t before = tni_alloc_outstanding();
    if (c->fault) {
        act(c, NULL);
        expect_nothing("without the fault");
    }
    act(c, c->fault);
    expect(c, c->fault ? c->fault : "caller");
    tni_free(brittle.kept);
    brittle.kept = NULL;
    assert_int_equal(tni_alloc_outstanding(), before);
}

static void expect_right(void (*acts)(void), const char *fault, int async) {
    for (int level = 1; level <= 2; level++) {
        finding_case c = {fault, acts, 0, "", "", async, level};
        tn_validation_clear();
        act(&c, fault);
        expect_nothing(fault ? fault : "right");
    }
}

static void memory_freed_in_order_is_no_finding(void **state) {
    expect_right(free_after_wait, NULL, ASYNC);
}

static void a_run_that_declines_is_no_finding(void **state) {
    expect_right(run_and_free, "declines", SYNC);
    expect_right(run_and_free, "declines", ASYNC);
}

static void pinned_transfers_are_no_finding(void **state) {
    expect_right(transfer_pinned, NULL, SYNC);
    expect_right(transfer_pinned, NULL, ASYNC);
}

static void a_plan_that_is_used_is_no_finding(void **state) {
    expect_right(use_plans, NULL, SYNC);
    expect_right(use_plans, NULL, ASYNC);
}

static void graphs_in_order_are_no_finding(void **state) {
    expect_right(use_graphs, NULL, ASYNC);
}

static void a_repeated_finding_is_counted(void **state) {
    finding_case c = {"silent", write_twice, 16, "memory->copy_from_host", "", SYNC, 1};
    tn_validation_finding f = {.struct_size = sizeof f};
    tn_validation_clear();
    act(&c, c.fault);
    assert_int_equal(tn_validation_count(), 1);
    assert_int_equal(tn_validation_get(0, &f), TN_OK);
    assert_int_equal(f.count, 2);
    assert_int_equal(tn_validation_get(1, &f), TN_ERR_INDEX_OUT_OF_RANGE);
    tn_error_clear();
    tn_validation_clear();
    assert_int_equal(tn_validation_count(), 0);
}

static char logged[4096];

static void keep_line(void *user, int32_t level, const char *subsystem, const char *line) {
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%d %s %s\n", level,
             subsystem, line);
}

static void a_finding_is_logged_once_and_summed_up(void **state) {
    finding_case c = {"silent", write_twice, 16, "memory->copy_from_host", "", SYNC, 1};
    tn_validation_clear();
    logged[0] = '\0';
    tn_log_set(TN_LOG_WARN, keep_line, NULL);
    act(&c, c.fault);
    tn_log_set(-1, NULL, NULL);
    const char *first =
        strstr(logged, "0 validation TNP-16: org.tenon.brittle, memory->copy_from_host: ");
    assert_non_null(first);
    assert_null(strstr(first + strlen("0 validation TNP-16"), "TNP-16"));
    assert_non_null(strstr(logged, "1 distinct findings"));
    tn_validation_clear();
}

/* Of a table, struct_size first, no function is the plugin's own. */
static void expect_checked(const void *table, const void *real, size_t size) {
    for (size_t at = sizeof(uint64_t); at < size; at += sizeof(uint64_t)) {
        uint64_t theirs, ours;
        memcpy(&theirs, (const char *)real + at, sizeof theirs);
        memcpy(&ours, (const char *)table + at, sizeof ours);
        assert_int_equal(theirs != 0, ours != 0);
        assert_true(!theirs || theirs != ours);
    }
}

static void every_slot_is_checked_when_it_is_on(void **state) {
    setenv("TENON_VALIDATE", "1", 1);
    brittle = (brittle_settings){.async = true};
    start();
    const tn_device_ops *real = brittle_query(brittle.host)->devices;
    expect_checked(p->devices, real, sizeof *real);
    expect_checked(p->devices->memory, real->memory, sizeof *real->memory);
    expect_checked(p->devices->streams, real->streams, sizeof *real->streams);
    expect_checked(p->devices->events, real->events, sizeof *real->events);
    expect_checked(p->table->extension(p->self, TN_EXT_CAPTURE),
                   brittle_query(brittle.host)->extension(NULL, TN_EXT_CAPTURE),
                   sizeof(tn_ext_capture));
    size_t before = offsetof(tn_host, alloc) - sizeof(uint64_t);
    expect_checked((const char *)brittle.host + before,
                   (const char *)&tni_candidate_of(p)->host + before, sizeof(tn_host) - before);
    stop();
}

static void nothing_stands_between_when_it_is_off(void **state) {
    setenv("TENON_VALIDATE", "0", 1);
    brittle = (brittle_settings){.async = true};
    start();
    const tn_plugin *table = brittle_query(brittle.host);
    assert_ptr_equal(p->table, table);
    assert_ptr_equal(p->devices, table->devices);
    assert_ptr_equal(p->table->kernels, table->kernels);
    assert_ptr_equal(p->devices->memory, table->devices->memory);
    assert_ptr_equal(brittle.host, &tni_candidate_of(p)->host);
    stop();
    setenv("TENON_VALIDATE", "1", 1);
    start();
    assert_ptr_not_equal(p->table, table);
    assert_ptr_not_equal(brittle.host, &tni_candidate_of(p)->host);
    stop();
    expect_nothing("on");
}

/* The same one comes again and again. */
static void watches_are_given_back(void **state) {
    finding_case c = {NULL, open_and_close, 0, "", "", ASYNC, 2};
    tn_validation_clear();
    for (int i = 0; i < 20; i++)
        act(&c, NULL);
    expect_nothing("again and again");
}

static void *work(void *user) {
    tn_stream_impl *own;
    tn_event_impl *event;
    for (int i = 0; i < 100; i++) {
        p->devices->streams->create(device, 0, &own);
        p->devices->events->create(device, 0, &event);
        tn_allocation mine = request(TN_SPACE_DEVICE, 64);
        p->devices->memory->alloc(device, &mine);
        p->devices->memory->fill(device, own, mine.memory, 0, 1, 64);
        p->devices->events->record(event, own);
        p->devices->events->wait(stream, event);
        p->devices->events->query(event);
        p->devices->streams->synchronize(own);
        p->devices->memory->dealloc(device, TN_SPACE_DEVICE, mine.memory);
        p->devices->events->destroy(event);
        p->devices->streams->destroy(own);
    }
    return NULL;
}

static void several_threads_are_no_finding(void **state) {
    pthread_t threads[4];
    setenv("TENON_VALIDATE", "2", 1);
    tn_validation_clear();
    brittle = (brittle_settings){.async = true};
    open_all();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    close_all();
    expect_nothing("several threads");
}

int main(void) {
    const struct {
        const finding_case *cases;
        int n;
    } tables[] = {{plugin_cases, n_plugin_cases},
                  {kernel_cases, n_kernel_cases},
                  {caller_cases, n_caller_cases}};
    const struct CMUnitTest others[] = {
        cmocka_unit_test(memory_freed_in_order_is_no_finding),
        cmocka_unit_test(a_run_that_declines_is_no_finding),
        cmocka_unit_test(pinned_transfers_are_no_finding),
        cmocka_unit_test(a_plan_that_is_used_is_no_finding),
        cmocka_unit_test(graphs_in_order_are_no_finding),
        cmocka_unit_test(a_repeated_finding_is_counted),
        cmocka_unit_test(a_finding_is_logged_once_and_summed_up),
        cmocka_unit_test(nothing_stands_between_when_it_is_off),
        cmocka_unit_test(every_slot_is_checked_when_it_is_on),
        cmocka_unit_test(watches_are_given_back),
        cmocka_unit_test(several_threads_are_no_finding),
    };
    static struct CMUnitTest tests[200];
    static char names[200][96];
    size_t n = 0;
    assert_non_null(getcwd(here, sizeof here));
    tn_log_set(-1, NULL, NULL);
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (int i = 0; i < tables[t].n; i++, n++) {
            const finding_case *c = &tables[t].cases[i];
            assert_true(n < 200 - sizeof others / sizeof others[0]);
            snprintf(names[n], sizeof names[n], "TNP-%u %s: %s", c->requirement, c->slot,
                     c->fault ? c->fault : c->word);
            tests[n] = (struct CMUnitTest){names[n], run_case, NULL, NULL, (void *)c};
        }
    memcpy(tests + n, others, sizeof others);
    return _cmocka_run_group_tests("findings", tests, n + sizeof others / sizeof others[0], warm_up,
                                   NULL);
}
