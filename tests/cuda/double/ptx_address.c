/* Addresses of a warp's lanes. Every one is checked: the host's memory is touched only where the launch
 * says that there is device memory, or shared, local, or the module's. */
#include "tests/cuda/double/ptx_execute.h"

#include <inttypes.h>
#include <stdlib.h>

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

bool ptx_resolve(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes,
                 uint8_t space, ptx_place place, int64_t offset, uint32_t bytes, ptx_places *out) {
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
