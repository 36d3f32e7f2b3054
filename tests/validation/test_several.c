/* Several plugins that are watched at once: each call is checked as that of the plugin whose handle it
 * is made with. */
#include "tests/support/host_memory_device.h"

/* cmocka wants these before itself, and its macro `fail` behind what calls host->fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "dispatcher/registry.h"
#include "loader/loader.h"
#include "loader/validation/validation.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/plugins.h>
#include <tenon/requirements.h>
#include <tenon/validation.h>

/* ---- plugins of the same functions ------------------------------------------------------- */

enum { N = 12 };

struct tn_stream_impl {
    int unused;
};
struct tn_device_impl {
    const tn_host *host;
    tn_stream_impl *stream, own; /* what create gives out */
};
struct tn_instance {
    const tn_host *host;
    tn_device_impl *device, own; /* what open gives out */
};

static struct tn_instance selfs[N];
static _Thread_local tn_instance *next; /* what init gives out */

static tn_status init(const tn_host *host, const char *path, tn_instance **out) {
    *out = next;
    next->host = host;
    return TN_OK;
}

static tn_status open_device(tn_instance *self, uint32_t index, tn_device_impl **out) {
    *out = self->device;
    (*out)->host = self->host;
    return TN_OK;
}

static tn_status alloc_memory(tn_device_impl *device, tn_allocation *a) {
    a->host = device->host->alloc(device->host, a->bytes, a->alignment);
    a->memory = (uintptr_t)a->host;
    return TN_OK;
}

static void dealloc_memory(tn_device_impl *device, int32_t space, tn_memory memory) {
    device->host->dealloc(device->host, plain_at(memory, 0));
}

/* Breaks TNP-16. */
static tn_status fill_silently(tn_device_impl *device, tn_stream_impl *stream, tn_memory dst,
                               uint64_t offset, uint8_t value, uint64_t bytes) {
    return TN_ERR_INTERNAL;
}

static tn_status create(tn_device_impl *device, int32_t priority, tn_stream_impl **out) {
    *out = device->stream;
    return TN_OK;
}

static void destroy(tn_stream_impl *stream) {}

static tn_status query(tn_stream_impl *stream) {
    return TN_OK;
}

static const tn_allocation request = {
    .struct_size = sizeof request, .bytes = 8, .alignment = 64, .space = TN_SPACE_DEVICE};

static const tn_memory_ops memory_ops = {.struct_size = sizeof memory_ops,
                                         .alloc = alloc_memory,
                                         .dealloc = dealloc_memory,
                                         .copy_from_host = plain_write,
                                         .copy_to_host = plain_read,
                                         .copy = plain_copy,
                                         .fill = fill_silently};
static const tn_stream_ops stream_ops = {.struct_size = sizeof stream_ops,
                                         .create = create,
                                         .destroy = destroy,
                                         .query = query,
                                         .synchronize = query};
static const tn_device_ops devices = {.struct_size = sizeof devices,
                                      .count = plain_count,
                                      .open = open_device,
                                      .close = plain_close,
                                      .property = plain_property,
                                      .memory = &memory_ops},
                           queues = {.struct_size = sizeof queues,
                                     .count = plain_count,
                                     .open = open_device,
                                     .close = plain_close,
                                     .property = plain_property,
                                     .memory = &memory_ops,
                                     .streams = &stream_ops};

static char ids[N][32], types[N][32];
static tn_plugin plugins[N];

static int64_t n_before;

static int set_up(void **state) {
    for (int i = 0; i < N; i++) {
        snprintf(ids[i], sizeof ids[i], "org.tenon.several%d", i);
        snprintf(types[i], sizeof types[i], "several%d", i);
        plugins[i] = (tn_plugin){.struct_size = sizeof plugins[i],
                                 .abi_version = TN_ABI_VERSION,
                                 .abi_required = TN_ABI_VERSION,
                                 .id = ids[i],
                                 .device_type = types[i],
                                 .name = "One of several",
                                 .version = "1",
                                 .init = init,
                                 .shutdown = plain_shutdown,
                                 .devices = &queues};
        selfs[i].device = &selfs[i].own;
        selfs[i].own.stream = &selfs[i].own.own;
    }
    setenv("TENON_VALIDATE", "1", 1);
    tn_validation_clear();
    tni_fail(TN_ERR_INTERNAL,
             "what stays from the first error on, and from the first line of the log");
    tn_error_clear();
    tni_log_on(TN_LOG_ERROR, "validation");
    n_before = tni_alloc_outstanding();
    return 0;
}

