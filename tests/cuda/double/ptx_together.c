/* What lanes of a warp do with each other: shuffles, votes, reductions. Each waits until all lanes that
 * its mask names have come, as far as they have not exited. */
#include "tests/cuda/double/ptx_execute.h"

#include <string.h>

/* What a lane gets from one that does not take part: nothing that a test would take for a result. */
#define UNDEFINED 0xffffffffu

static const ptx_instruction *instruction_of(const ptx_block *block, const ptx_warp *warp,
                                             uint32_t lane) {
    return &block->module->code[warp->pc[lane]];
}

static uint32_t word(const ptx_warp *warp, ptx_place place, uint32_t lane) {
    return ((const uint32_t *)ptx_row(warp, place))[lane];
}

static bool bit(const ptx_warp *warp, ptx_place place, uint32_t lane) {
    return *(const uint32_t *)ptx_row(warp, place) >> lane & 1;
}

static void write_bit(const ptx_warp *warp, ptx_place place, uint32_t lane, bool value) {
    uint32_t *bits = ptx_row(warp, place);
    *bits = (*bits & ~(1u << lane)) | (uint32_t)value << lane;
}

static uint64_t value_of(const ptx_warp *warp, const ptx_instruction *at, uint32_t lane) {
    switch ((ptx_together)at->what) {
    case PTX_VOTE_ALL:
    case PTX_VOTE_ANY:
    case PTX_VOTE_UNIFORM:
    case PTX_VOTE_BALLOT:
        return bit(warp, at->o[2], lane);
    case PTX_MATCH_ANY:
    case PTX_MATCH_ALL:
        return at->row == 8 ? ((const uint64_t *)ptx_row(warp, at->o[2]))[lane]
                            : word(warp, at->o[2], lane);
    case PTX_MEET:
    case PTX_ACTIVE_MASK:
    case PTX_ELECT:
        return 0;
    default:
        return word(warp, at->o[2], lane);
    }
}

static uint32_t source_lane(const ptx_warp *warp, const ptx_instruction *at, uint32_t lane,
                            bool *out_inside) {
    uint32_t b = word(warp, at->o[3], lane) & 31, c = word(warp, at->o[4], lane);
    uint32_t segment = c >> 8 & 31;
    uint32_t bound = (lane & segment) | (c & 31 & ~segment);
    uint32_t from;
    switch ((ptx_together)at->what) {
    case PTX_SHUFFLE_UP:
        from = lane - b;
        *out_inside = (int32_t)from >= (int32_t)bound;
        break;
    case PTX_SHUFFLE_DOWN:
        from = lane + b;
        *out_inside = from <= bound;
        break;
    case PTX_SHUFFLE_BUTTERFLY:
        from = lane ^ b;
        *out_inside = from <= bound;
        break;
    default:
        from = (lane & segment) | (b & ~segment);
        *out_inside = from <= bound;
        break;
    }
    return *out_inside ? from : lane;
}

static uint32_t reduced(const ptx_instruction *at, const uint64_t *values, uint32_t lanes) {
    uint32_t out = (uint32_t)values[__builtin_ctz(lanes)];
    for (uint32_t left = lanes & (lanes - 1); left; left &= left - 1) {
        uint32_t x = (uint32_t)values[__builtin_ctz(left)];
        bool less = at->number == PTX_SIGNED ? (int32_t)x < (int32_t)out : x < out;
        switch ((ptx_together)at->what) {
        case PTX_REDUCE_ADD:
            out += x;
            break;
        case PTX_REDUCE_MIN:
            out = less ? x : out;
            break;
        case PTX_REDUCE_MAX:
            out = less ? out : x;
            break;
        case PTX_REDUCE_AND:
            out &= x;
            break;
        case PTX_REDUCE_OR:
            out |= x;
            break;
        default:
            out ^= x;
            break;
        }
    }
    return out;
}

