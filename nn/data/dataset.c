/* Datasets over tensors in host memory. */
#include "nn/data/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/device.h>
#include <tenon/io.h>
#include <tenon/ops.h>

/* ---- fields ------------------------------------------------------------------------------ */

tn_status tnn_field_bytes(const char *call, const char *what, const tn_data_field *fields,
                          uint32_t n, uint64_t *bytes) {
    if (n < 1 || n > TN_DATA_MAX_FIELDS)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: %s has %" PRIu32 " fields; it must be 1 to %d",
                       call, what, n, TN_DATA_MAX_FIELDS);
    for (uint32_t k = 0; k < n; k++) {
        const tn_data_field *f = &fields[k];
        int64_t size = tn_dtype_size(f->dtype), total = size;
        if (size <= 0)
            return tn_fail(TN_ERR_DTYPE, "%s: field %" PRIu32 " of %s is of no dtype (%d)", call, k,
                           what, (int)f->dtype);
        if (f->rank < 0 || f->rank > TN_DATA_MAX_RANK)
            return tn_fail(TN_ERR_SHAPE,
                           "%s: field %" PRIu32 " of %s has a shape that is none; it has 0 to %d"
                           " sizes",
                           call, k, what, TN_DATA_MAX_RANK);
        for (int32_t i = 0; i < f->rank; i++)
            if (f->sizes[i] < 0 || __builtin_mul_overflow(total, f->sizes[i], &total))
                return tn_fail(TN_ERR_SHAPE,
                               "%s: size %d of field %" PRIu32 " of %s is %" PRId64
                               "; it must be at least 0, and the bytes of a sample below 2^63",
                               call, (int)i, k, what, f->sizes[i]);
        bytes[k] = (uint64_t)total;
    }
    return TN_OK;
}

void tn_dataset_finish(tn_dataset *dataset) {
    if (!dataset)
        return;
    if (dataset->finish)
        dataset->finish(dataset->user);
    *dataset = (tn_dataset){0};
}

/* ---- tensors ----------------------------------------------------------------------------- */

typedef struct table {
    uint32_t n;
    struct {
        tn_tensor *tensor;    /* that is read where it is, kept; or NULL */
        void *copy;           /* owned; or NULL */
        const uint8_t *bytes; /* of either */
        uint64_t each;        /* of a sample */
    } columns[TN_DATA_MAX_FIELDS];
} table;

static tn_status read_tensors(void *user, int64_t index, void *const *out) {
    const table *t = user;
    for (uint32_t k = 0; k < t->n; k++)
        if (t->columns[k].each)
            memcpy(out[k], t->columns[k].bytes + (uint64_t)index * t->columns[k].each,
                   t->columns[k].each);
    return TN_OK;
}

static void finish_tensors(void *user) {
    table *t = user;
    for (uint32_t k = 0; t && k < t->n; k++) {
        tn_drop(t->columns[k].tensor);
        free(t->columns[k].copy);
    }
    free(t);
}

/* Where t's elements are, if that is host memory; NULL without an error. */
static const void *host_address(tn_tensor *t) {
    bool was_clear = tn_error_status() == TN_OK;
    const void *at = tn_is_contiguous(t) ? tn_data(t) : NULL;
    if (!at && was_clear)
        tn_error_clear();
    return at;
}

static tn_status add_column(table *t, uint32_t k, tn_tensor *tensor, uint64_t each, int64_t n) {
    t->columns[k].each = each;
    if (each == 0 || n == 0)
        return TN_OK;
    const void *at = host_address(tensor);
    if (at) {
        t->columns[k].bytes = at;
        t->columns[k].tensor = tn_keep(tensor);
        return tn_synchronize(tn_device_of(tensor));
    }
    uint64_t bytes = each * (uint64_t)n; /* of a tensor that there is */
    t->columns[k].bytes = t->columns[k].copy = malloc(bytes);
    if (!t->columns[k].copy)
        return tn_fail(TN_ERR_OUT_OF_MEMORY,
                       "tn_dataset_init_tensors: no memory for %" PRIu64 " bytes of tensor %" PRIu32
                       " on the host",
                       bytes, k);
    return tn_to_host(tensor, t->columns[k].copy, bytes);
}

