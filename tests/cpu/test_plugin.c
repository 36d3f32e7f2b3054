/* The plugin apart from its kernels: start and end, options, memory, several threads at once, and a
 * forked child. */
#include "tests/cpu/cpu_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <tenon/ext/fork.h>
#include <tenon/ext/threads.h>
#include <unistd.h>

/* ---- tables ------------------------------------------------------------------------------ */

static void a_host_it_does_not_know_gets_no_plugin(void **state) {
    tn_plugin_query_fn query;
    *(void **)&query = dlsym(cpu.object, TN_PLUGIN_QUERY_NAME);
    tn_host old = *mini_host_table();
    assert_ptr_equal(query(&old), cpu.plugin);
    old.abi_version = TN_ABI_OLDEST - 1;
    assert_null(query(&old));
    old = *mini_host_table();
    old.struct_size = offsetof(tn_host, option);
    assert_null(query(&old));
    assert_null(query(NULL));
}

static void properties_are_those_of_one_host_device(void **state) {
    uint32_t count;
    tn_cell value;
    tn_device_impl *second;
    assert_ok(cpu.ops->count(cpu.self, &count));
    assert_int_equal(count, 1);
    assert_int_equal(cpu.ops->open(cpu.self, 1, &second), TN_ERR_DEVICE);
    assert_null(second);
    assert_ok(cpu.ops->property(cpu.self, 0, TN_PROP_UNIFIED_MEMORY, &value));
    assert_true(value.v.boolean);
    assert_ok(cpu.ops->property(cpu.self, 0, TN_PROP_COMPUTE_UNITS, &value));
    assert_true(value.v.i64 >= 1);
    assert_int_equal(cpu.ops->property(cpu.self, 0, TN_PROP_DTYPES, &value), TN_ERR_UNSUPPORTED);
    assert_null(cpu.plugin->extension(cpu.self, "tenon.unknown/1"));
    tn_memory_info info = {.struct_size = sizeof info};
    assert_ok(cpu.ops->memory->info(cpu.device, TN_SPACE_DEVICE, &info));
    assert_true(info.total_bytes > 0 && info.free_bytes <= info.total_bytes);
}

static void the_number_of_threads_can_be_set(void **state) {
    const tn_ext_threads *threads = cpu.plugin->extension(cpu.self, TN_EXT_THREADS);
    assert_int_equal(threads->get_num_threads(cpu.self), THREADS);
    assert_ok(threads->set_num_threads(cpu.self, 7));
    assert_int_equal(threads->get_num_threads(cpu.self), 7);
    assert_int_equal(threads->set_num_threads(cpu.self, 0), TN_ERR_INVALID_ARGUMENT);
    assert_ok(threads->set_num_threads(cpu.self, UINT32_MAX)); /* as many as it can */
    assert_true(threads->get_num_threads(cpu.self) >= 7);
    assert_ok(threads->set_num_threads(cpu.self, THREADS));
}

static void requests_that_are_not_known_are_refused(void **state) {
    const tn_memory_ops *memory = cpu.ops->memory;
    tn_memory_info info = {.struct_size = sizeof info};
    tn_allocation a = {.struct_size = sizeof a, .bytes = 8, .alignment = 64, .space = 2};
    assert_int_equal(memory->alloc(cpu.device, &a), TN_ERR_UNSUPPORTED);
    assert_non_null(strstr(mini_error(), "memory space 2"));
    a.space = TN_SPACE_DEVICE;
    a.flags = 1;
    assert_int_equal(memory->alloc(cpu.device, &a), TN_ERR_UNSUPPORTED);
    assert_true(a.memory == 0 && a.host == NULL);
    assert_int_equal(memory->info(cpu.device, 2, &info), TN_ERR_UNSUPPORTED);
    a.flags = 0;
    a.alignment = 4096; /* more than the device's is served */
    assert_ok(memory->alloc(cpu.device, &a));
    assert_int_equal(a.memory % 4096, 0);
    memory->dealloc(cpu.device, a.space, a.memory);
    tn_cell spaces;
    assert_ok(cpu.ops->property(cpu.self, 0, TN_PROP_SPACES, &spaces));
    assert_int_equal(spaces.v.i64, 1 << TN_SPACE_DEVICE | 1 << TN_SPACE_PINNED);
}

