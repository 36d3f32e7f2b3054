/* A fast pass over all indices, and a slow one where it found something. */
#include "plugins/cpu/indices.h"
#include "plugins/cpu/iterate.h"

#include <stdatomic.h>

typedef struct check {
    tnc_plan plan; /* the index tensor */
    int64_t size;
    atomic_bool is_bad;
} check;

static void check_range(void *context, int64_t begin, int64_t end, int slot) {
    check *c = context;
    const tnc_plan *p = &c->plan;
    (void)slot;
    int64_t block[TNC_BLOCK], at[TN_MAX_RANK], n;
    for (int64_t i = begin; i < end; i += n) {
        n = tnc_min(TNC_BLOCK, end - i);
        const int64_t *index = (const int64_t *)p->operands[0].base + i;
        if (!p->operands[0].dense) {
            tnc_plan_seek(p, i, at);
            tnc_plan_move(p, &p->operands[0], at, block, n, false);
            index = block;
        }
        uint64_t largest = 0; /* a negative index is a large one */
        for (int64_t j = 0; j < n; j++)
            largest = (uint64_t)index[j] > largest ? (uint64_t)index[j] : largest;
        if (largest >= (uint64_t)c->size)
            atomic_store_explicit(&c->is_bad, true, memory_order_relaxed);
    }
}

bool tnc_find_bad_index(const tn_call *call, const tn_tensor_view *index, int64_t size,
                        int64_t *out_bad) {
    check c = {.size = size};
    const tnc_plan *p = &c.plan;
    tnc_plan_init(&c.plan, index);
    tnc_plan_add_view(&c.plan, index);
    tnc_plan_finish(&c.plan, false); /* in logical order, for the search below */
    tnc_parallel(call, p->numel, TNC_GRAIN, TNC_MAX_SLOTS, check_range, &c);
    if (!c.is_bad)
        return false;
    int64_t at[TN_MAX_RANK];
    for (int64_t i = 0; i < p->numel; i++) {
        tnc_plan_seek(p, i, at);
        memcpy(out_bad, tnc_plan_address(p, &p->operands[0], at), sizeof *out_bad);
        if ((uint64_t)*out_bad >= (uint64_t)size)
            break;
    }
    return true;
}
