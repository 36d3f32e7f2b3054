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

/* Where lanes' memory lies on the host: `step` bytes apart from `first` on, or each where its row says,
 * which may be the register that the addresses came from. */
typedef struct places {
    bool even;
    uint64_t first, step;
    uint64_t base; /* added to the row's */
    const uint64_t *row;
    uint64_t own[PTX_LANES];
} places;

static unsigned char *place_of(const places *p, uint32_t lane) {
    uint64_t place = p->even ? p->first + lane * p->step : p->base + p->row[lane];
    return (unsigned char *)(uintptr_t)place;
}

/* A piece of memory: its addresses, where it lies, and how far apart those of lanes do. */
typedef struct piece {
    uint64_t begin, size, host, stride;
} piece;

/* The one that a lane's address is in, perhaps. */
static piece find_piece(ptx_block *block, const ptx_warp *warp, const ptx_instruction *at,
                        uint8_t space, uint64_t address) {
    switch (space) {
    case PTX_GENERIC:
    case PTX_GLOBAL:
        for (uint32_t k = 0; k < block->n_ranges &&
                             address - block->last.begin >= block->last.end - block->last.begin;
             k++)
            if (address >= block->ranges[k].begin && address < block->ranges[k].end)
                block->last = block->ranges[k];
        return (piece){.begin = block->last.begin,
                       .size = block->last.end - block->last.begin,
                       .host = (uintptr_t)block->last.host};
    case PTX_SHARED:
        return (piece){.size = block->shared_bytes, .host = (uintptr_t)block->shared};
    case PTX_LOCAL:
        return (piece){.size = block->function->total_local,
                       .host = (uintptr_t)warp->local,
                       .stride = block->local_bytes};
    case PTX_PARAM:
        return (piece){.begin = PTX_WINDOW(PTX_PARAM),
                       .size = at->kind == PTX_LOAD ? block->function->parameter_bytes : 0,
                       .host = (uintptr_t)block->launch->parameters};
    default:
        return (piece){.size = 0};
    }
}

/* Do addresses rise or fall by one step from lane to lane? Not over so much that they wrap. */
static bool is_even(const uint64_t *row, uint64_t *out_step) {
    uint64_t step = row[1] - row[0], differ = 0;
    for (uint32_t l = 1; l < PTX_LANES; l++)
        differ |= (row[l] - row[l - 1]) ^ step;
    *out_step = step;
    return !differ && step + (UINT64_C(1) << 50) < UINT64_C(1) << 51;
}

/* Do all lanes' `bytes` lie in the piece, aligned? The upper bit of `wrong` says that one does not. */
static bool are_inside(const uint64_t *row, uint64_t add, uint32_t lanes, bool even, uint64_t limit,
                       uint64_t begin, uint32_t bytes) {
    uint64_t wrong = 0, all = 0;
    if (even) {
        uint64_t first = row[0] + add - begin, last = row[PTX_LANES - 1] + add - begin;
        wrong = first | last | (limit - first) | (limit - last);
        all = (row[0] + add) | (row[1] + add);
    } else if (lanes == PTX_ALL) {
        for (uint32_t l = 0; l < PTX_LANES; l++) {
            uint64_t offset = row[l] + add - begin;
            wrong |= offset | (limit - offset);
            all |= row[l] + add;
        }
    } else {
        for (uint32_t left = lanes; left; left &= left - 1) {
            uint64_t address = row[__builtin_ctz(left)] + add, offset = address - begin;
            wrong |= offset | (limit - offset);
            all |= address;
        }
    }
    return !(wrong >> 63) && !(all & (bytes - 1));
}

