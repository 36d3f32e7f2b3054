/* Reads arbitrary files with tn_idx_read, plain and compressed, with tails of any length behind
 * what was made up: the reader must say of a file what the parser says of its content, and hand
 * over just the elements. Tensors are stood in for by a function that looks at them.
 *
 *     how (bit 0: compressed) | n_tail, 2 bytes, in units of 64 bytes | content
 *
 * With -DFUZZ_STANDALONE it runs the files it is given, and without any a series of its own. */
#define _GNU_SOURCE
#include "base/error.h"
#include "core/io/idx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tenon/io.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void demand(int holds) {
    if (!holds)
        abort();
}

/* ---- the tensor ------------------------------------------------------------------------- */

static uint8_t *received;
static int64_t n_received;

/* In the place of the core's: keeps the bytes, and what it returns is no tensor. */
tn_tensor *tn_from_data(const void *data, tn_ints sizes, tn_dtype dtype, tn_device device) {
    n_received = (int64_t)tn_dtype_size(dtype);
    for (int64_t i = 0; i < sizes.n; i++)
        n_received *= sizes.data[i];
    received = malloc((size_t)n_received);
    demand(received != NULL);
    memcpy(received, data, (size_t)n_received);
    return (tn_tensor *)received;
}

/* ---- the file --------------------------------------------------------------------------- */

static int memory_file(const uint8_t *content, size_t n, int compressed) {
    int fd = memfd_create("idx", 0);
    demand(fd >= 0);
    gzFile file = gzdopen(dup(fd), compressed ? "wb1" : "wbT");
    demand(file && (n == 0 || gzwrite(file, content, (unsigned)n) == (int)n));
    demand(gzclose(file) == Z_OK);
    return fd;
}

static void read_it(const uint8_t *content, size_t n, int compressed) {
    char path[64];
    int fd = memory_file(content, n, compressed);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    tn_tensor *tensor = NULL;
    tn_status status = tn_idx_read(path, (tn_device){0, 0}, &tensor);
    close(fd);

    tni_idx idx;
    demand((status == TN_OK) == (tensor != NULL) && tensor == (tn_tensor *)received);
    demand(status == tn_error_status() && (status == TN_OK || *tn_error_message()));
    tn_error_clear();
    if (compressed || n < 2 || content[0] != 0x1f || content[1] != 0x8b) {
        demand(status == tni_idx_parse(content, n, &idx));
        if (tensor) {
            tni_idx_to_host_order(received, &idx);
            demand(n_received == (int64_t)idx.element_bytes);
            demand(memcmp(received, content + idx.header_bytes, (size_t)n_received) == 0);
        }
    }
    free(received);
    received = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 3)
        return 0;
    size_t n_tail = (size_t)(data[1] << 8 | data[2]) * 64, n_head = n - 3;
    uint8_t *content = malloc(n_head + n_tail + 1);
    demand(content != NULL);
    memcpy(content, data + 3, n_head);
    for (size_t i = 0; i < n_tail; i++)
        content[n_head + i] = (uint8_t)(i * i >> 3);
    read_it(content, n_head + n_tail, data[0] & 1);
    free(content);
    return 0;
}

#if defined(FUZZ_STANDALONE)
static void run_file(const char *path) {
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s cannot be opened\n", path);
        exit(1);
    }
    LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof data, file));
    fclose(file);
}

/* Headers that announce the elements, fewer and more, before tails of up to 4 MiB. */
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        run_file(argv[i]);
    for (int how = 0; how < 2; how++)
        for (unsigned tail = 1; tail < 1 << 16; tail = tail * 3 + 1)
            for (int off = -64; off <= 64; off += off == 0 || off == -1 ? 1 : 21) {
                unsigned size = tail * 64 + (unsigned)off;
                uint8_t file[] = {(uint8_t)how,
                                  (uint8_t)(tail >> 8),
                                  (uint8_t)tail,
                                  0,
                                  0,
                                  8,
                                  1,
                                  (uint8_t)(size >> 24),
                                  (uint8_t)(size >> 16),
                                  (uint8_t)(size >> 8),
                                  (uint8_t)size};
                LLVMFuzzerTestOneInput(file, sizeof file);
                file[7] = file[8] = 0;
                LLVMFuzzerTestOneInput(file, sizeof file);
            }
    return 0;
}
#endif