static tn_status check_tensor(tn_tensor *t, uint64_t k, int64_t length) {
    if (!t || t == TN_NONE)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_dataset_init_tensors: tensor %" PRIu64 " is %s",
                       k, t ? "TN_NONE" : "NULL");
    if (tn_rank(t) < 1 || tn_size(t, 0) != length)
        return tn_fail(TN_ERR_SHAPE,
                       "tn_dataset_init_tensors: tensor %" PRIu64 " has %s%" PRId64
                       "; the first size of each is the number of samples, and that of tensor 0"
                       " is %" PRId64,
                       k, tn_rank(t) < 1 ? "a rank of " : "a first size of ",
                       tn_rank(t) < 1 ? 0 : tn_size(t, 0), length);
    return TN_OK;
}

tn_status tn_dataset_init_tensors(tn_dataset *dataset, tn_tensor *const *tensors, uint64_t n) {
    if (!dataset)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_dataset_init_tensors: dataset is NULL");
    *dataset = (tn_dataset){0};
    if (!tensors || n < 1 || n > TN_DATA_MAX_FIELDS)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_dataset_init_tensors: %" PRIu64 " tensors%s; it takes 1 to %d", n,
                       tensors ? "" : " at NULL", TN_DATA_MAX_FIELDS);
    int64_t length =
        tensors[0] && tensors[0] != TN_NONE && tn_rank(tensors[0]) > 0 ? tn_size(tensors[0], 0) : 0;
    table *t = calloc(1, sizeof *t);
    if (!t)
        return tn_fail(TN_ERR_OUT_OF_MEMORY, "tn_dataset_init_tensors: no memory for a dataset");
    tn_dataset made = {.length = length,
                       .n_fields = (uint32_t)n,
                       .read = read_tensors,
                       .finish = finish_tensors,
                       .user = t};
    t->n = (uint32_t)n;
    tn_status status = TN_OK;
    for (uint64_t k = 0; k < n && status == TN_OK; k++) {
        status = check_tensor(tensors[k], k, length);
        if (status != TN_OK)
            break;
        tn_ints sizes = tn_sizes(tensors[k]);
        made.fields[k] = tn_data_field_of(
            tn_dtype_of(tensors[k]), tn_ints_of(sizes.n > 1 ? sizes.data + 1 : NULL, sizes.n - 1));
    }
    uint64_t each[TN_DATA_MAX_FIELDS];
    if (status == TN_OK)
        status = tnn_field_bytes("tn_dataset_init_tensors", "the dataset", made.fields,
                                 made.n_fields, each);
    for (uint32_t k = 0; k < n && status == TN_OK; k++)
        status = add_column(t, k, tensors[k], each[k], length);
    if (status == TN_OK)
        *dataset = made;
    else
        finish_tensors(t);
    return status;
}

/* ---- IDX files --------------------------------------------------------------------------- */

tn_status tn_dataset_init_idx(tn_dataset *dataset, const char *const *paths, uint64_t n) {
    if (!dataset)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_dataset_init_idx: dataset is NULL");
    *dataset = (tn_dataset){0};
    if (!paths || n < 1 || n > TN_DATA_MAX_FIELDS)
        return tn_fail(TN_ERR_INVALID_ARGUMENT,
                       "tn_dataset_init_idx: %" PRIu64 " paths%s; it takes 1 to %d", n,
                       paths ? "" : " at NULL", TN_DATA_MAX_FIELDS);
    TN_SCOPE;
    tn_device cpu = tn_device_parse("cpu:0");
    tn_tensor *tensors[TN_DATA_MAX_FIELDS];
    for (uint64_t k = 0; k < n; k++)
        if (cpu.type == 0 || tn_idx_read(paths[k], cpu, &tensors[k]) != TN_OK)
            return tn_error_status();
    return tn_dataset_init_tensors(dataset, tensors, n);
}