static void memory_is_written_read_copied_and_filled(void **state) {
    const tn_memory_ops *memory = cpu.ops->memory;
    unsigned char data[300], back[300];
    for (int i = 0; i < 300; i++)
        data[i] = (unsigned char)i;
    for (int32_t space = TN_SPACE_DEVICE; space <= TN_SPACE_PINNED; space++) {
        tn_memory a, b;
        void *host;
        assert_ok(mini_alloc(cpu.ops->memory, cpu.device, space, 300, &a, &host));
        assert_int_equal(a % 64, 0);
        assert_non_null(host);
        assert_ok(mini_alloc(cpu.ops->memory, cpu.device, space, 300, &b, &host));
        assert_ok(memory->copy_from_host(cpu.device, NULL, a, 0, data, 0, 300));
        assert_ok(memory->fill(cpu.device, NULL, b, 0, 7, 300));
        assert_ok(memory->copy(cpu.device, NULL, b, 10, a, 20, 100));
        assert_ok(memory->copy_to_host(cpu.device, NULL, back, 0, b, 0, 300));
        for (int i = 0; i < 300; i++)
            assert_int_equal(back[i], i >= 10 && i < 110 ? i + 10 : 7);
        memory->dealloc(cpu.device, space, a);
        memory->dealloc(cpu.device, space, b);
    }
}

/* ---- start ------------------------------------------------------------------------------- */

/* Starts the plugin again beside the one under test, which it leaves as it was; the status. */
static tn_status start_again(void) {
    tn_instance *self;
    tn_status status = cpu.plugin->init(mini_host_table(), NULL, &self);
    assert_true((status == TN_OK) == (self != NULL));
    if (self)
        cpu.plugin->shutdown(self);
    return status;
}

static const char *isa; /* under test: main's option */

static void options_are_checked(void **state) {
    static const char *const wrong[] = {"x", "-1", "3x", " 2"};
    isa = mini_host_table()->option(NULL, "isa");
    int64_t before = mini_outstanding();
    for (int i = 0; i < LENGTH(wrong); i++) {
        mini_option("threads", wrong[i]);
        assert_int_equal(start_again(), TN_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(mini_error(), "TENON_CPU_THREADS"));
    }
    static const char *const right[] = {"", "0", "2", "99999999"};
    for (int i = 0; i < LENGTH(right); i++) {
        mini_option("threads", right[i]);
        assert_ok(start_again());
    }
    mini_option("threads", "3");
    mini_option("isa", "z80");
    assert_int_equal(start_again(), TN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(mini_error(), "TENON_CPU_ISA"));
    mini_option("isa", isa);
    assert_ok(start_again());
    assert_int_equal(mini_outstanding(), before);
}

static void every_set_of_kernels_has_the_same_records(void **state) {
    static const char *const names[] = {"base", "avx2", "avx512", "avx512_bf16", ""};
    uint64_t n = cpu.plugin->n_kernels;
    const tn_kernel **mine = scratch(n * sizeof *mine);
    memcpy(mine, cpu.plugin->kernels, n * sizeof *mine);
    for (int k = 0; k < LENGTH(names); k++) {
        mini_option("isa", names[k]);
        if (start_again() != TN_OK) /* not on this machine */
            continue;
        assert_int_equal(cpu.plugin->n_kernels, n);
        for (uint64_t i = 0; i < n; i++) {
            const tn_kernel *a = mine[i], *b = cpu.plugin->kernels[i];
            assert_string_equal(a->op, b->op);
            assert_int_equal(a->flags, b->flags);
            assert_memory_equal(a->dtypes, b->dtypes, sizeof a->dtypes);
            assert_int_equal(a->prepare != NULL, b->prepare != NULL);
        }
    }
    mini_option("isa", isa);
    assert_ok(start_again());
    assert_memory_equal(mine, cpu.plugin->kernels, n * sizeof *mine);
}

static void failing_allocations_are_reported_and_leave_nothing(void **state) {
    int64_t before = mini_outstanding();
    mini_fail_alloc_after(0);
    assert_int_equal(start_again(), TN_ERR_OUT_OF_MEMORY);
    mini_fail_alloc_after(0);
    tn_device_impl *device;
    assert_int_equal(cpu.ops->open(cpu.self, 0, &device), TN_ERR_OUT_OF_MEMORY);
    assert_null(device);
    tn_memory memory;
    void *host;
    mini_fail_alloc_after(0);
    assert_int_equal(mini_alloc(cpu.ops->memory, cpu.device, TN_SPACE_DEVICE, 8, &memory, &host),
                     TN_ERR_OUT_OF_MEMORY);
    assert_true(memory == 0 && host == NULL);
    assert_int_equal(mini_outstanding(), before);
}

