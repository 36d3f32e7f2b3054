/* IDX in memory, apart from files and devices, so that it can be fuzzed.
 *
 *   00 00 | type | rank | size 0 ... size rank-1, 4 bytes each | elements, row-major
 *
 * All numbers are big-endian. Types: 08 u8, 09 i8, 0b i16, 0c i32, 0d f32, 0e f64. */
#ifndef TNI_CORE_IO_IDX_H
#define TNI_CORE_IO_IDX_H

#include <stddef.h>
#include <tenon/tensor.h>

#define TNI_IDX_MAX_BYTES ((uint64_t)1 << 31) /* of elements */

typedef struct tni_idx {
    tn_dtype dtype;
    int32_t rank;
    int64_t sizes[TN_MAX_RANK];
    uint64_t header_bytes;  /* the elements follow */
    uint64_t element_bytes; /* all of them */
    char problem[192];      /* what is wrong, when the status is not TN_OK */
} tni_idx;

/* Reads the header, of which `data` has the first n bytes. TN_NOT_READY: more bytes are needed. */
tn_status tni_idx_parse_header(const uint8_t *data, size_t n, tni_idx *out);

/* Reads a whole file's content. Sets no error: `problem` has the reason. */
tn_status tni_idx_parse(const uint8_t *data, size_t n, tni_idx *out);

/* Turns elements into the byte order of this machine, in place. */
void tni_idx_to_host_order(void *elements, const tni_idx *idx);

#endif
