/* See held.h. */
#include "plugin-sdk/conformance/worker/subject/held.h"

#include <stdatomic.h>

/* What is handed out in pieces is no smaller than one of them; pages of this size are usual. */
static const uint64_t PIECE = UINT64_C(2) << 20;
/* A device of any size gives this much, and one that does not say how large it is gives so much. */
static const uint64_t ALWAYS = UINT64_C(8) << 20, UNKNOWN = UINT64_C(32) << 20;

/* Allocations by what they are found with; those beyond what there is room for are not counted. */
enum { ROOM = 1 << 14, TRIES = 32 };

typedef struct entry {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint64_t bytes;
    _Atomic(const tn_device_impl *) device;
    _Atomic int32_t space;
} entry;

static entry entries[ROOM];

/* In pieces: given back in all, and by calls that have not returned. */
static _Atomic uint64_t given_back, giving;

#define GET(member) atomic_load_explicit(&(member), memory_order_relaxed)
#define SET(member, value) atomic_store_explicit(&(member), value, memory_order_relaxed)

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 32;
}

static uint64_t key_of(const tn_device_impl *device, int32_t space, tn_memory memory) {
    return mix(mix((uint64_t)(uintptr_t)device + (uint64_t)space) + memory) | 1;
}

void tc_held_add(const tn_device_impl *device, int32_t space, tn_memory memory, uint64_t bytes) {
    uint64_t key = key_of(device, space, memory);
    for (uint64_t i = 0; i < TRIES; i++) {
        entry *e = &entries[(key / 2 + i) % ROOM];
        uint64_t none = 0;
        if (GET(e->key) != 0 ||
            !atomic_compare_exchange_strong_explicit(&e->key, &none, key, memory_order_relaxed,
                                                     memory_order_relaxed))
            continue;
        SET(e->bytes, bytes);
        SET(e->device, device);
        SET(e->space, space);
        return;
    }
}

static void clear(entry *e) {
    SET(e->device, NULL);
    SET(e->key, 0);
}

static uint64_t in_pieces(uint64_t bytes) {
    return bytes > UINT64_MAX - PIECE ? UINT64_MAX / 2 : (bytes + PIECE - 1) / PIECE * PIECE;
}

uint64_t tc_held_remove(const tn_device_impl *device, int32_t space, tn_memory memory) {
    uint64_t key = key_of(device, space, memory);
    for (uint64_t i = 0; i < TRIES; i++) {
        entry *e = &entries[(key / 2 + i) % ROOM];
        if (GET(e->key) != key)
            continue;
        uint64_t bytes = in_pieces(GET(e->bytes));
        atomic_fetch_add_explicit(&giving, bytes, memory_order_relaxed);
        clear(e);
        return bytes;
    }
    return 0;
}

void tc_held_removed(uint64_t bytes) {
    atomic_fetch_add_explicit(&given_back, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&giving, bytes, memory_order_relaxed);
}

uint64_t tc_held_given(void) {
    return GET(given_back);
}

void tc_held_forget(const tn_device_impl *device) {
    for (uint64_t i = 0; i < ROOM; i++)
        if (GET(entries[i].key) && GET(entries[i].device) == device)
            clear(&entries[i]);
}

static uint64_t held(const tn_device_impl *device, int32_t space) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < ROOM; i++)
        if (GET(entries[i].key) && GET(entries[i].device) == device &&
            GET(entries[i].space) == space)
            sum += in_pieces(GET(entries[i].bytes));
    return sum;
}

/* Half of a device is the suite's to have: the other half is its driver's, and other programs'. What other
 * threads give back meanwhile was held when the device refused, and is free by the time `info` is asked. */
bool tc_held_fills(const tn_memory_ops *memory, tn_device_impl *device, int32_t space,
                   uint64_t bytes, uint64_t given) {
    tn_memory_info info = {.struct_size = sizeof info};
    uint64_t wanted = in_pieces(bytes), now = held(device, space);
    uint64_t back = GET(giving) + GET(given_back) - given;
    if (now + back + wanted <= ALWAYS)
        return false;
    bool known = TN_HAS(memory, tn_memory_ops, info) && memory->info &&
                 memory->info(device, space, &info) == TN_OK && info.total_bytes;
    if (!known)
        return now + back + wanted > UNKNOWN;
    back = GET(giving) + GET(given_back) - given;
    return now + back + wanted > info.total_bytes / 2 && info.free_bytes < wanted + back + PIECE;
}
