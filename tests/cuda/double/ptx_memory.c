/* Loads, stores and atomics of a warp's lanes. Every address is checked: the host's memory is touched
 * only where the launch says that there is device memory, or shared, local, or the module's. */
#include "tests/cuda/double/ptx_execute.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- where memory lies ------------------------------------------------------------------- */

/* Of one lane's address: from here on there are `out_room` bytes. NULL: nothing. */
static unsigned char *find(ptx_block *block, const ptx_warp *warp, uint32_t lane, bool reads,
                           uint8_t space, uint64_t address, uint64_t *out_room) {
    uint64_t offset = address, size = 0;
    unsigned char *base = NULL;
    if (space == PTX_GENERIC || space == PTX_GLOBAL || space == PTX_PARAM) {
        uint8_t window = (uint8_t)PTX_SPACE_OF(address);
        offset = PTX_OFFSET_OF(address);
        bool fits = space == PTX_GENERIC || window == PTX_GENERIC || window == PTX_MODULE ||
                    (space == PTX_PARAM && (window == PTX_PARAM || window == PTX_LOCAL));
        if (!fits || (space == PTX_PARAM && window == PTX_GENERIC))
            return NULL;
        space = window;
    }
    switch (space) {
    case PTX_GENERIC: {
        for (uint32_t k = 0; k < block->n_ranges && !size; k++)
            if (offset >= block->ranges[k].begin && offset < block->ranges[k].end)
                block->last = block->ranges[k], size = 1;
        if (!size) {
            ptx_range range;
            if (!block->launch->find || !block->launch->find(block->launch->user, offset, &range) ||
                offset < range.begin || offset >= range.end)
                return NULL;
            if (block->n_ranges == block->room_ranges) {
                uint32_t room = block->room_ranges ? 2 * block->room_ranges : 16;
                ptx_range *moved = realloc(block->ranges, room * sizeof *moved);
                if (!moved)
                    return NULL;
                block->ranges = moved;
                block->room_ranges = room;
            }
            block->ranges[block->n_ranges++] = block->last = range;
        }
        base = block->last.host;
        offset -= block->last.begin;
        size = block->last.end - block->last.begin;
        break;
    }
    case PTX_SHARED:
        base = block->shared;
        size = block->shared_bytes;
        break;
    case PTX_LOCAL:
        base = warp->local + (size_t)lane * block->local_bytes;
        size = block->function->total_local;
        break;
    case PTX_PARAM:
        if (!reads)
            return NULL;
        base = (unsigned char *)(uintptr_t)block->launch->parameters;
        size = block->function->parameter_bytes;
        break;
    case PTX_MODULE:
        base = block->module->variables;
        size = block->module->n_variables;
        break;
    default:
        return NULL;
    }
    if (offset >= size)
        return NULL;
    *out_room = size - offset;
    return base + offset;
}

static const char *space_name(uint8_t space) {
    static const char *const names[] = {"",           "shared ",       "local ",
                                        "parameter ", "the module's ", "global "};
    return names[space];
}

static bool refuse(ptx_block *block, const ptx_warp *warp, uint32_t lane, const ptx_instruction *at,
                   uint8_t space, uint64_t address, uint32_t bytes, uint64_t room) {
    static const char *const verbs[] = {[PTX_LOAD] = "reads",
                                        [PTX_STORE] = "writes",
                                        [PTX_ATOMIC] = "changes",
                                        [PTX_ASYNC] = "copies"};
    if (address & (bytes - 1))
        return ptx_fault(block, warp, lane, at, PTX_MISALIGNED_ADDRESS,
                         "%s %u bytes at %saddress 0x%" PRIx64 ", which is no multiple of %u",
                         verbs[at->kind], bytes, space_name(space), address, bytes);
    if (room)
        return ptx_fault(block, warp, lane, at, PTX_ILLEGAL_ADDRESS,
                         "%s %u bytes at %saddress 0x%" PRIx64 ", of which %" PRIu64 " are there",
                         verbs[at->kind], bytes, space_name(space), address, room);
    return ptx_fault(block, warp, lane, at, PTX_ILLEGAL_ADDRESS,
                     "%s %u bytes at %saddress 0x%" PRIx64 ", where there is no memory",
                     verbs[at->kind], bytes, space_name(space), address);
}

bool ptx_resolve(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes,
                 uint8_t space, ptx_place place, int64_t offset, uint32_t bytes,
                 unsigned char *out[PTX_LANES]) {
    const uint64_t *row = ptx_row(warp, place);
    uint64_t least = UINT64_MAX, most = 0, all = 0;
    uint64_t add = (uint64_t)offset;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint64_t address = row[__builtin_ctz(left)] + add;
        least = address < least ? address : least;
        most = address > most ? address : most;
        all |= address;
    }
    /* All in one piece, as most are. */
    if (!(all & (bytes - 1))) {
        const void *memory = NULL;
        uint64_t begin = 0, stride = 0;
        if ((space == PTX_GLOBAL || space == PTX_GENERIC) && least >= block->last.begin &&
            most < block->last.end && block->last.end - most >= bytes) {
            memory = block->last.host;
            begin = block->last.begin;
        } else if (space == PTX_SHARED && most < block->shared_bytes &&
                   block->shared_bytes - most >= bytes) {
            memory = block->shared;
        } else if (space == PTX_LOCAL && most < block->function->total_local &&
                   block->function->total_local - most >= bytes) {
            memory = warp->local;
            stride = block->local_bytes;
        } else if (space == PTX_PARAM && at->kind == PTX_LOAD && PTX_SPACE_OF(least) == PTX_PARAM &&
                   PTX_SPACE_OF(most) == PTX_PARAM &&
                   PTX_OFFSET_OF(most) + bytes <= block->function->parameter_bytes) {
            memory = block->launch->parameters;
            begin = PTX_WINDOW(PTX_PARAM);
        }
        if (memory) {
            uint64_t from = (uint64_t)(uintptr_t)memory - begin + add;
            if (lanes == PTX_ALL)
                for (uint32_t l = 0; l < PTX_LANES; l++)
                    out[l] = (unsigned char *)(uintptr_t)(from + row[l] + l * stride);
            else
                for (uint32_t left = lanes; left; left &= left - 1) {
                    uint32_t l = (uint32_t)__builtin_ctz(left);
                    out[l] = (unsigned char *)(uintptr_t)(from + row[l] + l * stride);
                }
            return true;
        }
    }
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        uint64_t room = 0, address = row[l] + add;
        out[l] = address & (bytes - 1)
                     ? NULL
                     : find(block, warp, l, at->kind == PTX_LOAD, space, address, &room);
        if (!out[l] || room < bytes)
            return refuse(block, warp, l, at, space, address, bytes, out[l] ? room : 0);
    }
    return true;
}

