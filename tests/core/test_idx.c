/* IDX files: every type, plain and compressed, and every way a file can be wrong. */
#include "tests/core/core_test.h"

#include "core/io/idx.h"
#include "core/tensor/tensor.h"

#include <sys/stat.h>
#include <tenon/io.h>
#include <zlib.h>

static char folder[] = "/tmp/tenon-idx-XXXXXX";
static char path[128];

static int make_folder(void **state) {
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    unlink(path);
    return rmdir(folder);
}

/* Writes a file of these bytes; `compressed` with gzip. */
static void put(const void *bytes, size_t n, bool compressed) {
    snprintf(path, sizeof path, "%s/file", folder);
    gzFile file = gzopen(path, compressed ? "wb" : "wbT");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)n), (int)n);
    assert_int_equal(gzclose(file), Z_OK);
}
#define PUT(...) put((uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}), false)

static tni_device *open_storing_all(void) {
    tni_device *d = open_fake();
    d->dtypes = TN_DTYPES_ALL;
    return d;
}

static void refused(tni_device *d, tn_status status, const char *why) {
    tn_tensor *t = (tn_tensor *)1;
    assert_int_equal(tn_idx_read(path, d->id, &t), status);
    assert_null(t);
    assert_error(status, "tn_idx_read: ", path, why, NULL);
}

static void expect(tni_device *d, const char *want) {
    TN_SCOPE;
    tn_tensor *t;
    d->is_cpu = true;
    assert_int_equal(tn_idx_read(path, d->id, &t), TN_OK);
    assert_int_equal(tn_scope_held(), 1);
    char *text = tn_to_string(t);
    assert_string_equal(text, want);
    tn_string_free(text);
}

static void every_type_is_read_from_big_endian(void **state) {
    tni_device *d = open_storing_all();
    PUT(0, 0, 0x08, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255);
    expect(d, "tensor([[  1,   2,   3],\n        [  4,   5, 255]], dtype=u8)");
    PUT(0, 0, 0x09, 1, 0, 0, 0, 2, 0x7f, 0x80);
    expect(d, "tensor([ 127, -128], dtype=i8)");
    PUT(0, 0, 0x0b, 1, 0, 0, 0, 2, 1, 2, 0xff, 0xfe);
    expect(d, "tensor([258,  -2], dtype=i16)");
    PUT(0, 0, 0x0c, 1, 0, 0, 0, 1, 1, 2, 3, 4);
    expect(d, "tensor([16909060], dtype=i32)");
    PUT(0, 0, 0x0d, 1, 0, 0, 0, 2, 0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0);
    expect(d, "tensor([ 1., -2.])");
    PUT(0, 0, 0x0e, 1, 0, 0, 0, 1, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0);
    expect(d, "tensor([1.5000], dtype=f64)");
}

/* A file of 100 x 2000 bytes, larger than the reader's first buffer. */
static size_t large(uint8_t **out) {
    const uint8_t head[12] = {0, 0, 8, 2, 0, 0, 0, 100, 0, 0, 7, 0xd0};
    size_t n = sizeof head + 200000;
    *out = malloc(n + 1);
    memcpy(*out, head, sizeof head);
    for (size_t i = sizeof head; i <= n; i++)
        (*out)[i] = (uint8_t)(i * i >> 3);
    return n;
}

static void compressed_or_not_is_the_same(void **state) {
    tni_device *d = open_storing_all();
    uint8_t *bytes, *back = malloc(200000);
    size_t n = large(&bytes);
    for (int compressed = 0; compressed < 2; compressed++) {
        TN_SCOPE;
        tn_tensor *t;
        put(bytes, n, compressed);
        assert_int_equal(tn_idx_read(path, d->id, &t), TN_OK);
        assert_int_equal(tn_size(t, 1), 2000);
        assert_int_equal(tn_to_host(t, back, 200000), TN_OK);
        assert_memory_equal(back, bytes + 12, 200000);
    }
    free(bytes);
    free(back);
}

