/* SHA-256 (FIPS 180-4), by which a log says which file it speaks of. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_SHA256_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tc_sha256 {
    uint32_t h[8];
    uint64_t n; /* bytes so far */
    unsigned char block[64];
} tc_sha256;

enum { TC_SHA256_HEX = 65 };

void tc_sha256_init(tc_sha256 *s);
void tc_sha256_add(tc_sha256 *s, const void *data, size_t n);
/* Writes the digest in hexadecimal; `s` is spent. */
void tc_sha256_end(tc_sha256 *s, char out[TC_SHA256_HEX]);

/* False (errno says why) where the file cannot be read. */
bool tc_sha256_file(const char *path, char out[TC_SHA256_HEX]);

#endif