/* ---- several threads at once ------------------------------------------------------------- */

/* One call with operands of its own and what it must give. */
typedef struct job {
    const char *op;
    tn_dtype dtype;
    tn_cell args[7];
    uint32_t n_args;
    mini_tensor *out;
    void *expected;
} job;

enum { N_JOBS = 8, N_ROUNDS = 6 };

/* Numbers of [0.5, 2], the same ones again and again. */
static mini_tensor *floats(int32_t rank, const int64_t *sizes) {
    mini_tensor *t = tensor_create(TN_F32, rank, sizes);
    float *x = elements_of(t);
    for (int64_t i = 0; i < t->view.numel; i++)
        x[i] = 0.5F + 1.5F * (float)(i * 7919 % 1009) / 1009;
    return t;
}

/* Kernels that share nothing but the device: pointwise, strided, reduced in chunks, BLAS, packed,
 * with a workspace, checked, with a slice for each thread. */
static void jobs_create(job *jobs) {
    const int64_t many[] = {5, 20011}, square[] = {2, 130, 130}, image[] = {2, 8, 16, 16};
    static const int64_t ones[] = {1, 1}, weights[] = {8, 8, 3, 3}, both[] = {0, 1};
    static const int64_t total[] = {1, 1}, columns[] = {1, 5};
    mini_tensor *a = floats(2, many), *m = floats(3, square);
    mini_tensor *b = mini_tensor_alias(&cpu, floats(2, many), 2, many, columns, 0);
    mini_tensor *h = tensor_create(TN_F16, 3, square), *index = tensor_create(TN_I64, 2, many);
    mini_tensor *x = floats(4, image), *w = floats(4, weights);
    assert_non_null(b);
    for (int64_t i = 0; i < h->view.numel; i++)
        ((uint16_t *)elements_of(h))[i] = (uint16_t)(0x3800 + i % 1024); /* [0.5, 1) */
    for (int64_t i = 0; i < index->view.numel; i++)
        ((int64_t *)elements_of(index))[i] = i * 3 % 5;
    const job table[N_JOBS] = {
        {"add", TN_F32, {mini_view(a), mini_view(b), mini_f64(1)}, 3, NULL, NULL},
        {"exp", TN_F32, {mini_view(b)}, 1, NULL, NULL},
        {"sum", TN_F32, {mini_view(a), mini_ints(both, 2)}, 2, NULL, NULL},
        {"bmm", TN_F32, {mini_view(m), mini_view(m)}, 2, NULL, NULL},
        {"bmm", TN_F16, {mini_view(h), mini_view(h)}, 2, NULL, NULL},
        {"gather", TN_F32, {mini_view(a), mini_i64(0), mini_view(index)}, 3, NULL, NULL},
        {"softmax", TN_F32, {mini_view(b), mini_i64(1)}, 2, NULL, NULL},
        {"convolution_backward_input",
         TN_F32,
         {mini_view(x), mini_view(w), mini_ints(x->sizes, 4), mini_ints(ones, 2),
          mini_ints(ones, 2), mini_ints(ones, 2), mini_i64(1)},
         7,
         NULL,
         NULL},
    };
    for (int k = 0; k < N_JOBS; k++) {
        const tn_tensor_view *like = table[k].args[0].v.view;
        jobs[k] = table[k];
        jobs[k].out = strcmp(table[k].op, "sum") == 0
                          ? tensor_create(TN_F32, 2, total)
                          : tensor_create(table[k].dtype, like->rank, like->sizes);
    }
}

static void keep_result(job *j) {
    j->expected = scratch(j->out->bytes);
    memcpy(j->expected, elements_of(j->out), j->out->bytes);
}

static bool is_kept_result(const job *j) {
    return memcmp(j->expected, elements_of(j->out), j->out->bytes) == 0;
}

static tn_status job_run(const job *j) {
    return mini_run(&cpu, mini_find(&cpu, j->op, j->dtype, TN_DTYPE_NONE), j->n_args, j->args, 1,
                    &j->out);
}

