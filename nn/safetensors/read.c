/* Open files: mapped bytes under a checked header. */
#define _GNU_SOURCE
#include "nn/safetensors/header.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tenon/safetensors.h>
#include <unistd.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error \
    "safetensors files are little-endian, and tensors have the host's order: swap in read and write"
#endif

enum { LENGTH_BYTES = 8 };

struct tn_safetensors {
    tnn_header header;
    char *path;     /* owned */
    uint8_t *bytes; /* of the whole file, mapped */
    uint64_t n_bytes, data_at;
    int fd;
};

/* ---- opening ----------------------------------------------------------------------------- */

/* Fills in fd and n_bytes. */
static tn_status open_file(tn_safetensors *file) {
    const char *path = file->path;
    /* A pipe would block. */
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 && errno == ENOENT)
        return tn_fail(TN_ERR_NOT_FOUND, "tn_safetensors_open: %s does not exist; check the path",
                       path);
    struct stat about;
    if (file->fd < 0 || fstat(file->fd, &about) != 0)
        return tn_fail(TN_ERR_IO, "tn_safetensors_open: %s cannot be opened: %s", path,
                       strerror(errno));
    if (!S_ISREG(about.st_mode))
        return tn_fail(TN_ERR_IO,
                       "tn_safetensors_open: %s is no regular file, which alone can be mapped",
                       path);
    file->n_bytes = (uint64_t)about.st_size;
    return TN_OK;
}

