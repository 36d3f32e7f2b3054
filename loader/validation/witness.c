/* Level 2: the memory that a kernel must leave alone, before the call and after it. On a device
 * with streams all that is queued is waited for each time, so that nothing else can have written. */
#include "base/hash.h"
#include "loader/validation/internal.h"

#include <string.h>

enum {
    MAX_HASHED = 1 << 16, /* bytes of an input that are compared */
    PIECE = 4096          /* read at once */
};

static bool sum_of(const tni_watched_kernel *k, const tn_call *call, const tni_extent *e,
                   uint64_t *out) {
    char piece[PIECE];
    *out = 0;
    for (uint64_t at = e->low; at < e->high; at += PIECE) {
        uint64_t n = e->high - at < PIECE ? e->high - at : PIECE;
        if (!tni_peek(k->watch, call->device, e->view->memory, e->host, at, piece, n))
            return false;
        *out = *out * 31 + tni_hash(piece, n);
    }
    return true;
}

/* Can the tensor be compared: small, and an input that is none of the outputs? Of a call that was
 * declined the outputs are compared as well. */
static bool comparable(const tni_call_views *views, uint32_t i) {
    const tni_extent *e = &views->at[i];
    if (!e->dense || e->high - e->low > MAX_HASHED)
        return false;
    for (uint32_t j = 0; i >= views->n_outs && j < views->n_outs; j++)
        if (views->at[j].view->memory == e->view->memory && e->low < views->at[j].high &&
            views->at[j].low < e->high)
            return false;
    return true;
}

/* The range beside output `i` that nothing of the call may write; empty when something may. */
static void side_of(const tn_call *call, const tni_call_views *views, uint32_t i, int side,
                    uint64_t *low, uint64_t *high) {
    enum { N = TNI_NEIGHBOUR_BYTES };
    const tni_extent *e = &views->at[i];
    *low = side ? e->high : e->low > N ? e->low - N : 0;
    *high = side ? (e->bytes - e->high < N ? e->bytes : e->high + N) : e->low;
    for (uint32_t j = 0; j < views->n_outs; j++) {
        const tni_extent *o = &views->at[j];
        if (j != i && o->view->memory == e->view->memory && o->low < *high && *low < o->high)
            *low = *high;
    }
    if (call->workspace == e->view->memory && call->workspace_offset < *high &&
        *low < call->workspace_offset + call->workspace_bytes)
        *low = *high;
}

static bool is_alone(tni_watch *w) {
    return atomic_load(&w->caller) != TNI_MANY_CALLERS;
}

void tni_witness_begin(const tni_watched_kernel *k, const tn_call *call,
                       const tni_call_views *views, tni_witness *wit) {
    tni_watch *w = k->watch;
    wit->alone = is_alone(w);
    wit->on = views->whole && (!call->stream || (wit->alone && tni_still(w, call->device)));
    for (uint32_t i = 0; wit->on && i < views->n; i++)
        if (comparable(views, i))
            wit->on = sum_of(k, call, &views->at[i], &wit->sums[i]);
    for (uint32_t i = 0; wit->on && wit->alone && i < views->n_outs; i++) {
        for (int side = 0; side < 2; side++) {
            const tni_extent *e = &views->at[i];
            struct tni_neighbour *n = &wit->sides[i][side];
            uint64_t low, high;
            side_of(call, views, i, side, &low, &high);
            n->n = (uint32_t)(high - low);
            if (n->n && !tni_peek(w, call->device, e->view->memory, e->host, low, n->bytes, n->n))
                n->n = 0;
        }
    }
}

/* Only what no other thread can have written is held against the kernel. */
void tni_witness_end(const tni_watched_kernel *k, const tn_call *call, const tni_call_views *views,
                     const tni_witness *wit, bool declined) {
    tni_watch *w = k->watch;
    if (!wit->on || (call->stream && !(is_alone(w) && tni_still(w, call->device))))
        return;
    for (uint32_t i = declined ? 0 : views->n_outs; i < views->n; i++) {
        uint64_t now;
        if (!comparable(views, i) || !sum_of(k, call, &views->at[i], &now) || now == wit->sums[i])
            continue;
        if (i >= views->n_outs)
            tni_finding(w, TNP_KERNEL_WRITES_OUTPUTS_ONLY, "kernel->run", k->real.op,
                        "wrote into %s, an input", views->at[i].name);
        else
            tni_finding(w, TNP_SUPPORTED_RUNS, "kernel->run", k->real.op,
                        "wrote into %s and answered TN_ERR_UNSUPPORTED, with which nothing may be"
                        " written",
                        views->at[i].name);
    }
    for (uint32_t i = 0; wit->alone && is_alone(w) && i < views->n_outs; i++) {
        for (int side = 0; side < 2; side++) {
            const tni_extent *e = &views->at[i];
            const struct tni_neighbour *n = &wit->sides[i][side];
            char now[TNI_NEIGHBOUR_BYTES];
            uint64_t low, high;
            side_of(call, views, i, side, &low, &high);
            if (n->n && tni_peek(w, call->device, e->view->memory, e->host, low, now, high - low) &&
                memcmp(n->bytes, now, n->n) != 0)
                tni_finding(w, TNP_KERNEL_WRITES_OUTPUTS_ONLY, "kernel->run", k->real.op,
                            "wrote %s %s", side ? "behind" : "before", e->name);
        }
    }
}
