/* A warp goes through the code: those of its lanes that are at the least place, until they part, meet
 * others, or wait. */
#include "tests/cuda/double/ptx_execute.h"

#include <string.h>
#include <time.h>

/* Branches that a warp takes before the block's other warps have their turn: one may wait for another
 * without a barrier, and lanes of one warp for each other, too. */
enum { TURN = 1 << 16 };

typedef struct group {
    uint32_t pc, lanes;
    uint32_t other; /* the least place of lanes that could run and are not of the group */
} group;

static group choose(const ptx_warp *warp) {
    group g = {.pc = UINT32_MAX, .other = UINT32_MAX};
    uint32_t able = warp->live & ~warp->together & ~warp->barred;
    /* In a turn after one that ended while lanes were apart, those that had none go first. */
    uint32_t favoured = able & warp->favoured;
    for (uint32_t left = favoured ? favoured : able; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        if (warp->pc[l] < g.pc) {
            g.other = g.pc;
            g.pc = warp->pc[l];
            g.lanes = 1u << l;
        } else if (warp->pc[l] == g.pc) {
            g.lanes |= 1u << l;
        } else if (warp->pc[l] < g.other) {
            g.other = warp->pc[l];
        }
    }
    return g;
}

static void put(ptx_warp *warp, uint32_t lanes, uint32_t pc) {
    for (; lanes; lanes &= lanes - 1)
        warp->pc[__builtin_ctz(lanes)] = pc;
}

static void write_clock(const ptx_warp *warp, const ptx_instruction *at, uint32_t lanes) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ticks = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    ticks = at->option ? ticks >> 32 : ticks;
    unsigned char *row = ptx_row(warp, at->o[0]);
    for (; lanes; lanes &= lanes - 1)
        memcpy(row + (size_t)__builtin_ctz(lanes) * at->row, &ticks, at->row);
}

static void write_address(const ptx_block *block, const ptx_warp *warp, const ptx_instruction *at,
                          uint32_t lanes) {
    uint64_t address = (uint64_t)at->offset;
    if (at->base == PTX_BASE_COMMON)
        address += block->function->common;
    else if (at->base == PTX_BASE_DYNAMIC)
        address += block->dynamic;
    unsigned char *row = ptx_row(warp, at->o[0]);
    for (; lanes; lanes &= lanes - 1)
        memcpy(row + (size_t)__builtin_ctz(lanes) * at->row, &address, at->row);
}

/* The other function's parameters or result lie in the same lane's local memory. */
static void copy_local(const ptx_block *block, const ptx_warp *warp, const ptx_instruction *at,
                       uint32_t lanes) {
    for (; lanes; lanes &= lanes - 1) {
        unsigned char *local = warp->local + (size_t)__builtin_ctz(lanes) * block->local_bytes;
        unsigned char *ours = local + at->offset, *theirs = local + at->o[0];
        memcpy(at->option ? ours : theirs, at->option ? theirs : ours, at->o[1]);
    }
}

static void leave(ptx_block *block, ptx_warp *warp, uint32_t lanes) {
    warp->live &= ~lanes;
    block->n_live -= (uint32_t)__builtin_popcount(lanes);
    if (warp->together)
        ptx_meet_again(block, warp);
    ptx_arrive_again(block);
}

static bool go_to_entry(ptx_block *block, ptx_warp *warp, const ptx_instruction *at,
                        uint32_t lanes) {
    const ptx_targets *targets = &block->module->targets[at->target];
    const uint32_t *index = ptx_row(warp, at->o[0]);
    for (; lanes; lanes &= lanes - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(lanes);
        if (index[l] >= targets->n_places)
            return ptx_fault(block, warp, l, at, PTX_ILLEGAL_INSTRUCTION,
                             "brx.idx to target %u of %u", index[l], targets->n_places);
        warp->pc[l] = targets->places[index[l]];
    }
    return true;
}

