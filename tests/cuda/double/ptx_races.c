/* Races over shared memory: accesses to a byte by two threads, one of which writes, with no barrier
 * between them that both came to. Whoever was last is remembered for each byte, with the number of the
 * barrier that it had passed: as long as it has not passed another, nothing orders what it did before
 * what others do. Lanes of one warp are ordered by bar.warp.sync, too; shuffles and votes order no
 * memory. Atomics are no race with each other, and neither is writing what is there already.
 *
 * A thread that met some others at a barrier of a part of the block is taken to have met all, so that
 * such races may be missed; cp.async is not looked at. */
#include "tests/cuda/double/ptx_execute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct visit {
    uint64_t barrier, meeting; /* 0: nobody was here */
    uint32_t line;
    uint16_t warp;
    uint8_t lane, kind;
} visit;

/* Two readers, as the one may be the thread that writes afterwards. */
typedef struct trace {
    visit writer, readers[2];
} trace;

enum { MOST_TOLD = 32 };

struct ptx_races {
    trace *traces; /* of each byte */
    struct {
        uint32_t before, after;
    } told[MOST_TOLD]; /* pairs of lines */
    uint32_t n_told;
};

bool ptx_races_init(ptx_block *block) {
    if (!block->launch->race || !block->shared_bytes)
        return true;
    block->races = calloc(1, sizeof *block->races);
    if (block->races)
        block->races->traces = calloc(block->shared_bytes, sizeof *block->races->traces);
    return block->races && block->races->traces;
}

void ptx_races_finish(ptx_block *block) {
    if (block->races)
        free(block->races->traces);
    free(block->races);
}

static bool is_unordered(const ptx_block *block, const visit *before, const ptx_warp *warp,
                         uint32_t lane) {
    const ptx_warp *its = &block->warps[before->warp];
    if (!before->barrier || before->barrier != its->barrier[before->lane] ||
        (its == warp && before->lane == lane))
        return false;
    return its != warp || before->meeting == its->meeting[before->lane];
}

static void tell(ptx_block *block, const visit *before, const visit *after, const trace *at) {
    static const char *const verbs[] = {
        [PTX_LOAD] = "reads", [PTX_STORE] = "writes", [PTX_ATOMIC] = "changes"};
    struct ptx_races *races = block->races;
    uint32_t k = 0;
    while (k < races->n_told &&
           (races->told[k].before != before->line || races->told[k].after != after->line))
        k++;
    if (k < races->n_told || k == MOST_TOLD)
        return;
    races->told[k].before = before->line;
    races->told[k].after = after->line;
    races->n_told++;
    char text[384];
    snprintf(
        text, sizeof text,
        "%s: thread %u of block (%u, %u, %u) %s byte %u of shared memory in line %u of its PTX "
        "after thread %u %s it in line %u, with no barrier in between",
        block->function->name, after->warp * PTX_LANES + after->lane, block->index[0],
        block->index[1], block->index[2], verbs[after->kind], (unsigned)(at - races->traces),
        after->line, before->warp * PTX_LANES + before->lane, verbs[before->kind], before->line);
    block->launch->race(block->launch->user, text);
}

static void visit_byte(ptx_block *block, const ptx_warp *warp, const visit *now, trace *at,
                       bool changes) {
    bool reads = now->kind == PTX_LOAD, atomic = now->kind == PTX_ATOMIC;
    if (!(atomic && at->writer.kind == PTX_ATOMIC) && (reads || changes) &&
        is_unordered(block, &at->writer, warp, now->lane))
        tell(block, &at->writer, now, at);
    for (int k = 0; k < 2 && changes && !reads; k++)
        if (is_unordered(block, &at->readers[k], warp, now->lane))
            tell(block, &at->readers[k], now, at);
    if (!reads) {
        at->writer = *now;
        return;
    }
    if (at->readers[0].warp != now->warp || at->readers[0].lane != now->lane)
        at->readers[1] = at->readers[0];
    at->readers[0] = *now;
}

void ptx_watch(ptx_block *block, const ptx_warp *warp, const ptx_instruction *at, uint32_t lane,
               const unsigned char *memory, uint32_t bytes, bool changes) {
    if (memory < block->shared || memory >= block->shared + block->shared_bytes)
        return;
    visit now = {.barrier = warp->barrier[lane],
                 .meeting = warp->meeting[lane],
                 .line = at->line,
                 .warp = (uint16_t)warp->index,
                 .lane = (uint8_t)lane,
                 .kind = at->kind};
    trace *first = &block->races->traces[memory - block->shared];
    for (uint32_t k = 0; k < bytes; k++)
        visit_byte(block, warp, &now, first + k, changes);
}