/* Where the lanes' memory lies, checked. False: a fault. */
static bool resolve(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes,
                    uint8_t space, ptx_place place, int64_t offset, uint32_t bytes, places *out) {
    const uint64_t *row = ptx_row(warp, place);
    uint64_t add = (uint64_t)offset;
    piece all = find_piece(block, warp, at, space, row[__builtin_ctz(lanes)] + add);
    out->even = lanes == PTX_ALL && is_even(row, &out->step);
    out->base = all.host - all.begin + add;
    out->row = row;
    /* All in one piece, as most are. */
    if (all.size >= bytes &&
        are_inside(row, add, lanes, out->even, all.size - bytes, all.begin, bytes)) {
        out->first = out->base + row[0];
        out->step += all.stride;
        if (out->even || (!all.stride && at->count == 1))
            return true;
        for (uint32_t l = 0; l < PTX_LANES; l++)
            out->own[l] = row[l] + l * all.stride;
        out->row = out->own;
        return true;
    }
    out->even = false;
    out->base = 0;
    out->row = out->own;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        uint64_t room = 0, address = row[l] + add;
        unsigned char *memory = address & (bytes - 1) ? NULL
                                                      : find(block, warp, l, at->kind == PTX_LOAD,
                                                             space, address, &room);
        if (!memory || room < bytes)
            return refuse(block, warp, l, at, space, address, bytes, memory ? room : 0);
        out->own[l] = (uintptr_t)memory;
    }
    return true;
}

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

static void load_element(void *row, const places *p, size_t skip, const ptx_instruction *at,
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

static void store_element(const void *row, const places *p, size_t skip, const ptx_instruction *at,
                          uint32_t lanes) {
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
    places from;
    if (!resolve(block, warp, at, lanes, at->space, at->o[8], at->offset,
                 (uint32_t)at->bytes * at->count, &from))
        return false;
    for (uint32_t left = block->races ? lanes : 0; left; left &= left - 1)
        ptx_watch(block, warp, at, (uint32_t)__builtin_ctz(left),
                  place_of(&from, (uint32_t)__builtin_ctz(left)), (uint32_t)at->bytes * at->count,
                  false);
    for (uint32_t k = 0; k < at->count; k++)
        if (at->o[k] != PTX_NOWHERE)
            load_element(ptx_row(warp, at->o[k]), &from, (size_t)k * at->bytes, at, lanes);
    return true;
}

bool ptx_store(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes) {
    places to;
    if (!resolve(block, warp, at, lanes, at->space, at->o[8], at->offset,
                 (uint32_t)at->bytes * at->count, &to))
        return false;
    /* Lane by lane, as several may write to one place. */
    if (block->races) {
        for (uint32_t left = lanes; left; left &= left - 1)
            store_watched(block, warp, at, (uint32_t)__builtin_ctz(left),
                          place_of(&to, (uint32_t)__builtin_ctz(left)));
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
        T *memory = (T *)(void *)place_of(&to, l); \
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
    places to;
    if (!resolve(block, warp, at, lanes, at->space, at->o[8], at->offset, at->bytes, &to))
        return false;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        if (block->races)
            ptx_watch(block, warp, at, l, place_of(&to, l), at->bytes, true);
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
    places to, from = {.even = false};
    uint64_t bytes = at->o[0] != PTX_NOWHERE ? element(warp, at->o[0], 4, lane) : at->bytes;
    bytes = bytes < at->bytes ? bytes : at->bytes;
    if (!resolve(block, warp, at, 1u << lane, PTX_SHARED, at->o[8], at->offset, at->bytes, &to) ||
        (bytes && !resolve(block, warp, at, 1u << lane, PTX_GLOBAL, at->o[9], 0, at->bytes, &from)))
        return false;
    if (warp->n_copies == warp->room_copies) {
        uint32_t room = warp->room_copies ? 2 * warp->room_copies : 64;
        ptx_copy_ahead *moved = realloc(warp->copies, room * sizeof *moved);
        if (!moved)
            return ptx_fault(block, warp, lane, at, PTX_LAUNCH_FAILED, "no memory on the host");
        warp->copies = moved;
        warp->room_copies = room;
    }
    warp->copies[warp->n_copies++] = (ptx_copy_ahead){.to = place_of(&to, lane),
                                                      .from = bytes ? place_of(&from, lane) : NULL,
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
