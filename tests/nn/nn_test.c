/* The folder of files; see nn_test.h. */
#define _GNU_SOURCE
#include "tests/nn/nn_test.h"

#include <dirent.h>

static char folder[] = "/tmp/tenon-nn-XXXXXX";

int make_folder(void **state) {
    return mkdtemp(folder) ? 0 : -1;
}

/* Calls for each file; NULL only counts. */
static int each_file(void (*fn)(const char *path)) {
    DIR *open_folder = opendir(folder);
    assert_non_null(open_folder);
    int n = 0;
    for (struct dirent *e; (e = readdir(open_folder));) {
        if (e->d_name[0] == '.')
            continue;
        n++;
        if (fn)
            fn(file_path(e->d_name));
    }
    closedir(open_folder);
    return n;
}

static void remove_file(const char *path) {
    unlink(path);
}

int remove_folder(void **state) {
    each_file(remove_file);
    return rmdir(folder);
}

static const char *path_in(const char *in, const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", in, name);
    return path;
}

const char *file_path(const char *name) {
    return path_in(folder, name);
}

const char *data_path(const char *name) {
    return path_in(getenv("TENON_NN_DATA"), name);
}

int n_files(void) {
    return each_file(NULL);
}

char *read_file(const char *path, size_t *out_n) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static char bytes[1 << 16];
    *out_n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(*out_n < sizeof bytes);
    char *copy = malloc(*out_n + 1);
    memcpy(copy, bytes, *out_n);
    copy[*out_n] = 0;
    return copy;
}

void write_bytes(const char *path, const void *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

void write_header(const char *path, const char *json, size_t n_data) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    uint64_t n = strlen(json);
    assert_int_equal(fwrite(&n, 1, sizeof n, file), sizeof n);
    assert_int_equal(fwrite(json, 1, n, file), n);
    for (size_t i = 0; i < n_data; i++)
        fputc(i % 2, file);
    assert_int_equal(fclose(file), 0);
}
