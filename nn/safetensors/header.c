/* Reading a header; see header.h. jansson refuses what is no JSON in UTF-8, what has a name twice
 * or a zero byte in a string, and numbers beyond 63 bits; the rest is refused here. */
#define _GNU_SOURCE
#include "nn/safetensors/header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OPEN "tn_safetensors_open: %s: "

bool tnn_bytes_of(const tnn_dtype *dtype, const int64_t *shape, int32_t rank, uint64_t *out) {
    int64_t bits = dtype->bits;
    bool fits = true, empty = false;
    for (int32_t i = 0; i < rank; i++) {
        empty = empty || shape[i] == 0;
        fits = fits && !__builtin_mul_overflow(bits, shape[i], &bits);
    }
    *out = empty ? 0 : (uint64_t)bits / 8;
    return empty || (fits && bits % 8 == 0);
}

/* A number that is not negative, else false. */
static bool read_number(const json_t *value, int64_t *out) {
    *out = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
    return *out >= 0;
}

static tn_status read_shape(tnn_entry *e, const char *path, const json_t *shape) {
    if (!json_is_array(shape))
        return tn_fail(TN_ERR_IO, OPEN "tensor '%s' has no list as its shape; get the file again",
                       path, e->name);
    if (json_array_size(shape) > TN_MAX_RANK)
        return tn_fail(TN_ERR_UNSUPPORTED,
                       OPEN "tensor '%s' has %zu dimensions; Tenon has at most %d, so reshape it"
                            " before it is saved",
                       path, e->name, json_array_size(shape), TN_MAX_RANK);
    e->rank = (int32_t)json_array_size(shape);
    for (int32_t i = 0; i < e->rank; i++)
        if (!read_number(json_array_get(shape, (size_t)i), &e->shape[i]))
            return tn_fail(TN_ERR_IO,
                           OPEN "size %d of tensor '%s' is not a whole number from 0; get the file"
                                " again",
                           path, i, e->name);
    return TN_OK;
}

static tn_status read_offsets(tnn_entry *e, const char *path, const json_t *offsets,
                              uint64_t n_data) {
    int64_t begin, end;
    if (json_array_size(offsets) != 2 || !read_number(json_array_get(offsets, 0), &begin) ||
        !read_number(json_array_get(offsets, 1), &end))
        return tn_fail(TN_ERR_IO,
                       OPEN "data_offsets of tensor '%s' are not two whole numbers from 0; get the"
                            " file again",
                       path, e->name);
    if (begin > end)
        return tn_fail(TN_ERR_IO,
                       OPEN "tensor '%s' runs backwards, from byte %" PRId64 " to %" PRId64
                            "; get the file again",
                       path, e->name, begin, end);
    if ((uint64_t)end > n_data)
        return tn_fail(TN_ERR_IO,
                       OPEN "tensor '%s' ends at byte %" PRId64 " of %" PRIu64
                            " that are there; the file is cut short, get it again",
                       path, e->name, end, n_data);
    e->begin = (uint64_t)begin;
    e->end = (uint64_t)end;
    return TN_OK;
}

static tn_status read_entry(tnn_entry *e, const char *path, const json_t *about, uint64_t n_data) {
    const char *dtype = json_string_value(json_object_get(about, "dtype"));
    if (!dtype)
        return tn_fail(TN_ERR_IO, OPEN "tensor '%s' has no dtype; get the file again", path,
                       e->name);
    e->dtype = tnn_dtype_named(dtype);
    if (!e->dtype)
        return tn_fail(TN_ERR_IO,
                       OPEN "tensor '%s' has dtype '%s', which the format does not have; get the"
                            " file again, or a newer Tenon",
                       path, e->name, dtype);
    tn_status status = read_shape(e, path, json_object_get(about, "shape"));
    if (status == TN_OK)
        status = read_offsets(e, path, json_object_get(about, "data_offsets"), n_data);
    if (status != TN_OK)
        return status;

    uint64_t bytes;
    if (!tnn_bytes_of(e->dtype, e->shape, e->rank, &bytes))
        return tn_fail(TN_ERR_IO,
                       OPEN
                       "the sizes of tensor '%s' multiply to more bytes than there can be, or to"
                       " a part of one; get the file again",
                       path, e->name);
    if (bytes != e->end - e->begin)
        return tn_fail(TN_ERR_IO,
                       OPEN "tensor '%s' has %" PRIu64 " bytes, and its shape and %s make %" PRIu64
                            "; get the file again",
                       path, e->name, e->end - e->begin, dtype, bytes);
    return TN_OK;
}

