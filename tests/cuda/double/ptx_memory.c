/* Loads, stores, atomics and asynchronous copies of a warp's lanes. */
#include "tests/cuda/double/ptx_execute.h"

#include <stdlib.h>
#include <string.h>

/* ---- loads and stores -------------------------------------------------------------------- */

/* For each lane l, with its memory at `memory`: one behind the other, as compilers make vectors of, one
 * step apart, or anywhere. */
#define EACH(M, ...) \
    if (p->even && p->step == sizeof(M)) { \
        for (uint32_t l = 0; l < PTX_LANES; l++) { \
            unsigned char *memory = (unsigned char *)(uintptr_t)(p->first + skip) + l * sizeof(M); \
            __VA_ARGS__ \
        } \
    } else if (p->even) { \
        for (uint32_t l = 0; l < PTX_LANES; l++) { \
            unsigned char *memory = (unsigned char *)(uintptr_t)(p->first + skip + l * p->step); \
            __VA_ARGS__ \
        } \
    } else { \
        const uint64_t *row_of_places = p->row; \
        uint64_t base = p->base + skip; \
        for (uint32_t left = lanes; left; left &= left - 1) { \
            uint32_t l = (uint32_t)__builtin_ctz(left); \
            unsigned char *memory = (unsigned char *)(uintptr_t)(base + row_of_places[l]); \
            __VA_ARGS__ \
        } \
    }

/* D: the register's elements, M: the memory's. */
#define LOAD(D, M) \
    { \
        D *d = row; \
        EACH(M, M value; memcpy(&value, memory, sizeof value); d[l] = (D)value;) \
        break; \
    }
#define STORE(D, M) \
    { \
        const D *d = row; \
        EACH(M, M value = (M)d[l]; memcpy(memory, &value, sizeof value);) \
        break; \
    }
/* The case of an element's bytes in memory and in the register, and of extension by the sign. */
#define CASE(bytes, row, is_signed) ((bytes)*32 + (row)*2 + (is_signed))

static void load_element(void *row, const ptx_places *p, size_t skip, const ptx_instruction *at,
                         uint32_t lanes) {
    bool same = at->bytes == at->row;
    switch (CASE(at->bytes, at->row, at->option && !same)) {
    case CASE(1, 2, 0):
        LOAD(uint16_t, uint8_t)
    case CASE(1, 4, 0):
        LOAD(uint32_t, uint8_t)
    case CASE(1, 8, 0):
        LOAD(uint64_t, uint8_t)
    case CASE(2, 2, 0):
        LOAD(uint16_t, uint16_t)
    case CASE(2, 4, 0):
        LOAD(uint32_t, uint16_t)
    case CASE(2, 8, 0):
        LOAD(uint64_t, uint16_t)
    case CASE(4, 4, 0):
        LOAD(uint32_t, uint32_t)
    case CASE(4, 8, 0):
        LOAD(uint64_t, uint32_t)
    case CASE(8, 8, 0):
        LOAD(uint64_t, uint64_t)
    case CASE(1, 2, 1):
        LOAD(int16_t, int8_t)
    case CASE(1, 4, 1):
        LOAD(int32_t, int8_t)
    case CASE(1, 8, 1):
        LOAD(int64_t, int8_t)
    case CASE(2, 4, 1):
        LOAD(int32_t, int16_t)
    case CASE(2, 8, 1):
        LOAD(int64_t, int16_t)
    case CASE(4, 8, 1):
        LOAD(int64_t, int32_t)
    default:
        abort();
    }
}

static void store_element(const void *row, const ptx_places *p, size_t skip,
                          const ptx_instruction *at, uint32_t lanes) {
    switch (CASE(at->bytes, at->row, 0)) {
    case CASE(1, 2, 0):
        STORE(uint16_t, uint8_t)
    case CASE(1, 4, 0):
        STORE(uint32_t, uint8_t)
    case CASE(1, 8, 0):
        STORE(uint64_t, uint8_t)
    case CASE(2, 2, 0):
        STORE(uint16_t, uint16_t)
    case CASE(2, 4, 0):
        STORE(uint32_t, uint16_t)
    case CASE(2, 8, 0):
        STORE(uint64_t, uint16_t)
    case CASE(4, 4, 0):
        STORE(uint32_t, uint32_t)
    case CASE(4, 8, 0):
        STORE(uint64_t, uint32_t)
    case CASE(8, 8, 0):
        STORE(uint64_t, uint64_t)
    default:
        abort();
    }
}

