/* Launches: the blocks of a grid one after the other, the warps of a block in turns. */
#include "tests/cuda/double/ptx_execute.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what went wrong --------------------------------------------------------------------- */

static void thread_of(const ptx_block *block, const ptx_warp *warp, uint32_t lane,
                      uint32_t out[3]) {
    const uint32_t *sides = block->launch->block;
    uint32_t thread = warp->index * PTX_LANES + lane;
    out[0] = thread % sides[0];
    out[1] = thread / sides[0] % sides[1];
    out[2] = thread / sides[0] / sides[1];
}

bool ptx_fault(ptx_block *block, const ptx_warp *warp, uint32_t lane, const ptx_instruction *at,
               ptx_result result, const char *format, ...) {
    uint32_t thread[3];
    const uint32_t *b = block->index;
    thread_of(block, warp, lane, thread);
    block->result = result;
    int n = snprintf(block->error, block->room,
                     "%s, line %u of its PTX: thread (%u, %u, %u) of block (%u, %u, %u): ",
                     block->function->name, at->line, thread[0], thread[1], thread[2], b[0], b[1],
                     b[2]);
    if (n >= 0 && (size_t)n < block->room) {
        va_list args;
        va_start(args, format);
        vsnprintf(block->error + n, block->room - (size_t)n, format, args);
        va_end(args);
    }
    return false;
}

/* ---- barriers ---------------------------------------------------------------------------- */

static void pass(ptx_block *block, uint32_t index) {
    ptx_barrier *barrier = &block->barriers[index];
    block->n_barriers++;
    for (uint32_t w = 0; w < block->n_warps; w++) {
        ptx_warp *warp = &block->warps[w];
        for (uint32_t left = warp->barred; left; left &= left - 1) {
            uint32_t l = (uint32_t)__builtin_ctz(left);
            if (warp->mask[l] != index)
                continue;
            const ptx_instruction *at = &block->module->code[warp->pc[l]++];
            warp->barred &= ~(1u << l);
            warp->barrier[l] = block->n_barriers;
            if (at->what == PTX_BARRIER_POPC) {
                ((uint32_t *)ptx_row(warp, at->o[0]))[l] = barrier->true_for;
            } else if (at->what != PTX_BARRIER_SYNC) {
                uint32_t *bits = ptx_row(warp, at->o[0]);
                bool value = at->what == PTX_BARRIER_AND ? barrier->true_for == barrier->arrived
                                                         : barrier->true_for != 0;
                *bits = (*bits & ~(1u << l)) | (uint32_t)value << l;
            }
        }
    }
    *barrier = (ptx_barrier){0};
}

void ptx_arrive_again(ptx_block *block) {
    for (uint32_t k = 0; k < PTX_BARRIERS; k++) {
        const ptx_barrier *barrier = &block->barriers[k];
        uint32_t needed = barrier->expected ? barrier->expected : block->n_live;
        if (barrier->arrived && barrier->arrived >= needed)
            pass(block, k);
    }
}

static bool arrive_at(ptx_block *block, ptx_warp *warp, uint32_t pc, uint32_t lanes, uint32_t index,
                      uint32_t expected) {
    const ptx_instruction *at = &block->module->code[pc];
    uint32_t first = (uint32_t)__builtin_ctz(lanes);
    if (index >= PTX_BARRIERS)
        return ptx_fault(block, warp, first, at, PTX_ILLEGAL_INSTRUCTION, "barrier %u of %d", index,
                         PTX_BARRIERS);
    if (expected % PTX_LANES)
        return ptx_fault(block, warp, first, at, PTX_ILLEGAL_INSTRUCTION,
                         "barrier %u of %u threads, which is no multiple of %d", index, expected,
                         PTX_LANES);
    ptx_barrier *barrier = &block->barriers[index];
    if (barrier->arrived && barrier->expected != expected)
        return ptx_fault(block, warp, first, at, PTX_ILLEGAL_INSTRUCTION,
                         "barrier %u of %u threads, where others wait for %u (0: all)", index,
                         expected, barrier->expected);
    for (uint32_t others = at->option ? warp->barred : 0; others; others &= others - 1) {
        uint32_t o = (uint32_t)__builtin_ctz(others);
        const ptx_instruction *its = &block->module->code[warp->pc[o]];
        if (warp->mask[o] == index && its != at && its->option)
            return ptx_fault(block, warp, first, at, PTX_ILLEGAL_INSTRUCTION,
                             "barrier %u, where lane %u of the same warp waits at line %u: all "
                             "lanes must come to the same one",
                             index, o, its->line);
    }
    barrier->arrived += (uint32_t)__builtin_popcount(lanes);
    barrier->expected = expected;
    if (at->o[3] != PTX_NOWHERE)
        barrier->true_for +=
            (uint32_t)__builtin_popcount(*(const uint32_t *)ptx_row(warp, at->o[3]) & lanes);
    bool waits = at->what != PTX_BARRIER_ARRIVE;
    block->n_barriers += !waits;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        warp->pc[l] = waits ? pc : pc + 1;
        if (waits)
            warp->mask[l] = index;
        else
            warp->barrier[l] = block->n_barriers;
    }
    warp->barred |= waits ? lanes : 0;
    return true;
}