/* ---- a life of one, without the loader --------------------------------------------------- */

typedef struct host {
    tn_host table;
    int n_blocks; /* alive */
} host;

static void *alloc_block(const tn_host *h, uint64_t bytes, uint64_t alignment) {
    ((host *)h)->n_blocks++;
    return tni_alloc_aligned(bytes, alignment);
}

static void free_block(const tn_host *h, void *p) {
    ((host *)h)->n_blocks--;
    tni_free(p);
}

static void ignore(const tn_host *h, int32_t level, const char *message) {}

typedef struct life {
    host host;
    tni_watch *watch;
    const tn_plugin *table;
    const tn_device_ops *ops;
    tn_instance *self;
    tn_device_impl *device;
    tn_stream_impl *stream;
} life;

static tn_status start(life *l, int plugin, int self) {
    *l = (life){.host.table = {.struct_size = sizeof(tn_host),
                               .abi_version = TN_ABI_VERSION,
                               .alloc = alloc_block,
                               .dealloc = free_block,
                               .log_message = ignore}};
    next = &selfs[self];
    assert_true(tni_watch_begin("somewhere", &l->host.table, &l->watch));
    l->table = tni_watch_tables(l->watch, &plugins[plugin]);
    l->ops = l->table->devices;
    return l->table->init(tni_watch_host(l->watch), NULL, &l->self);
}

static void live(life *l, int plugin, int self) {
    uint32_t n;
    assert_int_equal(start(l, plugin, self), TN_OK);
    assert_int_equal(l->ops->count(l->self, &n), TN_OK);
    assert_int_equal(l->ops->open(l->self, 0, &l->device), TN_OK);
    assert_int_equal(l->ops->streams->create(l->device, 0, &l->stream), TN_OK);
}

static void end(life *l) {
    if (l->stream)
        l->ops->streams->destroy(l->stream);
    l->ops->close(l->device);
    l->table->shutdown(l->self);
    tni_watch_end(l->watch);
}

/* ---- findings ---------------------------------------------------------------------------- */

/* The one finding that there is; then there is none. */
static void expect(uint32_t requirement, const char *plugin, const char *slot, const char *word) {
    tn_validation_finding f = {.struct_size = sizeof f};
    assert_int_equal(tn_validation_get(0, &f), TN_OK);
    assert_int_equal(tn_validation_count(), 1);
    assert_int_equal(f.requirement, requirement);
    assert_string_equal(f.plugin, plugin);
    assert_string_equal(f.slot, slot);
    assert_non_null(strstr(f.text, word));
    tn_validation_clear();
}

static void expect_nothing(void) {
    assert_int_equal(tn_validation_count(), 0);
}

/* ---- the tests --------------------------------------------------------------------------- */

#define QUERIES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define QUERY(i) \
    static const tn_plugin *query##i(const tn_host *h) { \
        return &plugins[i]; \
    }
QUERIES(QUERY)
#define NAME(i) query##i,
static const tn_plugin_query_fn queries[N] = {QUERIES(NAME)};

