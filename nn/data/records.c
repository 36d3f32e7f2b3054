/* Datasets over files of records, mapped. */
#define _GNU_SOURCE
#include "nn/data/data.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "records are little-endian, and tensors have the host's order: swap in read_record"
#endif

typedef struct part {
    char *path;     /* owned */
    uint8_t *bytes; /* mapped; NULL: nothing */
    uint64_t n_bytes;
    int64_t first, n; /* records */
    int fd;
} part;

typedef struct archive {
    tn_data_records records;
    uint64_t field_bytes[TN_DATA_MAX_FIELDS];
    uint64_t n;
    part *parts;
} archive;

/* ---- reading ----------------------------------------------------------------------------- */

/* The part that has the record; those before it begin at or before it. */
static const part *part_of(const archive *a, int64_t index) {
    uint64_t low = 0, high = a->n;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (a->parts[middle].first <= index)
            low = middle;
        else
            high = middle;
    }
    return &a->parts[low];
}

static tn_status read_record(void *user, int64_t index, void *const *out) {
    const archive *a = user;
    const part *p = part_of(a, index);
    struct stat about;
    if (fstat(p->fd, &about) != 0 || (uint64_t)about.st_size < p->n_bytes)
        return tn_fail(TN_ERR_IO, "%s became shorter while it was read", p->path);
    const uint8_t *at =
        p->bytes + a->records.header_bytes + (uint64_t)(index - p->first) * a->records.record_bytes;
    for (uint32_t k = 0; k < a->records.n_fields; k++)
        if (a->field_bytes[k])
            memcpy(out[k], at + a->records.offsets[k], a->field_bytes[k]);
    return TN_OK;
}

static void finish_archive(void *user) {
    archive *a = user;
    for (uint64_t i = 0; a && i < a->n; i++) {
        if (a->parts[i].bytes)
            munmap(a->parts[i].bytes, a->parts[i].n_bytes);
        if (a->parts[i].fd >= 0)
            close(a->parts[i].fd);
        free(a->parts[i].path);
    }
    if (a)
        free(a->parts);
    free(a);
}

/* ---- opening ----------------------------------------------------------------------------- */

static const char call[] = "tn_dataset_init_records";

static tn_status check_records(const tn_data_records *r, uint64_t *field_bytes) {
    if (r->record_bytes < 1 || r->record_bytes > INT64_MAX || r->header_bytes > INT64_MAX)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: records of %" PRIu64 " bytes behind a header of %" PRIu64
                       "; a record has at least 1, and both are below 2^63",
                       call, r->record_bytes, r->header_bytes);
    tn_status status = tnn_field_bytes(call, "a record", r->fields, r->n_fields, field_bytes);
    for (uint32_t k = 0; k < r->n_fields && status == TN_OK; k++)
        if (r->offsets[k] > r->record_bytes || field_bytes[k] > r->record_bytes - r->offsets[k])
            status = tn_fail(TN_ERR_SHAPE,
                             "%s: field %" PRIu32 " has %" PRIu64 " bytes from byte %" PRIu64
                             "; a record has %" PRIu64,
                             call, k, field_bytes[k], r->offsets[k], r->record_bytes);
    return status;
}

/* The part's file, mapped, from record `first` on. */
static tn_status open_part(part *p, const tn_data_records *r, int64_t first) {
    /* A pipe would block. */
    p->fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (p->fd < 0 && errno == ENOENT)
        return tn_fail(TN_ERR_NOT_FOUND, "%s: %s does not exist; check the path", call, p->path);
    struct stat about;
    if (p->fd < 0 || fstat(p->fd, &about) != 0)
        return tn_fail(TN_ERR_IO, "%s: %s cannot be opened: %s", call, p->path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return tn_fail(TN_ERR_IO, "%s: %s is no regular file, which alone can be mapped", call,
                       p->path);
    uint64_t n_bytes = (uint64_t)about.st_size;
    if (n_bytes < r->header_bytes || (n_bytes - r->header_bytes) % r->record_bytes != 0)
        return tn_fail(TN_ERR_IO,
                       "%s: %s has %" PRIu64 " bytes, which is no header of %" PRIu64
                       " and a whole number of records of %" PRIu64 "; get it again",
                       call, p->path, n_bytes, r->header_bytes, r->record_bytes);
    p->first = first;
    p->n = (int64_t)((n_bytes - r->header_bytes) / r->record_bytes);
    if (p->n == 0)
        return TN_OK;
    void *bytes = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, p->fd, 0);
    if (bytes == MAP_FAILED)
        return tn_fail(errno == ENOMEM ? TN_ERR_OUT_OF_MEMORY : TN_ERR_IO,
                       "%s: %s: no memory is mapped: %s", call, p->path, strerror(errno));
    p->bytes = bytes;
    p->n_bytes = n_bytes;
    return TN_OK;
}

/* Parts without records are closed again: no index leads to them. */
static tn_status open_parts(archive *a, const char *const *paths, uint64_t n, int64_t *out_length) {
    *out_length = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (!paths[i])
            return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: path %" PRIu64 " is NULL", call, i);
        part *p = &a->parts[a->n++];
        p->fd = -1;
        p->path = strdup(paths[i]);
        if (!p->path)
            return tn_fail(TN_ERR_OUT_OF_MEMORY, "%s: no memory for a path", call);
        tn_status status = open_part(p, &a->records, *out_length);
        if (status != TN_OK)
            return status;
        *out_length += p->n;
        if (p->n > 0)
            continue;
        close(p->fd);
        free(p->path);
        a->n--;
    }
    return TN_OK;
}

tn_status tn_dataset_init_records(tn_dataset *dataset, const char *const *paths, uint64_t n,
                                  const tn_data_records *records) {
    if (!dataset)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: dataset is NULL", call);
    *dataset = (tn_dataset){0};
    if (!paths || n < 1 || !records)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "%s: %" PRIu64 " paths%s, records%s; it takes at least 1", call, n,
                       paths ? "" : " at NULL", records ? "" : " at NULL");
    archive *a = calloc(1, sizeof *a);
    if (!a || !(a->parts = calloc(n, sizeof *a->parts))) {
        free(a);
        return tn_fail(TN_ERR_OUT_OF_MEMORY, "%s: no memory for %" PRIu64 " open files", call, n);
    }
    a->records = *records;
    int64_t length;
    tn_status status = check_records(records, a->field_bytes);
    if (status == TN_OK)
        status = open_parts(a, paths, n, &length);
    if (status != TN_OK) {
        finish_archive(a);
        return status;
    }
    *dataset = (tn_dataset){.length = length,
                            .n_fields = records->n_fields,
                            .read = read_record,
                            .finish = finish_archive,
                            .user = a};
    memcpy(dataset->fields, records->fields, sizeof dataset->fields);
    return TN_OK;
}
