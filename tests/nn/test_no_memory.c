/* Every allocation fails in turn while a file is written and read, while a model is made, saved and
 * loaded, and while batches are made: each time an error that says so, no file left half written, and
 * nothing lost. */
#define _GNU_SOURCE
#include "tests/nn/nn_test.h"

#include <jansson.h>
#include <stdatomic.h>
#include <tenon/data.h>

/* ---- allocations that fail --------------------------------------------------------------- */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
char *__real_strdup(const char *text);
int __real_vasprintf(char **out, const char *format, va_list args);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
char *__wrap_strdup(const char *text);
int __wrap_asprintf(char **out, const char *format, ...);

static _Atomic uint64_t n_made, fail_at; /* 0: never */
static int64_t n_of_json;                /* blocks that jansson has */
static bool json_fails;                  /* its allocations, too */

static bool fails(void) {
    return ++n_made == fail_at;
}
void *__wrap_malloc(size_t bytes) {
    return fails() ? NULL : __real_malloc(bytes);
}
void *__wrap_calloc(size_t n, size_t bytes) {
    return fails() ? NULL : __real_calloc(n, bytes);
}
void *__wrap_realloc(void *p, size_t bytes) {
    return fails() ? NULL : __real_realloc(p, bytes);
}
char *__wrap_strdup(const char *text) {
    return fails() ? NULL : __real_strdup(text);
}
int __wrap_asprintf(char **out, const char *format, ...) {
    if (fails())
        return -1;
    va_list args;
    va_start(args, format);
    int n = __real_vasprintf(out, format, args);
    va_end(args);
    return n;
}

static void *json_malloc(size_t bytes) {
    void *p = json_fails && fails() ? NULL : __real_malloc(bytes);
    n_of_json += p != NULL;
    return p;
}
static void json_free(void *p) {
    n_of_json -= p != NULL;
    free(p);
}

/* ---- what is done ------------------------------------------------------------------------ */

static tn_status write_and_read(const char *path) {
    TN_SCOPE;
    tn_named_tensor tensors[] = {{"blocks.0.weight", tn_ones(TN_SHAPE(2, 3), TN_F32, dev)},
                                 {"blocks.0.bias", tn_zeros(TN_SHAPE(3), TN_F16, dev)}};
    const tn_key_value metadata[] = {{"format", "pt"}, {"model", "\xc3\xa4"}};
    tn_status status = tn_safetensors_write(path, tensors, 2, metadata, 2);
    if (status != TN_OK)
        return status;
    tn_safetensors *file = tn_safetensors_open(path);
    if (!file)
        return tn_error_status();
    tn_tensor *all[2];
    status = tn_safetensors_read_all(file, dev, all, 2);
    tn_safetensors_close(file);
    return status;
}

typedef struct net {
    tn_nn_transformer_block block;
    tn_nn_batch_norm norm;
} net;

static void net_visit(void *model, tn_nn_visitor *v) {
    net *m = model;
    tn_nn_transformer_block_visit(&m->block, "block", v);
    tn_nn_batch_norm_visit(&m->norm, "norm", v);
}

static tn_status use(net *m, const char *path) {
    tn_nn_transformer_block_options block = {
        .d_model = 4, .nhead = 2, .dim_feedforward = 4, .is_causal = true};
    tn_nn_batch_norm_options norm = {.num_features = 3};
    tn_status status = tn_nn_transformer_block_init(&m->block, &block, dev, TN_F32);
    if (status == TN_OK)
        status = tn_nn_batch_norm_init(&m->norm, &norm, dev, TN_F32);
    if (status == TN_OK)
        status = tn_nn_state_save(path, m, net_visit, NULL, 0);
    if (status == TN_OK)
        status = tn_nn_state_load(path, m, net_visit, true);
    uint64_t n;
    tn_tensor **parameters = status == TN_OK ? tn_nn_parameters(m, net_visit, &n) : NULL;
    if (!parameters)
        return tn_error_status();
    tn_nn_parameters_free(parameters);
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3, 4), TN_F32, dev);
    x = tn_nn_batch_norm_forward(&m->norm, tn_nn_transformer_block_forward(&m->block, x, TN_NONE));
    return x ? TN_OK : tn_error_status();
}

static tn_status make_save_and_load(const char *path) {
    TN_SCOPE;
    net m = {0};
    tn_status status = use(&m, path);
    tn_nn_finish(&m, net_visit);
    return status;
}