static void twelve_are_checked(void **state) {
    const tni_plugin *p[N];
    tn_device_impl *device[N];
    for (int i = 0; i < N; i++) {
        plugins[i].devices = &devices;
        next = &selfs[i];
        assert_int_equal(tn_plugin_register(queries[i]), TN_OK);
        p[i] = tni_loader_get(types[i]);
        assert_non_null(p[i]);
        assert_int_equal(p[i]->devices->open(p[i]->self, 0, &device[i]), TN_OK);
    }
    expect_nothing();
    for (int i = 0; i < N; i++) {
        tn_allocation made = request;
        p[i]->devices->memory->alloc(device[i], &made);
        p[i]->devices->memory->fill(device[i], NULL, made.memory, 0, 0, 8);
        expect(TNP_FAIL_MESSAGE, ids[i], "memory->fill", "no message");
        p[i]->devices->memory->dealloc(device[i], TN_SPACE_DEVICE, made.memory);
    }
    for (int i = 0; i < N; i++)
        p[i]->devices->close(device[i]);
    tni_loader_finish();
    tni_registry_finish();
    expect_nothing();
}

static void two_hosts_of_one_plugin_are_told_apart(void **state) {
    life a, b;
    tn_allocation made = request, other = request;
    live(&a, 0, 0);
    live(&b, 0, 1);
    a.ops->memory->alloc(a.device, &made);
    assert_int_equal(a.host.n_blocks, 1);
    assert_int_equal(b.host.n_blocks, 0);
    b.ops->memory->alloc(b.device, &other);
    a.ops->memory->dealloc(a.device, TN_SPACE_DEVICE, made.memory);
    tn_stream_impl *old = a.stream;
    end(&a);
    assert_int_equal(b.host.n_blocks, 1);
    b.ops->memory->dealloc(b.device, TN_SPACE_DEVICE, other.memory);
    assert_int_equal(b.ops->streams->query(b.stream), TN_OK);
    expect_nothing();
    assert_int_equal(b.ops->streams->query(old), TN_ERR_STATE);
    expect(0, "(unknown plugin)", "streams->query", "is no plugin's");
    end(&b);
    expect_nothing();
}

static void a_destroyed_handle_is_its_plugins_until_given_out_again(void **state) {
    life a, b;
    live(&a, 0, 0);
    live(&b, 1, 1);
    tn_stream_impl *old = b.stream;
    b.ops->streams->destroy(old);
    assert_int_equal(a.ops->streams->query(old), TN_ERR_STATE);
    expect(0, ids[1], "streams->query", "destroyed");
    a.ops->streams->destroy(a.stream);
    a.device->stream = old;
    a.ops->streams->create(a.device, 0, &a.stream);
    assert_int_equal(b.ops->streams->query(old), TN_OK);
    expect_nothing();
    b.stream = NULL;
    end(&b);
    end(&a);
    expect_nothing();
}

static void a_handle_that_another_plugin_has_is_refused(void **state) {
    life a, b, c;
    live(&a, 0, 0);
    live(&b, 1, 1);
    tn_stream_impl *stream = NULL;
    b.device->stream = a.stream;
    assert_int_equal(b.ops->streams->create(b.device, 0, &stream), TN_ERR_INTERNAL);
    assert_null(stream);
    expect(TNP_STREAM_CREATE, ids[1], "streams->create", ids[0]);
    tn_device_impl *device = NULL;
    selfs[1].device = a.device;
    assert_int_equal(b.ops->open(b.self, 0, &device), TN_ERR_INTERNAL);
    assert_null(device);
    expect(TNP_OPEN_DEVICE, ids[1], "devices->open", ids[0]);
    assert_int_equal(start(&c, 2, 0), TN_ERR_INTERNAL);
    expect(TNP_INIT_RESULT, ids[2], "init", ids[0]);
    tni_watch_end(c.watch);
    end(&a);
    end(&b);
    expect_nothing();
}

static void a_handle_that_nobody_gave_out_is_refused(void **state) {
    life a;
    uint32_t n;
    tn_allocation made = request;
    live(&a, 0, 0);
    assert_int_equal(a.ops->memory->alloc(&selfs[1].own, &made), TN_ERR_STATE);
    expect(0, "(unknown plugin)", "memory->alloc", "no plugin's");
    assert_int_equal(a.ops->count(&selfs[1], &n), TN_ERR_STATE);
    expect(0, "(unknown plugin)", "devices->count", "no plugin gave out");
    tn_instance *self;
    assert_int_equal(a.table->init(&a.host.table, NULL, &self), TN_ERR_STATE);
    expect(0, "(unknown plugin)", "init", "another host");
    end(&a);
    expect_nothing();
}

