/* Every allocation fails in turn while a file is written and read: each time an error that says so,
 * no file left half written, and nothing lost. */
#define _GNU_SOURCE
#include "tests/nn/nn_test.h"

#include <jansson.h>

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

static uint64_t n_made, fail_at; /* 0: never */
static int64_t n_of_json;        /* blocks that jansson has */

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
    void *p = fails() ? NULL : __real_malloc(bytes);
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

static void every_allocation_fails_once(void **state) {
    const char *path = file_path("file");
    uint64_t n = 1, refused = 0;
    for (bool whole = false; !whole; n++) {
        n_made = 0;
        fail_at = n;
        tn_status status = write_and_read(path);
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
    assert_true(refused > 50);
}

int main(void) {
    json_set_alloc_funcs(json_malloc, json_free);
    const struct CMUnitTest tests[] = {OPS_TEST(every_allocation_fails_once)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