static void store_watched(ptx_block *block, const ptx_warp *warp, const ptx_instruction *at,
                          uint32_t lane, unsigned char *to) {
    unsigned char value[64];
    uint32_t bytes = (uint32_t)at->bytes * at->count;
    for (uint32_t k = 0; k < at->count; k++)
        memcpy(value + k * at->bytes,
               (const unsigned char *)ptx_row(warp, at->o[k]) + (size_t)lane * at->row, at->bytes);
    ptx_watch(block, warp, at, lane, to, bytes, memcmp(value, to, bytes) != 0);
    memcpy(to, value, bytes);
}

bool ptx_load(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes) {
    ptx_places from;
    if (!ptx_resolve(block, warp, at, lanes, at->space, at->o[8], at->offset,
                     (uint32_t)at->bytes * at->count, &from))
        return false;
    for (uint32_t left = block->races ? lanes : 0; left; left &= left - 1)
        ptx_watch(block, warp, at, (uint32_t)__builtin_ctz(left),
                  ptx_place_of(&from, (uint32_t)__builtin_ctz(left)),
                  (uint32_t)at->bytes * at->count, false);
    for (uint32_t k = 0; k < at->count; k++)
        if (at->o[k] != PTX_NOWHERE)
            load_element(ptx_row(warp, at->o[k]), &from, (size_t)k * at->bytes, at, lanes);
    return true;
}

bool ptx_store(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes) {
    ptx_places to;
    if (!ptx_resolve(block, warp, at, lanes, at->space, at->o[8], at->offset,
                     (uint32_t)at->bytes * at->count, &to))
        return false;
    /* Lane by lane, as several may write to one place. */
    if (block->races) {
        for (uint32_t left = lanes; left; left &= left - 1)
            store_watched(block, warp, at, (uint32_t)__builtin_ctz(left),
                          ptx_place_of(&to, (uint32_t)__builtin_ctz(left)));
        return true;
    }
    for (uint32_t k = 0; k < at->count; k++)
        store_element(ptx_row(warp, at->o[k]), &to, (size_t)k * at->bytes, at, lanes);
    return true;
}

/* ---- atomics ----------------------------------------------------------------------------- */

static float sum_float(float x, float y) {
    return x + y;
}
static double sum_double(double x, double y) {
    return x + y;
}

/* What the memory becomes. */
static uint64_t changed(const ptx_instruction *at, uint64_t old, uint64_t x, uint64_t y) {
    uint32_t bits = at->bytes * 8u;
    int64_t s = (int64_t)(old << (64 - bits)) >> (64 - bits);
    int64_t t = (int64_t)(x << (64 - bits)) >> (64 - bits);
    bool is_signed = at->number == PTX_SIGNED;
    switch ((ptx_atomic)at->what) {
    case PTX_ATOMIC_ADD:
        if (at->number == PTX_FLOAT && at->bytes == 4) {
            float a, b;
            memcpy(&a, &old, sizeof a);
            memcpy(&b, &x, sizeof b);
            a = sum_float(a, b);
            old = 0;
            memcpy(&old, &a, sizeof a);
            return old;
        }
        if (at->number == PTX_FLOAT) {
            double a, b;
            memcpy(&a, &old, sizeof a);
            memcpy(&b, &x, sizeof b);
            a = sum_double(a, b);
            memcpy(&old, &a, sizeof a);
            return old;
        }
        return old + x;
    case PTX_ATOMIC_EXCHANGE:
        return x;
    case PTX_ATOMIC_CAS:
        return old == x ? y : old;
    case PTX_ATOMIC_AND:
        return old & x;
    case PTX_ATOMIC_OR:
        return old | x;
    case PTX_ATOMIC_XOR:
        return old ^ x;
    case PTX_ATOMIC_MIN:
        return (is_signed ? t < s : x < old) ? x : old;
    case PTX_ATOMIC_MAX:
        return (is_signed ? t > s : x > old) ? x : old;
    case PTX_ATOMIC_INC:
        return old >= x ? 0 : old + 1;
    case PTX_ATOMIC_DEC:
        return old == 0 || old > x ? x : old - 1;
    }
    return old;
}

