/* A launch that is under way: the block that runs, its warps, and what went wrong. */
#ifndef TNI_TESTS_CUDA_DOUBLE_PTX_EXECUTE_H
#define TNI_TESTS_CUDA_DOUBLE_PTX_EXECUTE_H

#include "tests/cuda/double/ptx_code.h"

enum { PTX_BARRIERS = 16 };

typedef struct ptx_barrier {
    uint32_t arrived;  /* threads */
    uint32_t expected; /* 0: all of the block that have not exited */
    uint32_t true_for; /* threads, of a reduction */
} ptx_barrier;

struct ptx_block {
    const ptx_launch *launch;
    const ptx_module *module;
    const ptx_function *function;
    uint32_t index[3];
    ptx_warp *warps;
    uint32_t n_warps;
    uint32_t n_threads, n_live;
    unsigned char *memory, *shared, *local; /* the first is of the registers */
    uint32_t shared_bytes, dynamic;         /* and where the dynamic begins */
    uint32_t local_bytes;                   /* of a thread, with room to the next */
    size_t register_bytes;                  /* of a warp */
    ptx_barrier barriers[PTX_BARRIERS];
    ptx_range *ranges; /* that were found; the last is asked first */
    uint32_t n_ranges, room_ranges;
    ptx_range last;
    uint64_t executed;       /* instructions times lanes */
    uint64_t n_barriers;     /* passed so far, by all blocks */
    struct ptx_races *races; /* NULL: not looked for */
    ptx_result result;
    char *error;
    size_t room;
};

typedef enum ptx_turn {
    PTX_TURN_OVER,    /* all lanes have exited */
    PTX_TURN_WAITS,   /* no lane can go on */
    PTX_TURN_BROKEN,  /* block->result says how */
    PTX_TURN_YIELDED, /* it ran for long */
} ptx_turn;

ptx_turn ptx_warp_run(ptx_block *block, ptx_warp *warp);

/* Writes what happened to a lane, and returns false. */
bool ptx_fault(ptx_block *block, const ptx_warp *warp, uint32_t lane, const ptx_instruction *at,
               ptx_result result, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Where lanes' memory lies on the host: `step` bytes apart from `first` on, or each where its row says,
 * which may be the register that the addresses came from. */
typedef struct ptx_places {
    bool even;
    uint64_t first, step;
    uint64_t base; /* added to the row's */
    const uint64_t *row;
    uint64_t own[PTX_LANES];
} ptx_places;

static inline unsigned char *ptx_place_of(const ptx_places *p, uint32_t lane) {
    uint64_t place = p->even ? p->first + lane * p->step : p->base + p->row[lane];
    return (unsigned char *)(uintptr_t)place;
}

/* Where the lanes' memory lies, checked. False: a fault. */
bool ptx_resolve(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes,
                 uint8_t space, ptx_place place, int64_t offset, uint32_t bytes, ptx_places *out);

/* False: a fault. */
bool ptx_load(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes);
bool ptx_store(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes);
bool ptx_atomics(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes);
bool ptx_asynchronous(ptx_block *block, ptx_warp *warp, const ptx_instruction *at, uint32_t lanes);
/* Races over shared memory, if the launch asks for them. Before a lane's access; `changes`: it writes
 * another value than there is. */
bool ptx_races_init(ptx_block *block);
void ptx_races_finish(ptx_block *block);
void ptx_watch(ptx_block *block, const ptx_warp *warp, const ptx_instruction *at, uint32_t lane,
               const unsigned char *memory, uint32_t bytes, bool changes);

/* Lanes arrive where they wait for others of the warp; those that need not wait any longer go on. */
bool ptx_meet(ptx_block *block, ptx_warp *warp, uint32_t pc, uint32_t lanes);
/* After a lane exited. */
void ptx_meet_again(ptx_block *block, ptx_warp *warp);

/* The same for barriers of the block. */
bool ptx_arrive(ptx_block *block, ptx_warp *warp, uint32_t pc, uint32_t lanes);
void ptx_arrive_again(ptx_block *block);
/* No thread can go on: says which wait for what. */
void ptx_report_deadlock(ptx_block *block);

#endif