ptx_turn ptx_warp_run(ptx_block *block, ptx_warp *warp) {
    const ptx_instruction *code = block->module->code;
    uint32_t budget = TURN;
    for (;;) {
        group g = choose(warp);
        if (!g.lanes)
            return warp->live ? PTX_TURN_WAITS : PTX_TURN_OVER;
        uint32_t pc = g.pc, active = g.lanes, other = g.other;
        /* What lanes that are no more have in their registers does not matter. */
        uint32_t wide = active == warp->live ? PTX_ALL : active;
        uint64_t steps = 0;
        bool apart = false; /* places are in warp->pc */
        do {
            const ptx_instruction *at = &code[pc];
            uint32_t lanes = wide;
            steps++;
            if (at->guard != PTX_NOWHERE) {
                uint32_t guard = *(const uint32_t *)ptx_row(warp, at->guard);
                lanes &= at->negated ? ~guard : guard;
                if (!(lanes & active)) {
                    pc++;
                    continue;
                }
            }
            if (at->kind == PTX_ALU) {
                at->run(warp, at, lanes);
                pc++;
                continue;
            }
            lanes &= active;
            switch ((ptx_kind)at->kind) {
            case PTX_LOAD:
                if (!ptx_load(block, warp, at, lanes))
                    return PTX_TURN_BROKEN;
                pc++;
                break;
            case PTX_STORE:
                if (!ptx_store(block, warp, at, lanes))
                    return PTX_TURN_BROKEN;
                pc++;
                break;
            case PTX_ATOMIC:
                if (!ptx_atomics(block, warp, at, lanes))
                    return PTX_TURN_BROKEN;
                pc++;
                break;
            case PTX_ASYNC:
                if (!ptx_asynchronous(block, warp, at, lanes))
                    return PTX_TURN_BROKEN;
                pc++;
                break;
            case PTX_CLOCK:
                write_clock(warp, at, lanes);
                pc++;
                break;
            case PTX_ADDRESS:
                write_address(block, warp, at, lanes);
                pc++;
                break;
            case PTX_COPY:
                copy_local(block, warp, at, lanes);
                pc++;
                break;
            case PTX_BRANCH:
                budget--;
                if (lanes == active) {
                    pc = at->target;
                } else {
                    put(warp, active & ~lanes, pc + 1);
                    put(warp, lanes, at->target);
                    apart = true;
                }
                break;
            case PTX_BRANCH_INDEXED:
                budget--;
                put(warp, active & ~lanes, pc + 1);
                if (!go_to_entry(block, warp, at, lanes))
                    return PTX_TURN_BROKEN;
                apart = true;
                break;
            case PTX_CALL: {
                uint32_t *back = ptx_row(warp, at->o[0]);
                for (uint32_t left = lanes; left; left &= left - 1)
                    back[__builtin_ctz(left)] = pc + 1;
                put(warp, active & ~lanes, pc + 1);
                put(warp, lanes, at->target);
                apart = true;
                break;
            }
            case PTX_RETURN: {
                const uint32_t *back = ptx_row(warp, at->o[0]);
                put(warp, active & ~lanes, pc + 1);
                for (uint32_t left = lanes; left; left &= left - 1)
                    warp->pc[__builtin_ctz(left)] = back[__builtin_ctz(left)];
                apart = true;
                break;
            }
            case PTX_EXIT:
                put(warp, active & ~lanes, pc + 1);
                leave(block, warp, lanes);
                apart = true;
                break;
            case PTX_TOGETHER:
                put(warp, active & ~lanes, pc + 1);
                if (!ptx_meet(block, warp, pc, lanes))
                    return PTX_TURN_BROKEN;
                if (lanes == active && !(warp->together & lanes))
                    pc++;
                else
                    apart = true;
                break;
            case PTX_BARRIER:
                put(warp, active & ~lanes, pc + 1);
                if (!ptx_arrive(block, warp, pc, lanes))
                    return PTX_TURN_BROKEN;
                apart = true;
                break;
            case PTX_TRAP:
            case PTX_ALU:
                ptx_fault(block, warp, (uint32_t)__builtin_ctz(lanes), at, PTX_ILLEGAL_INSTRUCTION,
                          "trap");
                return PTX_TURN_BROKEN;
            }
        } while (!apart && pc < other && budget);
        if (!apart)
            put(warp, active, pc);
        block->executed += steps * (uint32_t)__builtin_popcount(active);
        if (!budget) {
            /* If lanes wait for others of the warp that would never be the first, they are next. */
            uint32_t had = warp->favoured ? warp->favoured : active;
            warp->favoured = active == warp->live ? 0 : warp->live & ~had;
            return PTX_TURN_YIELDED;
        }
    }
}