static tn_status halve(void *user, int64_t index, tn_data_random *random, const void *const *in,
                       void *const *out) {
    *(float *)out[0] = *(const float *)in[0] / 2;
    return TN_OK;
}

/* An epoch and a batch of the next, of tensors and of a file. */
static tn_status load_batches(const char *path, uint32_t n_workers, bool of_file) {
    TN_SCOPE;
    tn_dataset d = {0};
    tn_tensor *tensors[] = {tn_transpose(tn_ones(TN_SHAPE(1, 5), TN_F32, dev), 0, 1)};
    tn_data_records records = {.record_bytes = 4, .n_fields = 1};
    records.fields[0] = tn_data_field_of(TN_F32, TN_SCALAR_SHAPE);
    tn_status status = of_file ? tn_dataset_init_records(&d, &path, 1, &records)
                               : tn_dataset_init_tensors(&d, tensors, 1);
    tn_data_loader_options o = {.batch_size = 2,
                                .shuffle = true,
                                .n_workers = n_workers,
                                .device = dev,
                                .transform = halve,
                                .n_fields = 1};
    o.fields[0] = tn_data_field_of(TN_F32, TN_SCALAR_SHAPE);
    tn_data_loader *loader = status == TN_OK ? tn_data_loader_create(&d, &o) : NULL;
    if (!loader)
        status = tn_error_status();
    for (int i = 0; i < 5 && status == TN_OK; i++) {
        tn_data_batch batch;
        status = tn_data_loader_next(loader, &batch);
    }
    tn_data_loader_destroy(loader);
    tn_dataset_finish(&d);
    return status;
}

static tn_status load_batches_of_tensors(const char *path) {
    return load_batches(path, 0, false);
}

static tn_status load_batches_of_a_file(const char *path) {
    uint64_t held = atomic_exchange(&fail_at, 0), made = n_made;
    write_bytes(path, "abcdefghijklmnopqrst", 20);
    n_made = made;
    fail_at = held;
    return load_batches(path, 0, true);
}

static tn_status load_batches_in_threads(const char *path) {
    return load_batches(path, 2, false);
}

/* At most the first `most`: a device's own threads allocate when they like. */
static void every_allocation_fails_once(tn_status (*run)(const char *path), uint64_t most) {
    const char *path = file_path("file");
    uint64_t n = 1, refused = 0;
    for (bool whole = false; !whole && n <= most; n++) {
        n_made = 0;
        fail_at = n;
        tn_status status = run(path);
        fail_at = 0;
        whole = n_made < n;
        if (status != TN_OK) {
            refused++;
            const char *message = tn_error_message();
            /* Without memory for a word jansson says that the word is wrong. */
            bool is_said = status == TN_ERR_OUT_OF_MEMORY && strstr(message, "memory");
            if (!is_said && !strstr(message, "its header is not as it must be"))
                fail_msg("allocation %llu failed, and the error is %s: '%s'", (unsigned long long)n,
                         tn_status_name(status), message);
        }
        tn_error_clear();
        if (n_of_json != 0)
            fail_msg("allocation %llu failed, and jansson keeps %lld blocks", (unsigned long long)n,
                     (long long)n_of_json);
        if (n_files() > 1)
            fail_msg("allocation %llu failed, and another file is left", (unsigned long long)n);
        unlink(path);
    }
    print_message("%llu allocations, %llu of them needed\n", (unsigned long long)n - 1,
                  (unsigned long long)refused);
    assert_true(refused > 10);
}

static void files_are_written_and_read_without_memory(void **state) {
    json_fails = true;
    every_allocation_fails_once(write_and_read, UINT64_MAX);
}

/* Not jansson's: without memory for a byte of a name it leaves that byte out, which is another
 * name. */
static void models_are_made_saved_and_loaded_without_memory(void **state) {
    json_fails = false;
    every_allocation_fails_once(make_save_and_load, UINT64_MAX);
}

static void batches_are_made_without_memory(void **state) {
    json_fails = false;
    every_allocation_fails_once(load_batches_of_tensors, 60);
    every_allocation_fails_once(load_batches_of_a_file, 60);
    every_allocation_fails_once(load_batches_in_threads, 60);
}

int main(void) {
    json_set_alloc_funcs(json_malloc, json_free);
    const struct CMUnitTest tests[] = {OPS_TEST(files_are_written_and_read_without_memory),
                                       OPS_TEST(models_are_made_saved_and_loaded_without_memory),
                                       OPS_TEST(batches_are_made_without_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
