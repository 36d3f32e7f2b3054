/* Reads arbitrary bytes as an IDX file: what is accepted must lie within the bytes, exactly, and
 * what is refused must say why. With -DFUZZ_STANDALONE it runs the files it is given, and without
 * any every truncation and every single wrong byte of a header of each type. */
#include "core/io/idx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void demand(int holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    tni_idx idx;
    tn_status status = tni_idx_parse(data, n, &idx);
    demand(memchr(idx.problem, 0, sizeof idx.problem) != NULL);
    if (status != TN_OK) {
        demand(status == TN_ERR_IO && idx.problem[0] != 0);
        return 0;
    }
    demand(idx.rank >= 1 && idx.rank <= TN_MAX_RANK && idx.problem[0] == 0);
    uint64_t bytes = (uint64_t)tn_dtype_size(idx.dtype);
    for (int32_t i = 0; i < idx.rank; i++) {
        demand(idx.sizes[i] > 0);
        bytes *= (uint64_t)idx.sizes[i];
    }
    demand(bytes == idx.element_bytes && idx.header_bytes + bytes == n);

    /* Twice the other way round is where it was. */
    uint8_t *elements = malloc(bytes);
    demand(elements != NULL);
    memcpy(elements, data + idx.header_bytes, bytes);
    tni_idx_to_host_order(elements, &idx);
    tni_idx_to_host_order(elements, &idx);
    demand(memcmp(elements, data + idx.header_bytes, bytes) == 0);
    free(elements);
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

/* Copies to the heap, where a sanitizer sees a read past the end. */
static void run_bytes(const uint8_t *data, size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    demand(copy != NULL);
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        run_file(argv[i]);
    for (int type = 0; type < 256; type++) {
        uint8_t file[12 + 2 * 3 * 8] = {0, 0, (uint8_t)type, 2, 0, 0, 0, 2, 0, 0, 0, 3};
        for (size_t n = 0; n <= sizeof file; n++) {
            run_bytes(file, n);
            for (size_t at = 0; at < 12 && at < n; at++) {
                uint8_t right = file[at];
                for (int wrong = 0; wrong < 256; wrong += 51) {
                    file[at] = (uint8_t)wrong;
                    run_bytes(file, n);
                }
                file[at] = right;
            }
        }
    }
    return 0;
}
#endif