static void a_self_is_its_plugins_after_shutdown(void **state) {
    life a;
    uint32_t n;
    tn_instance *self;
    live(&a, 3, 0);
    a.ops->streams->destroy(a.stream);
    a.ops->close(a.device);
    a.table->shutdown(a.self);
    assert_int_equal(a.ops->count(a.self, &n), TN_ERR_STATE);
    expect(0, ids[3], "devices->count", "after shutdown");
    next = &selfs[1];
    assert_int_equal(a.table->init(tni_watch_host(a.watch), NULL, &self), TN_OK);
    assert_int_equal(a.ops->count(a.self, &n), TN_ERR_STATE);
    expect(0, ids[3], "devices->count", "after shutdown");
    assert_int_equal(a.ops->count(self, &n), TN_OK);
    a.table->shutdown(self);
    tni_watch_end(a.watch);
    expect_nothing();
}

static void a_host_is_known_by_its_table(void **state) {
    life a, b;
    tn_allocation made = request;
    live(&a, 0, 0);
    live(&b, 1, 1);
    tn_host copy = *tni_watch_host(a.watch);
    assert_null(copy.alloc(&copy, 8, 8));
    expect(TNP_HOST_ARGUMENT, "(unknown plugin)", "host->alloc", "init was given");
    a.device->host = b.self->host;
    a.ops->memory->alloc(a.device, &made);
    expect(TNP_HOST_ARGUMENT, ids[0], "host->alloc", "another plugin");
    b.self->host->dealloc(b.self->host, made.host);
    a.device->host = a.self->host;
    assert_int_equal(b.host.n_blocks, 0);
    tn_validation_clear();
    tni_watch_end(b.watch);
    tni_watch_end(a.watch);
}

enum { ROUNDS = 300 };
static pthread_barrier_t ready;

static void *live_again_and_again(void *number) {
    life l;
    tn_allocation made = request;
    pthread_barrier_wait(&ready);
    for (int i = 0; i < ROUNDS; i++) {
        live(&l, *(int *)number, *(int *)number);
        l.ops->memory->alloc(l.device, &made);
        l.ops->memory->dealloc(l.device, TN_SPACE_DEVICE, made.memory);
        l.ops->streams->query(l.stream);
        end(&l);
    }
    return NULL;
}

static void plugins_start_and_end_while_others_work(void **state) {
    pthread_t threads[4];
    int numbers[4] = {0, 1, 2, 3};
    life l;
    live(&l, 4, 4);
    pthread_barrier_init(&ready, NULL, 5);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, live_again_and_again, &numbers[i]), 0);
    pthread_barrier_wait(&ready);
    for (int i = 0; i < 10 * ROUNDS; i++)
        assert_int_equal(l.ops->streams->query(l.stream), TN_OK);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&ready);
    end(&l);
    /* Warnings come up: what the layer itself opens for a look, in the other threads. */
    tn_validation_finding f = {.struct_size = sizeof f};
    for (uint64_t i = 0; i < tn_validation_count(); i++) {
        assert_int_equal(tn_validation_get(i, &f), TN_OK);
        assert_true(f.is_warning);
    }
}

static int nothing_is_left(void **state) {
    tn_error_clear();
    tni_error_plugin(TN_OK, NULL);
    tn_validation_clear();
    return tni_alloc_outstanding() != n_before;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, nothing_is_left)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(twelve_are_checked),
        TEST(two_hosts_of_one_plugin_are_told_apart),
        TEST(a_destroyed_handle_is_its_plugins_until_given_out_again),
        TEST(a_handle_that_another_plugin_has_is_refused),
        TEST(a_handle_that_nobody_gave_out_is_refused),
        TEST(a_self_is_its_plugins_after_shutdown),
        TEST(a_host_is_known_by_its_table),
        TEST(plugins_start_and_end_while_others_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