/* Exactly n bytes from `at`. */
static tn_status read_bytes(const tn_safetensors *file, void *out, uint64_t n, uint64_t at) {
    for (uint64_t done = 0; done < n;) {
        ssize_t got = pread(file->fd, (char *)out + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return tn_fail(TN_ERR_IO, "tn_safetensors_open: %s cannot be read: %s", file->path,
                           got < 0 ? strerror(errno) : "it became shorter");
        done += (uint64_t)got;
    }
    return TN_OK;
}

/* The header is read and not mapped: it cannot change between the check and the use. */
static tn_status read_header(tn_safetensors *file) {
    uint8_t head[LENGTH_BYTES];
    if (file->n_bytes < LENGTH_BYTES)
        return tn_fail(
            TN_ERR_IO,
            "tn_safetensors_open: %s has %" PRIu64
            " bytes, and a safetensors file begins with the 8 of its header's length; get"
            " it again",
            file->path, file->n_bytes);
    tn_status status = read_bytes(file, head, sizeof head, 0);
    if (status != TN_OK)
        return status;
    uint64_t n = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        n = n << 8 | head[i];
    if (n > TNN_HEADER_MAX)
        return tn_fail(TN_ERR_IO,
                       "tn_safetensors_open: %s says that its header has %" PRIu64
                       " bytes, more than the %" PRIu64
                       " there may be; it is no safetensors file, or damaged",
                       file->path, n, TNN_HEADER_MAX);
    if (n > file->n_bytes - LENGTH_BYTES)
        return tn_fail(TN_ERR_IO,
                       "tn_safetensors_open: %s is cut short: its header has %" PRIu64
                       " bytes, and %" PRIu64 " are there; get it again",
                       file->path, n, file->n_bytes - LENGTH_BYTES);

    char *text = malloc(n ? n : 1);
    if (!text)
        return tn_fail(TN_ERR_OUT_OF_MEMORY,
                       "tn_safetensors_open: %s: no memory for its header of %" PRIu64 " bytes",
                       file->path, n);
    file->data_at = LENGTH_BYTES + n;
    status = read_bytes(file, text, n, LENGTH_BYTES);
    if (status == TN_OK)
        status =
            tnn_header_parse(&file->header, file->path, text, n, file->n_bytes - file->data_at);
    free(text);
    return status;
}

static tn_status map(tn_safetensors *file) {
    void *bytes = mmap(NULL, file->n_bytes, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (bytes == MAP_FAILED)
        return tn_fail(errno == ENOMEM ? TN_ERR_OUT_OF_MEMORY : TN_ERR_IO,
                       "tn_safetensors_open: %s: no memory is mapped: %s", file->path,
                       strerror(errno));
    file->bytes = bytes;
    return TN_OK;
}

tn_safetensors *tn_safetensors_open(const char *path) {
    if (!path) {
        tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_safetensors_open: path is NULL");
        return NULL;
    }
    tn_safetensors *file = calloc(1, sizeof *file);
    if (file) {
        file->fd = -1;
        file->path = strdup(path);
    }
    if (!file || !file->path) {
        free(file);
        tn_fail(TN_ERR_OUT_OF_MEMORY, "tn_safetensors_open: %s: no memory for an open file", path);
        return NULL;
    }
    if (open_file(file) != TN_OK || read_header(file) != TN_OK || map(file) != TN_OK) {
        tn_safetensors_close(file);
        return NULL;
    }
    return file;
}

void tn_safetensors_close(tn_safetensors *file) {
    if (!file)
        return;
    if (file->bytes)
        munmap(file->bytes, file->n_bytes);
    if (file->fd >= 0)
        close(file->fd);
    tnn_header_finish(&file->header);
    free(file->path);
    free(file);
}

/* ---- what it says ------------------------------------------------------------------------ */

uint64_t tn_safetensors_count(const tn_safetensors *file) {
    return file ? file->header.n : 0;
}

tn_status tn_safetensors_get_info(const tn_safetensors *file, uint64_t i,
                                  tn_safetensors_info *out) {
    if (!file || !out)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_safetensors_get_info: file or out is NULL");
    if (i >= file->header.n)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_safetensors_get_info: %s has no tensor %" PRIu64 "; it has %" PRIu64,
                       file->path, i, file->header.n);
    const tnn_entry *e = &file->header.entries[i];
    tn_safetensors_info info = {
        out->struct_size, e->name, e->dtype->name, e->dtype->dtype, tn_ints_of(e->shape, e->rank),
        e->end - e->begin};
    memcpy(out, &info, out->struct_size < sizeof info ? out->struct_size : sizeof info);
    return TN_OK;
}

int64_t tn_safetensors_find(const tn_safetensors *file, const char *name) {
    return file && name ? tnn_header_find(&file->header, name) : -1;
}

const char *tn_safetensors_metadata(const tn_safetensors *file, const char *key) {
    return file && key ? json_string_value(json_object_get(file->header.metadata, key)) : NULL;
}

uint64_t tn_safetensors_metadata_count(const tn_safetensors *file) {
    return file ? json_object_size(file->header.metadata) : 0;
}

tn_status tn_safetensors_metadata_at(const tn_safetensors *file, uint64_t i, const char **out_key,
                                     const char **out_value) {
    if (!file || !out_key || !out_value)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_safetensors_metadata_at: file, out_key or out_value is NULL");
    *out_key = *out_value = NULL;
    uint64_t at = 0;
    const char *key;
    json_t *value;
    json_object_foreach(file->header.metadata, key, value) {
        if (at++ == i) {
            *out_key = key;
            *out_value = json_string_value(value);
            return TN_OK;
        }
    }
    return tn_fail(TN_ERR_INVALID_ARGUMENT,
                   "tn_safetensors_metadata_at: %s has no entry %" PRIu64 "; it has %" PRIu64,
                   file->path, i, at);
}

/* ---- tensors ----------------------------------------------------------------------------- */

static tn_tensor *read_entry(const tn_safetensors *file, const tnn_entry *e, tn_device device) {
    if (e->dtype->dtype == TN_DTYPE_NONE) {
        tn_fail(TN_ERR_UNSUPPORTED,
                "tn_safetensors_read: %s: tensor '%s' is %s, which Tenon does not have; save it in"
                " another dtype",
                file->path, e->name, e->dtype->name);
        return NULL;
    }
    /* Touching a page that is no longer there would end the process. */
    struct stat about;
    if (fstat(file->fd, &about) != 0 || (uint64_t)about.st_size < file->n_bytes) {
        tn_fail(
            TN_ERR_IO,
            "tn_safetensors_read: %s became shorter since it was opened; leave it alone while it"
            " is open, and replace it by a rename",
            file->path);
        return NULL;
    }
    return tn_from_data(file->bytes + file->data_at + e->begin, tn_ints_of(e->shape, e->rank),
                        e->dtype->dtype, device);
}

tn_tensor *tn_safetensors_read(const tn_safetensors *file, const char *name, tn_device device) {
    if (!file || !name) {
        tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_safetensors_read: file or name is NULL");
        return NULL;
    }
    int64_t i = tnn_header_find(&file->header, name);
    if (i < 0) {
        tn_fail(TN_ERR_NOT_FOUND,
                "tn_safetensors_read: %s has no tensor '%s'; it has %" PRIu64
                ", which tn_safetensors_get_info names",
                file->path, name, file->header.n);
        return NULL;
    }
    return read_entry(file, &file->header.entries[i], device);
}

tn_status tn_safetensors_read_all(const tn_safetensors *file, tn_device device, tn_tensor **out,
                                  uint64_t n) {
    if (!file || (n && !out))
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_safetensors_read_all: file or out is NULL");
    if (n != file->header.n)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_safetensors_read_all: %s has %" PRIu64 " tensors and not %" PRIu64,
                       file->path, file->header.n, n);
    for (uint64_t i = 0; i < n; i++) {
        out[i] = read_entry(file, &file->header.entries[i], device);
        if (out[i])
            continue;
        while (i-- > 0)
            tn_free(out[i]);
        memset(out, 0, n * sizeof *out);
        return tn_error_status();
    }
    return TN_OK;
}