bool ptx_arrive(ptx_block *block, ptx_warp *warp, uint32_t pc, uint32_t lanes) {
    const ptx_instruction *at = &block->module->code[pc];
    bool same = at->o[1] & PTX_CONSTANT && at->o[2] & PTX_CONSTANT; /* or nowhere */
    while (lanes) {
        uint32_t l = (uint32_t)__builtin_ctz(lanes);
        uint32_t index = ((const uint32_t *)ptx_row(warp, at->o[1]))[l];
        uint32_t expected =
            at->o[2] == PTX_NOWHERE ? 0 : ((const uint32_t *)ptx_row(warp, at->o[2]))[l];
        uint32_t together = same ? lanes : 1u << l;
        if (!arrive_at(block, warp, pc, together, index, expected))
            return false;
        lanes &= ~together;
    }
    ptx_arrive_again(block);
    return true;
}

void ptx_report_deadlock(ptx_block *block) {
    for (uint32_t w = 0; w < block->n_warps; w++) {
        const ptx_warp *warp = &block->warps[w];
        if (!warp->live)
            continue;
        uint32_t l = (uint32_t)__builtin_ctz(warp->live);
        const ptx_instruction *at = &block->module->code[warp->pc[l]];
        if (warp->together >> l & 1) {
            ptx_fault(block, warp, l, at, PTX_ILLEGAL_INSTRUCTION,
                      "waits for lanes 0x%08x of its warp, which can never be passed: 0x%08x are "
                      "there, 0x%08x wait "
                      "for the block, 0x%08x have not exited",
                      warp->mask[l], warp->together, warp->barred, warp->live);
        } else {
            const ptx_barrier *barrier = &block->barriers[warp->mask[l]];
            ptx_fault(block, warp, l, at, PTX_ILLEGAL_INSTRUCTION,
                      "barrier %u can never be passed: %u of %u threads are there, and no other "
                      "can go on",
                      warp->mask[l], barrier->arrived,
                      barrier->expected ? barrier->expected : block->n_live);
        }
        return;
    }
}

/* ---- blocks ------------------------------------------------------------------------------ */

static void fill(const ptx_warp *warp, ptx_special special, uint32_t value) {
    uint32_t *row = ptx_row(warp, PTX_SPECIAL + 2 * (ptx_place)special);
    for (uint32_t l = 0; l < PTX_LANES; l++)
        row[l] = value;
}

/* What does not differ from block to block. */
static void init_warp(ptx_block *block, ptx_warp *warp) {
    const ptx_launch *launch = block->launch;
    for (uint32_t l = 0; l < PTX_LANES; l++) {
        uint32_t thread[3];
        thread_of(block, warp, l, thread);
        for (uint32_t d = 0; d < 3; d++)
            ((uint32_t *)ptx_row(warp, PTX_SPECIAL + 2 * (PTX_TID_X + d)))[l] = thread[d];
        uint32_t bit = 1u << l;
        uint32_t masks[] = {bit, bit - 1, (bit - 1) | bit, ~((bit - 1) | bit), ~(bit - 1)};
        for (uint32_t k = 0; k < 5; k++)
            ((uint32_t *)ptx_row(warp, PTX_SPECIAL + 2 * (PTX_LANEMASK_EQ + k)))[l] = masks[k];
        ((uint32_t *)ptx_row(warp, PTX_SPECIAL + 2 * PTX_LANEID))[l] = l;
    }
    for (uint32_t d = 0; d < 3; d++) {
        fill(warp, PTX_NTID_X + d, launch->block[d]);
        fill(warp, PTX_NCTAID_X + d, launch->grid[d]);
    }
    fill(warp, PTX_WARPID, warp->index);
    fill(warp, PTX_NWARPID, block->n_warps);
    fill(warp, PTX_NSMID, 1);
    fill(warp, PTX_DYNAMIC_SMEM_SIZE, launch->dynamic_shared_bytes);
    fill(warp, PTX_TOTAL_SMEM_SIZE, block->shared_bytes);
}

