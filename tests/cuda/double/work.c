/* Work, apart from what it does: counted, put into places of streams and into nodes of graphs. */
#include "tests/cuda/double/inside.h"

#include <stdlib.h>

/* ---- work -------------------------------------------------------------------------------- */

void *work_create(size_t bytes, CUgraphNodeType type, CUresult (*run)(work *, context *),
                  void (*finish)(work *)) {
    work *w = take(1, bytes);
    w->references = 1;
    w->type = type;
    w->run = run;
    w->finish = finish;
    return w;
}

work *work_keep(work *w) {
    w->references++;
    return w;
}

void work_drop(work *w) {
    if (!w || --w->references)
        return;
    if (w->finish)
        w->finish(w);
    free(w);
}

/* ---- plans ------------------------------------------------------------------------------- */

/* One node after another, each time any of those that may be next: an order that a dependency should
 * have ruled out comes up sooner or later. */
CUresult plan_run(plan *p, context *c, uint64_t *random) {
    bool *done = take(p->n_nodes, sizeof(*done));
    uint32_t *ready = take(p->n_nodes, sizeof(*ready));
    CUresult error = CUDA_SUCCESS;
    for (uint32_t n_done = 0; n_done < p->n_nodes && !error; n_done++) {
        uint32_t n_ready = 0;
        for (uint32_t i = 0; i < p->n_nodes; i++) {
            bool may = !done[i];
            for (uint32_t k = 0; k < p->nodes[i].n_after && may; k++)
                may = done[p->nodes[i].after[k]];
            if (may)
                ready[n_ready++] = i;
        }
        uint32_t chosen = ready[random_next(random) % n_ready];
        error = p->nodes[chosen].work->run(p->nodes[chosen].work, c);
        done[chosen] = true;
    }
    free(ready);
    free(done);
    return error;
}

/* ---- places in a stream ------------------------------------------------------------------ */

item *item_keep(item *i) {
    i->references++;
    return i;
}

void item_drop(item *i) {
    if (!i || --i->references)
        return;
    free(i);
}

void item_wait(item *i) {
    item_keep(i);
    while (!i->done)
        wait_for_change();
    item_drop(i);
}