static void what_is_not_a_whole_idx_file_is_refused(void **state) {
    tni_device *d = open_storing_all();
    put("", 0, false);
    refused(d, TN_ERR_IO, "ends after 0 bytes");
    PUT(0, 0, 8, 2, 0, 0, 0, 2);
    refused(d, TN_ERR_IO, "inside the header");
    PUT(0, 0, 8, 1, 0, 0, 0, 3, 1, 2);
    refused(d, TN_ERR_IO, "cut short: 10 bytes of 11");
    PUT(0, 0, 8, 1, 0, 0, 0, 1, 1, 2);
    refused(d, TN_ERR_IO, "bytes follow after the 9");
    PUT(0x89, 'P', 'N', 'G', 1, 2, 3);
    refused(d, TN_ERR_IO, "starts with 89 50 4e 47");
    PUT(0, 0, 0x0a, 1, 0, 0, 0, 1, 1);
    refused(d, TN_ERR_IO, "starts with 00 00 0a 01");
    PUT(0, 0, 8, 0, 1);
    refused(d, TN_ERR_IO, "0 dimensions");
    PUT(0, 0, 8, 13, 1);
    refused(d, TN_ERR_IO, "13 dimensions");
    PUT(0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 3);
    refused(d, TN_ERR_IO, "dimension 0 has size 0");
    PUT(0, 0, 8, 1, 0x80, 0, 0, 1, 1);
    refused(d, TN_ERR_IO, "more than 2 GiB");
    PUT(0, 0, 0x0e, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
    refused(d, TN_ERR_IO, "more than 2 GiB");
}

/* A header that announces `n_elements` bytes, and `n_tail` bytes more than these. */
static void put_with_tail(uint32_t n_elements, size_t n_tail, bool compressed) {
    const uint8_t n[4] = {(uint8_t)(n_elements >> 24), (uint8_t)(n_elements >> 16),
                          (uint8_t)(n_elements >> 8), (uint8_t)n_elements};
    const uint8_t head[8] = {0, 0, 8, 1, n[0], n[1], n[2], n[3]};
    size_t bytes = sizeof head + n_elements + n_tail;
    uint8_t *content = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        content[i] = i < sizeof head ? head[i] : (uint8_t)(i * i >> 3);
    put(content, bytes, compressed);
    free(content);
}

/* The reader meets the end of what was announced inside its first buffer, at its edge, and in one
 * that has grown. */
static void a_file_that_goes_on_after_its_elements_is_refused(void **state) {
    tni_device *d = open_storing_all();
    const uint32_t n_elements[] = {1, 60000, (64 << 10) - 9, (64 << 10) - 8, 70000, 200000};
    const size_t n_tail[] = {1, 2, 60000, 64 << 10, 70000, 200000, 3 << 20};
    for (int compressed = 0; compressed < 2; compressed++)
        for (size_t i = 0; i < sizeof n_elements / sizeof *n_elements; i++)
            for (size_t j = 0; j < sizeof n_tail / sizeof *n_tail; j++) {
                put_with_tail(n_elements[i], n_tail[j], compressed);
                refused(d, TN_ERR_IO, "bytes follow");
            }
}

static void damage(long at) {
    FILE *file = fopen(path, "r+b");
    fseek(file, at, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 0x55, file);
    fclose(file);
}

static void damaged_compression_is_refused(void **state) {
    tni_device *d = open_storing_all();
    uint8_t *bytes;
    size_t n = large(&bytes);
    put(bytes, n + 1, true);
    refused(d, TN_ERR_IO, "bytes follow");
    put(bytes, n, true);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(truncate(path, about.st_size - 12), 0);
    refused(d, TN_ERR_IO, "cut short");
    put(bytes, n, true);
    damage(about.st_size - 8); /* the check sum */
    refused(d, TN_ERR_IO, "get the file again");
    put(bytes, n, true);
    damage(about.st_size / 2);
    refused(d, TN_ERR_IO, "");
    free(bytes);
}

static void what_is_no_file_is_refused(void **state) {
    tni_device *d = open_storing_all();
    snprintf(path, sizeof path, "%s/file", folder);
    unlink(path);
    refused(d, TN_ERR_NOT_FOUND, "does not exist");
    char before[sizeof path];
    memcpy(before, path, sizeof path);
    snprintf(path, sizeof path, "%s", folder);
    refused(d, TN_ERR_IO, "is a directory");
    memcpy(path, before, sizeof path);
    tn_tensor *t;
    assert_int_equal(tn_idx_read(NULL, d->id, &t), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "path", NULL);
    assert_int_equal(tn_idx_read(path, d->id, NULL), TN_ERR_INVALID_ARGUMENT);
    assert_error(TN_ERR_INVALID_ARGUMENT, "out", NULL);
}

static void no_failing_allocation_leaks(void **state) {
    tni_device *d = open_storing_all();
    uint8_t *bytes;
    size_t n = large(&bytes);
    put(bytes, n, true);
    for (uint64_t at = 1;; at++) {
        TN_SCOPE;
        tn_tensor *t;
        tn_empty_cache(d->id);
        tni_alloc_fail_at(at);
        tn_status status = tn_idx_read(path, d->id, &t);
        uint64_t made = tni_alloc_fail_at(0);
        assert_int_equal(status == TN_OK, t != NULL);
        assert_true(status == TN_OK || status == TN_ERR_OUT_OF_MEMORY);
        tn_error_clear();
        if (made < at)
            break;
    }
    tn_scope_close(0);
    assert_int_equal(tni_tensors_alive(), 0);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_type_is_read_from_big_endian),
        TEST(compressed_or_not_is_the_same),
        TEST(what_is_not_a_whole_idx_file_is_refused),
        TEST(a_file_that_goes_on_after_its_elements_is_refused),
        TEST(damaged_compression_is_refused),
        TEST(what_is_no_file_is_refused),
        TEST(no_failing_allocation_leaks),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
