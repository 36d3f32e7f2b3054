/* The header of a safetensors file: its JSON, checked.
 *
 *     | N: u64, little-endian | JSON, N bytes, padded with spaces | the tensors' bytes ...
 */
#ifndef TNI_NN_SAFETENSORS_HEADER_H
#define TNI_NN_SAFETENSORS_HEADER_H

#include "nn/safetensors/dtype.h"

#include <jansson.h>
#include <stddef.h>

/* The limit of Python's library; real headers have some hundred bytes for each tensor. */
#define TNN_HEADER_MAX ((uint64_t)100000000)

typedef struct tnn_entry {
    const char *name; /* of the JSON */
    const tnn_dtype *dtype;
    int64_t shape[TN_MAX_RANK];
    int32_t rank;
    uint64_t begin, end; /* in bytes, from the end of the header */
} tnn_entry;

typedef struct tnn_header {
    json_t *json;       /* owned; holds the names */
    json_t *metadata;   /* of `json`: an object of strings; NULL: none */
    tnn_entry *entries; /* owned; as their bytes lie, without overlap or hole */
    uint64_t *by_name;  /* owned; their numbers, in the order of their names */
    uint64_t n;
} tnn_header;

/* Checks the JSON of `n` bytes, whose tensors must take exactly `n_data` bytes. `path` is for the
 * error. On failure there is nothing to finish. */
tn_status tnn_header_parse(tnn_header *out, const char *path, const char *text, size_t n,
                           uint64_t n_data);
void tnn_header_finish(tnn_header *header);

/* The number of the entry of that name; -1 where there is none. */
int64_t tnn_header_find(const tnn_header *header, const char *name);

/* Bytes of a shape's elements; false where they have no place in 63 bits or are no whole bytes. */
bool tnn_bytes_of(const tnn_dtype *dtype, const int64_t *shape, int32_t rank, uint64_t *out);

#endif
