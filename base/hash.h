/* 64-bit FNV-1a (Fowler, Noll and Vo): against accidents, not against attackers. */
#ifndef TNI_BASE_HASH_H
#define TNI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t tni_hash(const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
