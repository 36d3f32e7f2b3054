/* Which work items make which results, where each is made of a line of elements: as rows or
 * as columns, see device/team.h. It follows from shapes and strides and the device's traits. */
#ifndef TENON_GPU_TEAM_H
#define TENON_GPU_TEAM_H

#include "plugins/gpu/gpu.h"

enum {
    GPU_TEAM_SHORT = 16,    /* elements, too few for lanes */
    GPU_TEAM_ROOM = 1 << 20 /* what indices in 32 bits may exceed the number of elements by */
};

/* Lines and how they lie. */
typedef struct gpu_lines {
    int64_t n;             /* lines, */
    int64_t width, step;   /* of which so many are neighbours so far apart */
    int64_t length;        /* elements of a line, */
    int64_t run, run_step; /* of which so many are neighbours so far apart */
    bool in_order;         /* m is 1: what is in a line comes in order */
} gpu_lines;

typedef struct gpu_team {
    bool rows;
    int64_t l, m, p, w; /* as device/team.h has them */
    int64_t n_teams;
    int64_t per; /* teams of a work group, one after the other, besides p */
    int64_t groups;
    int64_t wanted; /* groups that keep the device busy */
} gpu_team;

/* Do lanes follow the lines? They follow memory, where that way is long enough. */
bool gpu_team_by_rows(const gpu_lines *lines);

void gpu_team_plan(gpu_team *team, const gpu_traits *traits, const gpu_lines *lines, bool rows);

/* What distinguishes a variant, in 20 bits; and its options. */
uint64_t gpu_team_key(const gpu_team *team);
#define GPU_TEAM_OPTIONS "-DROWS=%d -DL=%d -DM=%d -DP=%d -DW=%d"
#define GPU_TEAM_ARGUMENTS(t) (t)->rows, (int)(t)->l, (int)(t)->m, (int)(t)->p, (int)(t)->w

static inline uint64_t gpu_team_group(const gpu_team *team) {
    return (uint64_t)(team->l * team->m * team->p);
}

#endif /* TENON_GPU_TEAM_H */
