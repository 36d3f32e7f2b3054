/* Writing a file: its header as JSON, the tensors' bytes, and a rename at the end. */
#define _GNU_SOURCE
#include "nn/safetensors/header.h"
#include "nn/safetensors/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/safetensors.h>
#include <unistd.h>

#define WRITE "tn_safetensors_write: %s: "

/* What is written, in the order of the file. */
typedef struct item {
    const char *name;
    tn_tensor *tensor;
    const tnn_dtype *dtype;
    uint64_t bytes;
} item;

/* ---- what to write ----------------------------------------------------------------------- */

static int compare_items(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->dtype != y->dtype)
        return x->dtype > y->dtype ? -1 : 1; /* the table's last come first */
    return strcmp(x->name, y->name);
}

static int compare_keys(const void *a, const void *b) {
    const tn_key_value *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static tn_status sort_items(item *items, const char *path, const tn_named_tensor *tensors,
                            uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        item *it = &items[i];
        it->name = tensors[i].name;
        it->tensor = tensors[i].tensor;
        if (!it->name)
            return tn_fail(TN_ERR_INVALID_ARGUMENT, WRITE "tensor %" PRIu64 " has no name", path,
                           i);
        if (!it->tensor || it->tensor == TN_NONE)
            return tn_fail(TN_ERR_INVALID_ARGUMENT, WRITE "'%s' is no tensor", path, it->name);
        if (strcmp(it->name, "__metadata__") == 0)
            return tn_fail(TN_ERR_INVALID_ARGUMENT,
                           WRITE "a tensor cannot be named __metadata__, which the format uses",
                           path);
        if (!tnn_is_utf8(it->name))
            return tn_fail(TN_ERR_INVALID_ARGUMENT, WRITE "the name '%s' is not UTF-8", path,
                           it->name);
        it->dtype = tnn_dtype_of(tn_dtype_of(it->tensor));
        if (!it->dtype)
            return tn_fail(TN_ERR_UNSUPPORTED,
                           WRITE "'%s' is %s, which the format does not have; cast it with tn_to",
                           path, it->name, tn_dtype_name(tn_dtype_of(it->tensor)));
        it->bytes = (uint64_t)(tn_numel(it->tensor) * tn_dtype_size(tn_dtype_of(it->tensor)));
    }
    qsort(items, n, sizeof *items, compare_items);
    return TN_OK;
}

/* ---- the header -------------------------------------------------------------------------- */

/* Adds `value` (NULL: there was no memory for it), which becomes the object's, under a new name. */
static tn_status put(json_t *object, const char *path, const char *name, json_t *value) {
    if (value && json_object_get(object, name)) {
        json_decref(value);
        return tn_fail(TN_ERR_INVALID_ARGUMENT, WRITE "the name '%s' is there twice", path, name);
    }
    if (json_object_set_new(object, name, value) != 0)
        return tn_fail(TN_ERR_OUT_OF_MEMORY, WRITE "no memory for its header", path);
    return TN_OK;
}

static tn_status sort_metadata(const tn_key_value **out, const char *path,
                               const tn_key_value *metadata, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        out[i] = &metadata[i];
        if (!metadata[i].key || !metadata[i].value)
            return tn_fail(TN_ERR_INVALID_ARGUMENT,
                           WRITE "key or value %" PRIu64 " of the metadata is NULL", path, i);
        if (!tnn_is_utf8(metadata[i].key) || !tnn_is_utf8(metadata[i].value))
            return tn_fail(TN_ERR_INVALID_ARGUMENT,
                           WRITE "key or value of '%s' in the metadata is not UTF-8", path,
                           metadata[i].key);
    }
    qsort(out, n, sizeof *out, compare_keys);
    return TN_OK;
}

static tn_status put_metadata(json_t *header, const char *path, const tn_key_value *metadata,
                              uint64_t n) {
    if (n == 0)
        return TN_OK;
    const tn_key_value **sorted = calloc(n, sizeof *sorted);
    json_t *object = json_object();
    tn_status status = put(header, path, "__metadata__", object); /* alive in the header */
    if (status == TN_OK && !sorted)
        status = tn_fail(TN_ERR_OUT_OF_MEMORY, WRITE "no memory for its metadata", path);
    if (status == TN_OK)
        status = sort_metadata(sorted, path, metadata, n);
    for (uint64_t i = 0; i < n && status == TN_OK; i++)
        status = put(object, path, sorted[i]->key, json_string(sorted[i]->value));
    free(sorted);
    return status;
}

static json_t *shape_of(const tn_tensor *t) {
    json_t *shape = json_array();
    tn_ints sizes = tn_sizes(t);
    for (int64_t i = 0; i < sizes.n && shape; i++)
        if (json_array_append_new(shape, json_integer(sizes.data[i])) != 0) {
            json_decref(shape);
            shape = NULL;
        }
    return shape;
}

/* The JSON into *out, to be freed with free_text. */
static tn_status header_text(const char *path, const item *items, uint64_t n,
                             const tn_key_value *metadata, uint64_t n_metadata, char **out) {
    json_t *header = json_object();
    tn_status status = put_metadata(header, path, metadata, n_metadata);
    json_int_t at = 0;
    for (uint64_t i = 0; i < n && status == TN_OK; i++) {
        const item *it = &items[i];
        json_int_t end = at + (json_int_t)it->bytes;
        /* Without memory for a part json_pack frees the others. */
        json_t *about = json_pack("{s:s, s:o, s:[I, I]}", "dtype", it->dtype->name, "shape",
                                  shape_of(it->tensor), "data_offsets", at, end);
        status = put(header, path, it->name, about);
        at = end;
    }
    *out = status == TN_OK ? json_dumps(header, JSON_COMPACT) : NULL;
    if (!*out && status == TN_OK)
        status = tn_fail(TN_ERR_OUT_OF_MEMORY, WRITE "no memory for its header", path);
    json_decref(header);
    return status;
}

