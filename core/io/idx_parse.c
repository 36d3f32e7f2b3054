/* The IDX format; see idx.h. Nothing here is believed before it was compared with what is there. */
#include "core/io/idx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static __attribute__((format(printf, 2, 3))) tn_status wrong(tni_idx *out, const char *how, ...) {
    va_list args;
    va_start(args, how);
    vsnprintf(out->problem, sizeof out->problem, how, args);
    va_end(args);
    return TN_ERR_IO;
}

static tn_dtype dtype_of(uint8_t type) {
    switch (type) {
    case 0x08:
        return TN_U8;
    case 0x09:
        return TN_I8;
    case 0x0b:
        return TN_I16;
    case 0x0c:
        return TN_I32;
    case 0x0d:
        return TN_F32;
    case 0x0e:
        return TN_F64;
    default:
        return TN_DTYPE_NONE;
    }
}

tn_status tni_idx_parse_header(const uint8_t *data, size_t n, tni_idx *out) {
    memset(out, 0, sizeof *out);
    if (n < 4)
        return TN_NOT_READY;
    out->dtype = dtype_of(data[2]);
    if (data[0] || data[1] || out->dtype == TN_DTYPE_NONE)
        return wrong(out,
                     "it starts with %02x %02x %02x %02x, but an IDX file starts with 00 00, a type"
                     " (08, 09, 0b, 0c, 0d or 0e) and the number of dimensions",
                     data[0], data[1], data[2], data[3]);
    if (data[3] == 0 || data[3] > TN_MAX_RANK)
        return wrong(out, "it has %u dimensions; 1 to %d can be read", data[3], TN_MAX_RANK);
    out->rank = data[3];
    out->header_bytes = 4 + 4 * (uint64_t)out->rank;
    if (n < out->header_bytes)
        return TN_NOT_READY;
    uint64_t bytes = (uint64_t)tn_dtype_size(out->dtype);
    for (int32_t i = 0; i < out->rank; i++) {
        const uint8_t *p = data + 4 + 4 * i;
        uint32_t size = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
        if (size == 0)
            return wrong(out, "dimension %d has size 0: the file has no elements", i);
        out->sizes[i] = size;
        bytes *= size; /* at most 2^31 * 2^32 */
        if (bytes > TNI_IDX_MAX_BYTES)
            return wrong(out, "its header asks for more than 2 GiB of elements; if that is what it"
                              " has, split the file");
    }
    out->element_bytes = bytes;
    return TN_OK;
}

tn_status tni_idx_parse(const uint8_t *data, size_t n, tni_idx *out) {
    tn_status status = tni_idx_parse_header(data, n, out);
    if (status == TN_NOT_READY)
        return wrong(out, "it ends after %zu bytes, inside the header; get it again", n);
    if (status != TN_OK)
        return status;
    uint64_t whole = out->header_bytes + out->element_bytes;
    if (n < whole)
        return wrong(out, "it is cut short: %zu bytes of %llu are there; get it again", n,
                     (unsigned long long)whole);
    if (n > whole)
        return wrong(out,
                     "bytes follow after the %llu that its header announces; it is damaged, or"
                     " not an IDX file",
                     (unsigned long long)whole);
    return TN_OK;
}

void tni_idx_to_host_order(void *elements, const tni_idx *idx) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint8_t *bytes = elements;
    size_t size = tn_dtype_size(idx->dtype);
    for (uint64_t at = 0; size > 1 && at < idx->element_bytes; at += size)
        for (size_t i = 0; i < size / 2; i++) {
            uint8_t low = bytes[at + i];
            bytes[at + i] = bytes[at + size - 1 - i];
            bytes[at + size - 1 - i] = low;
        }
#else
    (void)elements;
    (void)idx;
#endif
}
