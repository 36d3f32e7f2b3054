/* Which work items make which results, where each is made of a line of elements: as rows or
 * as columns, see device/tiling.h. It follows from shapes and strides and the device's traits. */
#ifndef TNI_PLUGINS_SHARED_GPU_TILING_H
#define TNI_PLUGINS_SHARED_GPU_TILING_H

#include "plugins/shared/gpu/gpu.h"

enum {
    GPU_TILING_SHORT = 16,    /* elements, too few for lanes */
    GPU_TILING_ROOM = 1 << 20 /* what indices in 32 bits may exceed the number of elements by */
};

/* Lines and how they lie. */
typedef struct gpu_lines {
    int64_t n;             /* lines, */
    int64_t width, step;   /* of which so many are neighbours so far apart */
    int64_t length;        /* elements of a line, */
    int64_t run, run_step; /* of which so many are neighbours so far apart */
    bool in_order;         /* m is 1: what is in a line comes in order */
    int64_t pack;          /* elements that 16 bytes have, where those of a run lie side by side in
                              all tensors; else 1 */
} gpu_lines;

typedef struct gpu_tiling {
    bool rows;
    int64_t l, m, p, w; /* as device/tiling.h has them */
    int64_t n_teams;
    int64_t per; /* teams of a work group, one after the other, besides p */
    int64_t groups;
    int64_t wanted; /* groups that keep the device busy */
} gpu_tiling;

/* Do lanes follow the lines? They follow memory, where that way is long enough. */
bool gpu_tiling_by_rows(const gpu_lines *lines);

void gpu_tiling_choose(gpu_tiling *team, const gpu_traits *traits, const gpu_lines *lines,
                       bool rows);

/* Of a GPU: how many times w elements a work item has of a line, a power of two, where it is few
 * enough of `bytes` each for registers to keep; else 0. */
int64_t gpu_tiling_steps(const gpu_tiling *team, const gpu_traits *traits, int64_t length,
                         int64_t bytes);

/* 16 bytes of a dtype, where `unit`: gpu_lines.pack. */
int64_t gpu_tiling_pack(tn_dtype dtype, bool unit);

/* What distinguishes a variant, in 20 bits; and its options. */
uint64_t gpu_tiling_key(const gpu_tiling *team);
#define GPU_TILING_OPTIONS "-DROWS=%d -DL=%d -DM=%d -DP=%d -DW=%d"
#define GPU_TILING_ARGUMENTS(t) (t)->rows, (int)(t)->l, (int)(t)->m, (int)(t)->p, (int)(t)->w

static inline uint64_t gpu_tiling_group(const gpu_tiling *team) {
    return (uint64_t)(team->l * team->m * team->p);
}

#endif