/* jansson's memory is of what the program told it. */
static void free_text(char *text) {
    json_malloc_t its_malloc;
    json_free_t its_free;
    if (!text)
        return;
    json_get_alloc_funcs(&its_malloc, &its_free);
    its_free(text);
}

/* ---- the file ---------------------------------------------------------------------------- */

static tn_status write_bytes(int fd, const char *path, const void *bytes, uint64_t n) {
    for (uint64_t done = 0; done < n;) {
        ssize_t put_now = write(fd, (const char *)bytes + done, n - done);
        if (put_now < 0 && errno == EINTR)
            continue;
        if (put_now < 0)
            return tn_fail(TN_ERR_IO, WRITE "cannot be written: %s", path, strerror(errno));
        done += (uint64_t)put_now;
    }
    return TN_OK;
}

/* Padded with spaces, so that the tensors begin at a multiple of 8. */
static tn_status write_header(int fd, const char *path, const char *text) {
    uint64_t n_text = strlen(text), n = (n_text + 7) / 8 * 8;
    if (n > TNN_HEADER_MAX)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       WRITE "its names and metadata make a header of %" PRIu64
                             " bytes; the format has at most %" PRIu64,
                       path, n, TNN_HEADER_MAX);
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(n >> 8 * i);
    tn_status status = write_bytes(fd, path, length, sizeof length);
    if (status == TN_OK)
        status = write_bytes(fd, path, text, n_text);
    return status == TN_OK ? write_bytes(fd, path, "       ", n - n_text) : status;
}

static tn_status write_items(int fd, const char *path, const item *items, uint64_t n) {
    uint64_t largest = 1;
    for (uint64_t i = 0; i < n; i++)
        largest = items[i].bytes > largest ? items[i].bytes : largest;
    void *bytes = malloc(largest);
    if (!bytes)
        return tn_fail(TN_ERR_OUT_OF_MEMORY, WRITE "no memory for a tensor of %" PRIu64 " bytes",
                       path, largest);
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < n && status == TN_OK; i++) {
        status = tn_to_host(items[i].tensor, bytes, items[i].bytes);
        if (status == TN_OK)
            status = write_bytes(fd, path, bytes, items[i].bytes);
    }
    free(bytes);
    return status;
}

/* A new file beside `path`, in the same folder; its name in *out_name is freed with free. */
static tn_status create_beside(const char *path, char **out_name, int *out_fd) {
    *out_fd = -1;
    for (int i = 0; i < 1000; i++) {
        if (asprintf(out_name, "%s.%ld-%d.tmp", path, (long)getpid(), i) < 0) {
            *out_name = NULL;
            return tn_fail(TN_ERR_OUT_OF_MEMORY, WRITE "no memory for a file's name", path);
        }
        *out_fd = open(*out_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*out_fd >= 0)
            return TN_OK;
        int reason = errno;
        if (reason != EEXIST)
            tn_fail(TN_ERR_IO, WRITE "%s cannot be made: %s", path, *out_name, strerror(reason));
        free(*out_name);
        *out_name = NULL;
        if (reason != EEXIST)
            return TN_ERR_IO;
    }
    return tn_fail(TN_ERR_IO, WRITE "no name beside it is free; remove the .tmp files there", path);
}

/* A rename is on the disk when its folder is. Some file systems have no such thing: no error. */
static void flush_folder(const char *path) {
    char *name = strdup(path);
    if (!name)
        return;
    char *slash = strrchr(name, '/');
    if (slash)
        slash[slash == name] = 0;
    int fd = open(slash ? name : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(name);
}

static tn_status write_file(const char *path, const char *header, const item *items, uint64_t n) {
    char *name;
    int fd;
    tn_status status = create_beside(path, &name, &fd);
    if (status != TN_OK)
        return status;
    status = write_header(fd, path, header);
    if (status == TN_OK)
        status = write_items(fd, path, items, n);
    if (status == TN_OK && fsync(fd) != 0)
        status = tn_fail(TN_ERR_IO, WRITE "cannot be written: %s", path, strerror(errno));
    if (close(fd) != 0 && status == TN_OK)
        status = tn_fail(TN_ERR_IO, WRITE "cannot be written: %s", path, strerror(errno));
    if (status == TN_OK && rename(name, path) != 0)
        status =
            tn_fail(TN_ERR_IO, WRITE "%s cannot be renamed to it: %s", path, name, strerror(errno));
    if (status == TN_OK)
        flush_folder(path);
    else
        unlink(name);
    free(name);
    return status;
}

tn_status tn_safetensors_write(const char *path, const tn_named_tensor *tensors, uint64_t n,
                               const tn_key_value *metadata, uint64_t n_metadata) {
    if (!path || (n && !tensors) || (n_metadata && !metadata))
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_safetensors_write: path, tensors or metadata is NULL");
    item *items = calloc(n ? n : 1, sizeof *items);
    if (!items)
        return tn_fail(TN_ERR_OUT_OF_MEMORY, WRITE "no memory for a list of %" PRIu64 " tensors",
                       path, n);
    tn_status status = sort_items(items, path, tensors, n);
    if (status == TN_OK) {
        char *header;
        status = header_text(path, items, n, metadata, n_metadata, &header);
        if (status == TN_OK)
            status = write_file(path, header, items, n);
        free_text(header);
    }
    free(items);
    return status;
}
