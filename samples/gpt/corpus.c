/* Files into bytes, bytes into batches. */
#include "corpus.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- reading ----------------------------------------------------------------------------- */

typedef struct buffer {
    uint8_t *at;
    size_t n, room;
} buffer;

static bool add_file(buffer *b, const char *path) {
    FILE *f = fopen(path, "rb");
    bool good = f;
    while (good) {
        if (b->n == b->room) {
            size_t room = b->room ? 2 * b->room : 1 << 16;
            uint8_t *at = realloc(b->at, room);
            if (!at) {
                errno = ENOMEM;
                good = false;
                break;
            }
            b->at = at;
            b->room = room;
        }
        size_t got = fread(b->at + b->n, 1, b->room - b->n, f);
        b->n += got;
        if (got == 0) {
            good = !ferror(f);
            break;
        }
    }
    if (!good)
        fprintf(stderr, "gpt: %s: %s\n", path, strerror(errno));
    if (f)
        fclose(f);
    return good;
}

static int is_text(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && (strcmp(dot, ".txt") == 0 || strcmp(dot, ".md") == 0);
}

static bool add_folder(buffer *b, const char *path, int64_t *out_files) {
    struct dirent **entries;
    int n = scandir(path, &entries, is_text, alphasort);
    if (n < 0) {
        fprintf(stderr, "gpt: %s: %s\n", path, strerror(errno));
        return false;
    }
    bool good = true;
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        good = good && add_file(b, file);
        free(entries[i]);
    }
    free(entries);
    *out_files = n;
    return good;
}

/* Bytes as tokens, widened on the device. */
static tn_tensor *on_device(const uint8_t *at, int64_t n, tn_device device) {
    TN_SCOPE;
    return tn_keep(tn_to_dtype(tn_from_data(at, TN_SHAPE(n), TN_U8, device), TN_I64));
}

bool corpus_load(corpus *t, const char *path, tn_device device) {
    *t = (corpus){.n_files = 1};
    buffer b = {0};
    struct stat found;
    bool folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
    bool good = folder ? add_folder(&b, path, &t->n_files) : add_file(&b, path);
    if (good && b.n < 2) {
        fprintf(stderr, "gpt: %s has no text%s\n", path,
                folder ? ": no .txt or .md file with a few bytes; name a file or another folder"
                       : "");
        good = false;
    }
    if (good) {
        int64_t n = (int64_t)b.n, n_train = n - n / 10;
        t->train = on_device(b.at, n_train, device);
        t->rest = on_device(b.at + n_train, n - n_train, device);
        good = t->train && t->rest;
        if (!good)
            fprintf(stderr, "gpt: %s\n", tn_error_message());
    }
    free(b.at);
    return good;
}

void corpus_drop(corpus *t) {
    tn_drop(t->train);
    tn_drop(t->rest);
}

/* ---- batches ----------------------------------------------------------------------------- */

uint64_t counted_random(uint64_t seed, uint64_t i) {
    uint64_t z = seed * 0xd1342543de82ef95 + (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

tn_status corpus_batch(tn_tensor *bytes, uint64_t seed, int64_t step, int64_t n, int64_t length,
                       tn_tensor **out_tokens, tn_tensor **out_next) {
    int64_t *places = malloc((size_t)(n * (length + 1)) * sizeof *places);
    int64_t n_starts = tn_numel(bytes) - length;
    if (!places)
        return TN_ERR_OUT_OF_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        int64_t start =
            (int64_t)(counted_random(seed, (uint64_t)(step * n + i)) % (uint64_t)n_starts);
        for (int64_t k = 0; k <= length; k++)
            places[i * (length + 1) + k] = start + k;
    }
    tn_tensor *index =
        tn_from_data(places, TN_SHAPE(n * (length + 1)), TN_I64, tn_device_of(bytes));
    free(places);
    tn_tensor *pieces = tn_reshape(tn_index_select(bytes, 0, index), TN_SHAPE(n, length + 1));
    *out_tokens = tn_narrow(pieces, 1, 0, length);
    *out_next = tn_narrow(pieces, 1, 1, length);
    return *out_next ? TN_OK : tn_error_status();
}