/* The result of one lane. `same`: lanes whose value is that of the first. */
static void finish(const ptx_warp *warp, const ptx_instruction *at, uint32_t lane, uint32_t lanes,
                   const uint64_t *values, uint32_t total) {
    uint32_t *d = at->o[0] == PTX_NOWHERE ? NULL : ptx_row(warp, at->o[0]);
    uint32_t set = 0, same = 0;
    bool inside = true;
    for (uint32_t left = lanes; left && at->what >= PTX_VOTE_ALL && at->what <= PTX_MATCH_ALL;
         left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        set |= (uint32_t)(values[l] != 0) << l;
        same |= (uint32_t)(values[l] == values[lane]) << l;
    }
    switch ((ptx_together)at->what) {
    case PTX_SHUFFLE_UP:
    case PTX_SHUFFLE_DOWN:
    case PTX_SHUFFLE_BUTTERFLY:
    case PTX_SHUFFLE_INDEX: {
        uint32_t from = source_lane(warp, at, lane, &inside);
        d[lane] = lanes >> from & 1 ? (uint32_t)values[from] : UNDEFINED;
        if (at->o[1] != PTX_NOWHERE)
            write_bit(warp, at->o[1], lane, inside);
        break;
    }
    case PTX_VOTE_ALL:
        write_bit(warp, at->o[0], lane, set == lanes);
        break;
    case PTX_VOTE_ANY:
        write_bit(warp, at->o[0], lane, set != 0);
        break;
    case PTX_VOTE_UNIFORM:
        write_bit(warp, at->o[0], lane, set == 0 || set == lanes);
        break;
    case PTX_VOTE_BALLOT:
        d[lane] = set;
        break;
    case PTX_MATCH_ANY:
        d[lane] = same;
        break;
    case PTX_MATCH_ALL:
        d[lane] = same == lanes ? lanes : 0;
        if (at->o[1] != PTX_NOWHERE)
            write_bit(warp, at->o[1], lane, same == lanes);
        break;
    case PTX_MEET:
        break;
    case PTX_ACTIVE_MASK:
        d[lane] = lanes;
        break;
    case PTX_ELECT:
        d[lane] = (uint32_t)__builtin_ctz(lanes);
        write_bit(warp, at->o[1], lane, lane == (uint32_t)__builtin_ctz(lanes));
        break;
    default:
        d[lane] = total;
        break;
    }
}

/* All lanes that take part, each at its own place of the code, go on. */
static void exchange(ptx_block *block, ptx_warp *warp, uint32_t lanes) {
    uint64_t values[PTX_LANES] = {0};
    uint32_t first = (uint32_t)__builtin_ctz(lanes);
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        values[l] = value_of(warp, instruction_of(block, warp, l), l);
    }
    const ptx_instruction *any = instruction_of(block, warp, first);
    bool reduces = any->what >= PTX_REDUCE_ADD && any->what <= PTX_REDUCE_XOR;
    uint32_t total = reduces ? reduced(any, values, lanes) : 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        finish(warp, instruction_of(block, warp, l), l, lanes, values, total);
    }
    for (uint32_t left = lanes; left; left &= left - 1) {
        warp->pc[__builtin_ctz(left)]++;
        warp->meeting[__builtin_ctz(left)] += any->what == PTX_MEET;
    }
    warp->together &= ~lanes;
}

/* All lanes that `lane` waits for are there, wait for the same lanes, and do the same. */
static bool is_complete(const ptx_block *block, const ptx_warp *warp, uint32_t lane,
                        uint32_t needed) {
    const ptx_instruction *at = instruction_of(block, warp, lane);
    if ((needed & warp->together) != needed)
        return false;
    for (uint32_t left = needed; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        if (warp->mask[l] != warp->mask[lane] || instruction_of(block, warp, l)->what != at->what)
            return false;
    }
    return true;
}

void ptx_meet_again(ptx_block *block, ptx_warp *warp) {
    for (uint32_t left = warp->together; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        uint32_t needed = warp->mask[l] & warp->live;
        if (warp->together >> l & 1 && is_complete(block, warp, l, needed))
            exchange(block, warp, needed);
    }
}

bool ptx_meet(ptx_block *block, ptx_warp *warp, uint32_t pc, uint32_t lanes) {
    const ptx_instruction *at = &block->module->code[pc];
    bool same = true;
    uint32_t first = (uint32_t)__builtin_ctz(lanes);
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        warp->pc[l] = pc;
        warp->mask[l] = at->what == PTX_ACTIVE_MASK ? lanes : word(warp, at->o[5], l);
        same &= warp->mask[l] == warp->mask[first];
        if (!(warp->mask[l] >> l & 1))
            return ptx_fault(block, warp, l, at, PTX_ILLEGAL_INSTRUCTION,
                             "is not in its own mask of lanes, 0x%08x", warp->mask[l]);
    }
    warp->together |= lanes;
    if (same && (warp->mask[first] & warp->live) == lanes)
        exchange(block, warp, lanes);
    else
        ptx_meet_again(block, warp);
    return true;
}