/* ---- loads and stores -------------------------------------------------------------------- */

#define EACH(...) \
    if (lanes == PTX_ALL) { \
        for (uint32_t l = 0; l < PTX_LANES; l++) { \
            __VA_ARGS__ \
        } \
    } else { \
        for (uint32_t left = lanes; left; left &= left - 1) { \
            uint32_t l = (uint32_t)__builtin_ctz(left); \
            __VA_ARGS__ \
        } \
    }

/* D: the register's elements, M: the memory's. */
#define LOAD(D, M) \
    { \
        D *d = row; \
        EACH(M value; memcpy(&value, from[l] + skip, sizeof value); d[l] = (D)value;) \
        break; \
    }
#define STORE(D, M) \
    { \
        const D *d = row; \
        EACH(M value = (M)d[l]; memcpy(to[l] + skip, &value, sizeof value);) \
        break; \
    }
/* The case of an element's bytes in memory and in the register, and of extension by the sign. */
#define CASE(bytes, row, is_signed) ((bytes)*32 + (row)*2 + (is_signed))

static void load_element(void *row, unsigned char *const *from, size_t skip,
                         const ptx_instruction *at, uint32_t lanes) {
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

static void store_element(const void *row, unsigned char *const *to, size_t skip,
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
                          uint32_t lane, unsigned char *const *to) {
    unsigned char value[64];
    uint32_t bytes = (uint32_t)at->bytes * at->count;
    for (uint32_t k = 0; k < at->count; k++)
        memcpy(value + k * at->bytes,
               (const unsigned char *)ptx_row(warp, at->o[k]) + (size_t)lane * at->row, at->bytes);
    ptx_watch(block, warp, at, lane, to[lane], bytes, memcmp(value, to[lane], bytes) != 0);
    memcpy(to[lane], value, bytes);
}

bool ptx_load(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes) {
    unsigned char *from[PTX_LANES];
    if (!ptx_resolve(block, warp, at, lanes, at->space, at->o[8], at->offset,
                     (uint32_t)at->bytes * at->count, from))
        return false;
    for (uint32_t left = block->races ? lanes : 0; left; left &= left - 1)
        ptx_watch(block, warp, at, (uint32_t)__builtin_ctz(left), from[__builtin_ctz(left)],
                  (uint32_t)at->bytes * at->count, false);
    for (uint32_t k = 0; k < at->count; k++)
        if (at->o[k] != PTX_NOWHERE)
            load_element(ptx_row(warp, at->o[k]), from, (size_t)k * at->bytes, at, lanes);
    return true;
}

bool ptx_store(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes) {
    unsigned char *to[PTX_LANES];
    if (!ptx_resolve(block, warp, at, lanes, at->space, at->o[8], at->offset,
                     (uint32_t)at->bytes * at->count, to))
        return false;
    /* Lane by lane, as several may write to one place. */
    if (block->races) {
        for (uint32_t left = lanes; left; left &= left - 1)
            store_watched(block, warp, at, (uint32_t)__builtin_ctz(left), to);
        return true;
    }
    for (uint32_t k = 0; k < at->count; k++)
        store_element(ptx_row(warp, at->o[k]), to, (size_t)k * at->bytes, at, lanes);
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
        T *memory = (T *)(void *)to[l]; \
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
    unsigned char *to[PTX_LANES];
    if (!ptx_resolve(block, warp, at, lanes, at->space, at->o[8], at->offset, at->bytes, to))
        return false;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        if (block->races)
            ptx_watch(block, warp, at, l, to[l], at->bytes, true);
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
    unsigned char *to[PTX_LANES], *from[PTX_LANES] = {NULL};
    uint64_t bytes = at->o[0] != PTX_NOWHERE ? element(warp, at->o[0], 4, lane) : at->bytes;
    bytes = bytes < at->bytes ? bytes : at->bytes;
    if (!ptx_resolve(block, warp, at, 1u << lane, PTX_SHARED, at->o[8], at->offset, at->bytes,
                     to) ||
        (bytes &&
         !ptx_resolve(block, warp, at, 1u << lane, PTX_GLOBAL, at->o[9], 0, at->bytes, from)))
        return false;
    if (warp->n_copies == warp->room_copies) {
        uint32_t room = warp->room_copies ? 2 * warp->room_copies : 64;
        ptx_copy_ahead *moved = realloc(warp->copies, room * sizeof *moved);
        if (!moved)
            return ptx_fault(block, warp, lane, at, PTX_LAUNCH_FAILED, "no memory on the host");
        warp->copies = moved;
        warp->room_copies = room;
    }
    warp->copies[warp->n_copies++] = (ptx_copy_ahead){.to = to[lane],
                                                      .from = from[lane],
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