/* Other threads may run kernels that change the same. */
#define CHANGE(T) \
    { \
        T *memory = (T *)(void *)ptx_place_of(&to, l); \
        T old = __atomic_load_n(memory, __ATOMIC_SEQ_CST); \
        T new; \
        do { \
            new = (T)changed(at, old, x, y); \
        } while (!__atomic_compare_exchange_n(memory, &old, new, false, __ATOMIC_SEQ_CST, \
                                              __ATOMIC_SEQ_CST)); \
        if (at->o[0] != PTX_NOWHERE) \
            ((T *)ptx_row(warp, at->o[0]))[l] = old; \
        break; \
    }

static uint64_t element(const ptx_warp *warp, ptx_place place, uint32_t bytes, uint32_t lane) {
    uint64_t value = 0;
    memcpy(&value, (const unsigned char *)ptx_row(warp, place) + (size_t)lane * bytes, bytes);
    return value;
}

bool ptx_atomics(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes) {
    ptx_places to;
    if (!ptx_resolve(block, warp, at, lanes, at->space, at->o[8], at->offset, at->bytes, &to))
        return false;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        if (block->races)
            ptx_watch(block, warp, at, l, ptx_place_of(&to, l), at->bytes, true);
        uint64_t x = element(warp, at->o[1], at->row, l);
        uint64_t y = at->what == PTX_ATOMIC_CAS ? element(warp, at->o[2], at->row, l) : 0;
        switch (at->bytes) {
        case 2:
            CHANGE(uint16_t)
        case 4:
            CHANGE(uint32_t)
        default:
            CHANGE(uint64_t)
        }
    }
    return true;
}

/* ---- asynchronous copies ----------------------------------------------------------------- */

/* They are made as late as can be, so that what does not wait for them does not see them. */
static bool copy_ahead(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lane) {
    ptx_places to, from = {.even = false};
    uint64_t bytes = at->o[0] != PTX_NOWHERE ? element(warp, at->o[0], 4, lane) : at->bytes;
    bytes = bytes < at->bytes ? bytes : at->bytes;
    if (!ptx_resolve(block, warp, at, 1u << lane, PTX_SHARED, at->o[8], at->offset, at->bytes,
                     &to) ||
        (bytes &&
         !ptx_resolve(block, warp, at, 1u << lane, PTX_GLOBAL, at->o[9], 0, at->bytes, &from)))
        return false;
    if (warp->n_copies == warp->room_copies) {
        uint32_t room = warp->room_copies ? 2 * warp->room_copies : 64;
        ptx_copy_ahead *moved = realloc(warp->copies, room * sizeof *moved);
        if (!moved)
            return ptx_fault(block, warp, lane, at, PTX_LAUNCH_FAILED, "no memory on the host");
        warp->copies = moved;
        warp->room_copies = room;
    }
    warp->copies[warp->n_copies++] =
        (ptx_copy_ahead){.to = ptx_place_of(&to, lane),
                         .from = bytes ? ptx_place_of(&from, lane) : NULL,
                         .lane = lane,
                         .group = warp->groups[lane],
                         .bytes = at->bytes,
                         .n_read = (uint8_t)bytes};
    return true;
}

/* Those of the lanes, but for the last so many groups, and the open one. */
static void wait_for_copies(ptx_warp *warp, uint32_t lanes, bool all, uint64_t but) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < warp->n_copies; k++) {
        ptx_copy_ahead copy = warp->copies[k];
        if (lanes >> copy.lane & 1 && (all || copy.group + but < warp->groups[copy.lane])) {
            memset(copy.to, 0, copy.bytes);
            if (copy.n_read)
                memcpy(copy.to, copy.from, copy.n_read);
        } else {
            warp->copies[kept++] = copy;
        }
    }
    warp->n_copies = kept;
}

bool ptx_asynchronous(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes) {
    if (at->what == PTX_ASYNC_WAIT || at->what == PTX_ASYNC_WAIT_ALL)
        wait_for_copies(warp, lanes, at->what == PTX_ASYNC_WAIT_ALL, (uint64_t)at->offset);
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        if (at->what == PTX_ASYNC_COMMIT)
            warp->groups[l]++;
        else if (at->what == PTX_ASYNC_COPY && !copy_ahead(block, warp, at, l))
            return false;
    }
    return true;
}
