/* Walking through the elements of strided views.
 *
 * A walk visits an index space in row-major order for up to two views at once. Its innermost
 * dimension is left to the caller's loop:
 *
 *     sim_walk walk;
 *     sim_walk_init(&walk, rank, sizes, strides_a, strides_b);
 *     do
 *         for (int64_t i = 0; i < walk.n; i++)
 *             a[walk.offset[0] + i * walk.step[0]] = b[walk.offset[1] + i * walk.step[1]];
 *     while (sim_walk_next(&walk));
 *
 * Dimensions of size 1 are dropped and adjacent ones joined where the strides allow, so that a
 * contiguous view is one loop. After its last step a walk stands at the beginning again. */
#ifndef TNI_PLUGINS_SIM_VIEW_H
#define TNI_PLUGINS_SIM_VIEW_H

#include "plugins/sim/sim.h"

typedef struct sim_walk {
    int64_t n;         /* size of the innermost dimension */
    int64_t step[2];   /* and the strides along it */
    int64_t offset[2]; /* of its first element */
    int32_t rank;      /* of the dimensions outside of it */
    struct {
        int64_t size, at, stride[2];
    } dims[SIM_MAX_RANK + 1]; /* outermost first */
} sim_walk;

static inline void sim_walk_init(sim_walk *walk, int32_t rank, const int64_t *sizes,
                                 const int64_t *strides_a, const int64_t *strides_b) {
    int32_t n = 0; /* dims[n - 1] is the innermost so far */
    for (int32_t d = 0; d < rank; d++) {
        if (sizes[d] == 1)
            continue;
        if (n > 0 && walk->dims[n - 1].stride[0] == strides_a[d] * sizes[d] &&
            walk->dims[n - 1].stride[1] == strides_b[d] * sizes[d]) {
            walk->dims[n - 1].size *= sizes[d];
        } else {
            walk->dims[n].size = sizes[d];
            n++;
        }
        walk->dims[n - 1].at = 0;
        walk->dims[n - 1].stride[0] = strides_a[d];
        walk->dims[n - 1].stride[1] = strides_b[d];
    }
    walk->n = n ? walk->dims[n - 1].size : 1;
    walk->step[0] = n ? walk->dims[n - 1].stride[0] : 1;
    walk->step[1] = n ? walk->dims[n - 1].stride[1] : 1;
    walk->offset[0] = walk->offset[1] = 0;
    walk->rank = n ? n - 1 : 0;
}

/* On to the next innermost loop; false, and back to the first, when there is none. */
static inline bool sim_walk_next(sim_walk *walk) {
    for (int32_t d = walk->rank - 1; d >= 0; d--) {
        walk->offset[0] += walk->dims[d].stride[0];
        walk->offset[1] += walk->dims[d].stride[1];
        if (++walk->dims[d].at < walk->dims[d].size)
            return true;
        walk->offset[0] -= walk->dims[d].stride[0] * walk->dims[d].size;
        walk->offset[1] -= walk->dims[d].stride[1] * walk->dims[d].size;
        walk->dims[d].at = 0;
    }
    return false;
}

#endif
