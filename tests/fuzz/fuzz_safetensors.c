/* Reads arbitrary bytes as a safetensors file: of what is accepted the tensors must fill the data
 * exactly, one after the other, each found by its name; what is refused must say why. With
 * -DFUZZ_STANDALONE it runs the files it is given, and without any every truncation and many wrong
 * bytes of one. */
#include "nn/safetensors/header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void demand(int holds) {
    if (!holds)
        abort();
}

static void check_accepted(const tnn_header *h, uint64_t n_data) {
    uint64_t at = 0;
    for (uint64_t i = 0; i < h->n; i++) {
        const tnn_entry *e = &h->entries[i];
        uint64_t bytes;
        demand(e->begin == at && e->end >= e->begin);
        demand(e->rank >= 0 && e->rank <= TN_MAX_RANK);
        demand(tnn_bytes_of(e->dtype, e->shape, e->rank, &bytes) && bytes == e->end - e->begin);
        demand(tnn_header_find(h, e->name) == (int64_t)i);
        at = e->end;
    }
    demand(at == n_data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    uint64_t n_text = 0;
    if (n < 8)
        return 0;
    for (int i = 7; i >= 0; i--)
        n_text = n_text << 8 | data[i];
    if (n_text > n - 8)
        return 0;

    tnn_header header;
    tn_error_clear();
    uint64_t n_data = n - 8 - n_text;
    tn_status status = tnn_header_parse(&header, "x", (const char *)data + 8, n_text, n_data);
    demand(status == tn_error_status());
    demand(status == TN_OK || strstr(tn_error_message(), "tn_safetensors_open: x: "));
    if (status == TN_OK) {
        check_accepted(&header, n_data);
        tnn_header_finish(&header);
    }
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

/* Of a header of its length and the data after it; on the heap, where a sanitizer sees a read past
 * the end. */
static void run_header(const char *text, size_t n_text, size_t n_data) {
    size_t n = 8 + n_text + n_data;
    uint8_t *file = calloc(n, 1);
    demand(file != NULL);
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)((uint64_t)n_text >> 8 * i);
    memcpy(file + 8, text, n_text);
    LLVMFuzzerTestOneInput(file, n);
    free(file);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        run_file(argv[i]);
    char text[] = "{\"__metadata__\":{\"k\":\"v\"},"
                  "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
                  "\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]}}";
    size_t n = strlen(text);
    for (size_t n_data = 0; n_data < 20; n_data++)
        run_header(text, n, n_data);
    for (size_t length = 0; length < n; length++)
        run_header(text, length, 9);
    for (size_t at = 0; at < n; at++) {
        char right = text[at];
        for (int wrong = 0; wrong < 256; wrong++) {
            text[at] = (char)wrong;
            run_header(text, n, 9);
        }
        text[at] = right;
    }
    return 0;
}
#endif