static void *work(void *context) {
    const job *jobs = context;
    for (int round = 0; round < N_ROUNDS; round++)
        for (int k = 0; k < N_JOBS; k++)
            if (job_run(&jobs[k]) != TN_OK)
                return context;
    return NULL;
}

static void kernels_may_be_called_by_several_threads_at_once(void **state) {
    enum { N_THREADS = 3 };
    job jobs[N_THREADS][N_JOBS];
    pthread_t threads[N_THREADS];
    for (int t = 0; t < N_THREADS; t++) {
        jobs_create(jobs[t]);
        for (int k = 0; k < N_JOBS; k++) {
            assert_ok(job_run(&jobs[t][k]));
            keep_result(&jobs[t][k]);
            memset(elements_of(jobs[t][k].out), 0xff, jobs[t][k].out->bytes);
        }
    }
    for (int t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, work, jobs[t]), 0);
    for (int t = 0; t < N_THREADS; t++) {
        void *failed;
        pthread_join(threads[t], &failed);
        assert_null(failed);
        for (int k = 0; k < N_JOBS; k++)
            if (!is_kept_result(&jobs[t][k]))
                fail_msg("%s on thread %d gave something else", jobs[t][k].op, t);
    }
}

/* ---- a forked child ---------------------------------------------------------------------- */

static void a_forked_child_computes_on_one_thread(void **state) {
    assert_true(cpu.plugin->flags & TN_PLUGIN_FORK_SAFE);
    job jobs[N_JOBS];
    jobs_create(jobs);
    for (int k = 0; k < N_JOBS; k++) { /* OpenMP's workers exist from here on, if any do */
        assert_ok(job_run(&jobs[k]));
        keep_result(&jobs[k]);
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* waiting for workers that do not exist would be for ever */
        for (int k = 0; k < N_JOBS; k++) {
            memset(elements_of(jobs[k].out), 0xff, jobs[k].out->bytes);
            if (job_run(&jobs[k]) != TN_OK || !is_kept_result(&jobs[k]))
                _exit(k + 1);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static atomic_bool stop;

/* A fork that nobody announced, while a thread is in BLAS: the child does without BLAS. */
static void *multiply(void *context) {
    const job *j = context;
    while (!atomic_load(&stop))
        if (job_run(j) != TN_OK)
            return context;
    return NULL;
}

static void a_forked_child_computes_beside_blas(void **state) {
    enum { N_THREADS = 3, N_FORKS = 400 };
    const tn_ext_fork *ext = cpu.plugin->extension(cpu.self, TN_EXT_FORK);
    int64_t sizes[] = {1, 20, 20}; /* little work for each call of BLAS */
    job jobs[N_THREADS + 1];
    pthread_t threads[N_THREADS];
    atomic_store(&stop, false);
    for (int t = 0; t <= N_THREADS; t++) {
        mini_tensor *m = floats(3, sizes), *out = tensor_create(TN_F32, 3, sizes);
        jobs[t] = (job){"bmm", TN_F32, {mini_view(m), mini_view(m)}, 2, out, NULL};
    }
    for (int t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, multiply, &jobs[t]), 0);
    bool well = true;
    fflush(NULL);
    for (int i = 0; i < N_FORKS && well; i++) {
        bool announced = i % 2;
        if (announced)
            ext->before(cpu.self);
        pid_t child = fork();
        if (announced)
            ext->after(cpu.self, child == 0);
        if (child == 0) {
            alarm(60);
            _exit(job_run(&jobs[N_THREADS]) == TN_OK ? 0 : 1);
        }
        int status;
        well = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    atomic_store(&stop, true);
    for (int t = 0; t < N_THREADS; t++) {
        void *failed;
        pthread_join(threads[t], &failed);
        assert_null(failed);
    }
    assert_true(well);
}

int test_plugin(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_host_it_does_not_know_gets_no_plugin),
        TEST(properties_are_those_of_one_host_device),
        TEST(the_number_of_threads_can_be_set),
        TEST(requests_that_are_not_known_are_refused),
        TEST(memory_is_written_read_copied_and_filled),
        TEST(options_are_checked),
        TEST(every_set_of_kernels_has_the_same_records),
        TEST(failing_allocations_are_reported_and_leave_nothing),
        TEST(kernels_may_be_called_by_several_threads_at_once),
        TEST(a_forked_child_computes_on_one_thread),
        TEST(a_forked_child_computes_beside_blas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
