/* Several threads ask at once: one start, one answer. Meant to run under TSan as well. */
#include "loader/internal.h"
#include "tests/loader/loader_test.h"

#include <pthread.h>

enum { N_THREADS = 4, N_ROUNDS = 50 };

static pthread_barrier_t barrier;

typedef struct asker {
    pthread_t thread;
    int number;
    const tni_plugin *plugin;
    bool failed;
} asker;

static void ignore(const tn_plugin_info *info, void *user) {}

static void say_hello(const tn_host *host) {
    host->log_message(host, TN_LOG_DEBUG, "hello from a thread");
}

static void *ask(void *user) {
    asker *a = user;
    pthread_barrier_wait(&barrier);
    if (a->number == 3)
        tn_plugin_list(true, ignore, NULL);
    a->plugin = tni_loader_get(a->number % 2 ? "zoo" : "zoo@org.tenon.zoo.uses_host");
    /* What another thread was refused is no error of this one. */
    a->failed = tn_error_status() != TN_OK;
    if (a->plugin)
        say_hello(&tni_candidate_of(a->plugin)->host);
    if (tni_loader_get("npu"))
        a->failed = true;
    tn_error_clear();
    return NULL;
}

static void four_threads_ask_at_once(void **state) {
    for (int round = 0; round < N_ROUNDS; round++) {
        fresh_loader(NULL);
        keep_log();
        char list[4096];
        snprintf(list, sizeof list, "%s:%s:%s", zoo("init_fails"), zoo("uses_host"), zoo("twin"));
        load_only(list);
        asker askers[N_THREADS] = {0};
        pthread_barrier_init(&barrier, NULL, N_THREADS);
        for (int i = 0; i < N_THREADS; i++) {
            askers[i].number = i;
            assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
        }
        for (int i = 0; i < N_THREADS; i++)
            pthread_join(askers[i].thread, NULL);
        pthread_barrier_destroy(&barrier);
        for (int i = 0; i < N_THREADS; i++) {
            assert_non_null(askers[i].plugin);
            assert_false(askers[i].failed);
            assert_string_equal(askers[i].plugin->path, zoo("uses_host"));
        }
        const char *once = strstr(log_text(), "the cage is open");
        assert_non_null(once);
        assert_null(strstr(once + 1, "the cage is open"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(four_threads_ask_at_once, fresh_loader, fresh_loader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