static void begin_block(ptx_block *block) {
    /* What nobody wrote is no number. */
    if (block->shared)
        memset(block->shared, 0xff, block->shared_bytes);
    memset(block->barriers, 0, sizeof block->barriers);
    block->n_live = block->n_threads;
    block->n_barriers++;
    for (uint32_t w = 0; w < block->n_warps; w++) {
        ptx_warp *warp = &block->warps[w];
        uint32_t lanes = block->n_threads - w * PTX_LANES;
        warp->live = lanes >= PTX_LANES ? PTX_ALL : (1u << lanes) - 1;
        warp->together = warp->barred = warp->favoured = warp->n_copies = 0;
        for (uint32_t l = 0; l < PTX_LANES; l++)
            warp->pc[l] = block->function->begin;
        memset(warp->groups, 0, sizeof warp->groups);
        for (uint32_t l = 0; l < PTX_LANES; l++)
            warp->barrier[l] = block->n_barriers;
        for (uint32_t d = 0; d < 3; d++)
            fill(warp, PTX_CTAID_X + d, block->index[d]);
    }
}

static bool run_block(ptx_block *block) {
    begin_block(block);
    while (block->n_live) {
        bool moved = false;
        for (uint32_t w = 0; w < block->n_warps; w++) {
            ptx_warp *warp = &block->warps[w];
            if (!(warp->live & ~warp->together & ~warp->barred))
                continue;
            moved = true;
            if (ptx_warp_run(block, warp) == PTX_TURN_BROKEN)
                return false;
        }
        if (!moved) {
            ptx_report_deadlock(block);
            return false;
        }
    }
    return true;
}

/* ---- launches ---------------------------------------------------------------------------- */

static bool init_block(ptx_block *block) {
    const ptx_launch *launch = block->launch;
    block->n_threads = launch->block[0] * launch->block[1] * launch->block[2];
    block->n_warps = (block->n_threads + PTX_LANES - 1) / PTX_LANES;
    block->dynamic = (block->function->shared_bytes + 15) / 16 * 16;
    block->shared_bytes = launch->dynamic_shared_bytes
                              ? block->dynamic + launch->dynamic_shared_bytes
                              : block->function->shared_bytes;
    block->local_bytes = (block->function->total_local + 63) / 64 * 64;
    block->register_bytes = (size_t)(PTX_FIRST_REGISTER + block->function->total_units) * PTX_UNIT;
    size_t registers = block->register_bytes * block->n_warps + PTX_UNIT;
    block->warps = calloc(block->n_warps, sizeof *block->warps);
    block->memory = calloc(registers, 1);
    block->shared = block->shared_bytes
                        ? aligned_alloc(1024, (block->shared_bytes + 1023) / 1024 * 1024)
                        : NULL;
    size_t local = (size_t)block->local_bytes * PTX_LANES * block->n_warps;
    block->local = local ? aligned_alloc(64, local) : NULL;
    if (!block->warps || !block->memory || (block->shared_bytes && !block->shared) ||
        (local && !block->local))
        return false;
    if (!ptx_races_init(block))
        return false;
    if (local)
        memset(block->local, 0xff, local);
    uintptr_t first = ((uintptr_t)block->memory + PTX_UNIT - 1) / PTX_UNIT * PTX_UNIT;
    for (uint32_t w = 0; w < block->n_warps; w++) {
        ptx_warp *warp = &block->warps[w];
        warp->index = w;
        warp->rows[0] = (unsigned char *)first + w * block->register_bytes;
        warp->rows[1] = block->module->constants;
        warp->local =
            block->local ? block->local + (size_t)w * PTX_LANES * block->local_bytes : NULL;
        init_warp(block, warp);
    }
    return true;
}

static void finish_block(ptx_block *block) {
    for (uint32_t w = 0; w < block->n_warps && block->warps; w++)
        free(block->warps[w].copies);
    free(block->warps);
    free(block->memory);
    free(block->shared);
    free(block->local);
    free(block->ranges);
    ptx_races_finish(block);
}

ptx_result ptx_run(const ptx_launch *launch, char *error, size_t room) {
    ptx_block block = {.launch = launch,
                       .module = launch->kernel->module,
                       .function = (const ptx_function *)launch->kernel,
                       .result = PTX_DONE,
                       .error = error,
                       .room = room};
    if (!init_block(&block)) {
        snprintf(error, room, "%s: no memory on the host", block.function->name);
        finish_block(&block);
        return PTX_LAUNCH_FAILED;
    }
    bool done = true;
    for (uint32_t z = 0; z < launch->grid[2] && done; z++) {
        for (uint32_t y = 0; y < launch->grid[1] && done; y++) {
            for (uint32_t x = 0; x < launch->grid[0] && done; x++) {
                block.index[0] = x;
                block.index[1] = y;
                block.index[2] = z;
                done = run_block(&block);
            }
        }
    }
    finish_block(&block);
    if (launch->out_executed)
        *launch->out_executed = block.executed;
    return block.result;
}