static tn_status check_metadata(const char *path, json_t *metadata) {
    if (!json_is_object(metadata))
        return tn_fail(TN_ERR_IO, OPEN "__metadata__ is no object; get the file again", path);
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return tn_fail(TN_ERR_IO, OPEN "'%s' of __metadata__ is no string; save it as one",
                           path, key);
    }
    return TN_OK;
}

static int compare_places(const void *a, const void *b) {
    const tnn_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b, void *entries) {
    const tnn_entry *e = entries;
    return strcmp(e[*(const uint64_t *)a].name, e[*(const uint64_t *)b].name);
}

/* Sorts the entries; they must fill the data from its first byte to its last. */
static tn_status lay_out(tnn_header *h, const char *path, uint64_t n_data) {
    qsort(h->entries, h->n, sizeof *h->entries, compare_places);
    uint64_t end = 0;
    for (uint64_t i = 0; i < h->n; i++) {
        const tnn_entry *e = &h->entries[i];
        if (e->begin < end)
            return tn_fail(TN_ERR_IO,
                           OPEN "tensors '%s' and '%s' overlap at byte %" PRIu64
                                "; get the file again",
                           path, h->entries[i - 1].name, e->name, e->begin);
        if (e->begin > end)
            return tn_fail(TN_ERR_IO,
                           OPEN "no tensor has bytes %" PRIu64 " to %" PRIu64 ", before '%s'; get"
                                " the file again",
                           path, end, e->begin, e->name);
        end = e->end;
        h->by_name[i] = i;
    }
    if (end != n_data)
        return tn_fail(TN_ERR_IO,
                       OPEN "its tensors end at byte %" PRIu64 ", and %" PRIu64
                            " are there; get the file again",
                       path, end, n_data);
    qsort_r(h->by_name, h->n, sizeof *h->by_name, compare_names, h->entries);
    return TN_OK;
}

static tn_status read_entries(tnn_header *h, const char *path, uint64_t n_data) {
    size_t n = json_object_size(h->json);
    h->entries = calloc(n ? n : 1, sizeof *h->entries);
    h->by_name = calloc(n ? n : 1, sizeof *h->by_name);
    if (!h->entries || !h->by_name)
        return tn_fail(TN_ERR_OUT_OF_MEMORY, OPEN "no memory for its list of %zu tensors", path, n);

    const char *name;
    json_t *about;
    tn_status status = TN_OK;
    json_object_foreach(h->json, name, about) {
        if (status != TN_OK)
            break;
        if (strcmp(name, "__metadata__") == 0) {
            h->metadata = about;
            status = check_metadata(path, about);
            continue;
        }
        tnn_entry *e = &h->entries[h->n++];
        e->name = name;
        status = read_entry(e, path, about, n_data);
    }
    return status == TN_OK ? lay_out(h, path, n_data) : status;
}

tn_status tnn_header_parse(tnn_header *out, const char *path, const char *text, size_t n,
                           uint64_t n_data) {
    memset(out, 0, sizeof *out);
    if (n == 0 || text[0] != '{')
        return tn_fail(TN_ERR_IO,
                       OPEN "its header does not start with '{'; it is no safetensors file", path);
    json_error_t error;
    out->json = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    /* Without memory jansson says nothing, or, inside a word, that the word is wrong; one that is
     * longer than all before may lack a byte (jansson's issue 362, open in 2.14). */
    if (!out->json && error.text[0] == 0)
        return tn_fail(TN_ERR_OUT_OF_MEMORY, OPEN "no memory for its header", path);
    if (!out->json)
        return tn_fail(TN_ERR_IO, OPEN "its header is not as it must be: %s; get the file again",
                       path, error.text);
    tn_status status = read_entries(out, path, n_data);
    if (status != TN_OK)
        tnn_header_finish(out);
    return status;
}

void tnn_header_finish(tnn_header *header) {
    free(header->entries);
    free(header->by_name);
    json_decref(header->json);
    memset(header, 0, sizeof *header);
}

int64_t tnn_header_find(const tnn_header *header, const char *name) {
    uint64_t low = 0, high = header->n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = strcmp(name, header->entries[header->by_name[middle]].name);
        if (order == 0)
            return (int64_t)header->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}
