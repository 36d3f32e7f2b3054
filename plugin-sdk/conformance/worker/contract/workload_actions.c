/* Workloads: what streams do, and what becomes of the models. */
#include "plugin-sdk/conformance/worker/contract/workload.h"

#include <string.h>
#include <tenon/kernels.h>

#include "plugin-sdk/conformance/worker/poison.h"
#include "plugin-sdk/conformance/worker/subject/watch.h"

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static tc_place *place(tc_workload *w, int device, int i) {
    return &w->places[device][i];
}

/* Where a lane of `device` finds `a`. */
static tc_place *first_place(tc_workload *w, const tc_action *a, int device) {
    return place(w, a->kind == TC_ACT_PEER ? 1 - device : device, a->a);
}

/* ---- drawing ----------------------------------------------------------------------------- */

/* Ranges of `bytes` in memory of so many; now and then nothing, at its end too. */
static void draw_ranges(tc_workload *w, tc_action *a, uint64_t from_bytes, uint64_t to_bytes) {
    a->from = tc_workload_below(w, from_bytes + 1);
    a->to = tc_workload_below(w, to_bytes + 1);
    a->bytes = tc_workload_below(w, 1 + least(from_bytes - a->from, to_bytes - a->to));
}

tc_action tc_draw_action(tc_workload *w, int device, bool recorded) {
    static const tc_action_kind kinds[] = {
        TC_ACT_FILL, TC_ACT_FILL,      TC_ACT_COPY,        TC_ACT_COPY,        TC_ACT_ADD,
        TC_ACT_ADD,  TC_ACT_TO_PINNED, TC_ACT_FROM_PINNED, TC_ACT_FROM_PINNED, TC_ACT_PEER,
    };
    tc_action a = {.kind = kinds[tc_workload_below(w, sizeof kinds / sizeof *kinds)]};
    a.a = (int)tc_workload_below(w, TC_WORKLOAD_BUFFERS);
    a.b = (int)tc_workload_below(w, TC_WORKLOAD_BUFFERS);
    if (a.kind == TC_ACT_PEER && (recorded || w->no_peer || w->n_devices < 2))
        a.kind = TC_ACT_COPY;
    if ((a.kind == TC_ACT_TO_PINNED || a.kind == TC_ACT_FROM_PINNED) && !w->pinned[device].b.bytes)
        a.kind = TC_ACT_FILL;
    if (a.kind == TC_ACT_ADD && !w->add[device])
        a.kind = TC_ACT_FILL;
    uint64_t n_a = first_place(w, &a, device)->b.bytes, n_b = place(w, device, a.b)->b.bytes,
             n_pinned = w->pinned[device].b.bytes;
    switch (a.kind) {
    case TC_ACT_FILL:
        a.value = (uint8_t)tc_next(&w->random);
        draw_ranges(w, &a, n_a, n_a);
        a.bytes = least(a.bytes, n_a - a.from);
        break;
    case TC_ACT_COPY:
        draw_ranges(w, &a, n_a, n_b);
        if (a.a == a.b) { /* the ranges do not overlap */
            a.from = tc_workload_below(w, n_a / 2);
            a.to = n_a / 2 + tc_workload_below(w, n_a / 2);
            a.bytes = least(n_a / 2 - a.from, n_a - a.to);
        }
        break;
    case TC_ACT_ADD:
        a.b = (a.a + 1) % TC_WORKLOAD_BUFFERS;
        a.c = (a.a + 2) % TC_WORKLOAD_BUFFERS;
        a.from = 4 * tc_workload_below(w, 4);
        a.bytes = least(least(n_a, place(w, device, a.b)->b.bytes), place(w, device, a.c)->b.bytes);
        a.bytes = (a.bytes - a.from) / 4 * 4;
        break;
    case TC_ACT_TO_PINNED:
        draw_ranges(w, &a, n_a, n_pinned);
        break;
    case TC_ACT_FROM_PINNED:
        draw_ranges(w, &a, n_pinned, n_a);
        break;
    default:
        draw_ranges(w, &a, n_a, n_b);
    }
    return a;
}

/* ---- whose memory it uses ---------------------------------------------------------------- */

/* NULL behind the last. */
static void places_of(tc_workload *w, const tc_action *a, int device, tc_place *out[4]) {
    int n = 0;
    out[n++] = first_place(w, a, device);
    if (a->kind == TC_ACT_COPY || a->kind == TC_ACT_ADD || a->kind == TC_ACT_PEER)
        out[n++] = place(w, device, a->b);
    if (a->kind == TC_ACT_ADD)
        out[n++] = place(w, device, a->c);
    if (a->kind == TC_ACT_TO_PINNED || a->kind == TC_ACT_FROM_PINNED)
        out[n++] = &w->pinned[device];
    out[n < 4 ? n : 3] = NULL;
}

bool tc_action_uses(tc_workload *w, const tc_action *a, int device, const tc_place *p) {
    tc_place *places[4];
    places_of(w, a, device, places);
    for (int i = 0; places[i]; i++)
        if (places[i] == p)
            return true;
    return false;
}

bool tc_action_take(tc_workload *w, const tc_action *a, int lane) {
    tc_place *places[4];
    places_of(w, a, w->lanes[lane].device, places);
    for (int i = 0; places[i]; i++)
        if (!tc_take(w, places[i], lane))
            return false;
    return true;
}

/* ---- doing it ---------------------------------------------------------------------------- */

static tn_tensor_view view(const tc_buffer *b, uint64_t offset, const int64_t *n,
                           const int64_t *one) {
    return (tn_tensor_view){.struct_size = sizeof(tn_tensor_view),
                            .memory = b->memory,
                            .offset = offset,
                            .numel = *n,
                            .dtype = TN_I32,
                            .rank = 1,
                            .sizes = n,
                            .strides = one};
}

/* out = a + 3 * b over i32. What was handed over is overwritten as soon as run returns. */
static tn_status add(tc_workload *w, const tc_action *a, const tc_lane *l) {
    int64_t n = (int64_t)(a->bytes / 4), one = 1;
    tn_tensor_view views[] = {view(&place(w, l->device, a->a)->b, a->from, &n, &one),
                              view(&place(w, l->device, a->b)->b, 0, &n, &one),
                              view(&place(w, l->device, a->c)->b, a->from, &n, &one)};
    const tn_tensor_view *outs[] = {&views[2]};
    tn_cell cells[] = {{.tag = TN_CELL_TENSOR, .v.view = &views[0]},
                       {.tag = TN_CELL_TENSOR, .v.view = &views[1]},
                       {.tag = TN_CELL_I64, .v.i64 = 3}};
    tn_call call = {.struct_size = sizeof call,
                    .device = l->s->device,
                    .stream = l->stream,
                    .user = w->add[l->device]->user,
                    .args = cells,
                    .outs = outs,
                    .n_args = 3,
                    .n_outs = 1};
    tn_status status = tc_watch_run(w->add[l->device], &call);
    memset(views, TC_POISON_CALL, sizeof views);
    memset(cells, TC_POISON_CALL, sizeof cells);
    memset(&call, TC_POISON_CALL, sizeof call);
    outs[0] = NULL;
    n = -1, one = -1;
    return status;
}

bool tc_action_queue(tc_workload *w, const tc_action *a, int lane, bool *out_done) {
    const tc_lane *l = &w->lanes[lane];
    const tc_subject *s = l->s;
    const tn_memory_ops *m = s->memory;
    const tc_buffer *x = &first_place(w, a, l->device)->b, *y = &place(w, l->device, a->b)->b,
                    *pinned = &w->pinned[l->device].b;
    char *host = pinned->host;
    tn_status status = TN_OK;
    *out_done = true;
    switch (a->kind) {
    case TC_ACT_FILL:
        status = m->fill(s->device, l->stream, x->memory, a->from, a->value, a->bytes);
        return tc_workload_must(w, TNP_FILL_VALUE, status, "fill");
    case TC_ACT_COPY:
        status = m->copy(s->device, l->stream, y->memory, a->to, x->memory, a->from, a->bytes);
        return tc_workload_must(w, TNP_TRANSFER_RANGE, status, "copy");
    case TC_ACT_TO_PINNED:
        status = m->copy_to_host(s->device, l->stream, host + a->to, pinned->memory, x->memory,
                                 a->from, a->bytes);
        return tc_workload_must(w, TNP_TRANSFER_PINNED, status, "read to pinned memory");
    case TC_ACT_FROM_PINNED:
        status = m->copy_from_host(s->device, l->stream, x->memory, a->to, host + a->from,
                                   pinned->memory, a->bytes);
        return tc_workload_must(w, TNP_TRANSFER_PINNED, status, "write from pinned memory");
    case TC_ACT_ADD:
        status = a->bytes ? add(w, a, l) : TN_OK; /* no tensor of a call is empty */
        break;
    default:
        status = m->copy_peer(s->device, l->stream, y->memory, a->to, x->subject->device, x->memory,
                              a->from, a->bytes);
    }
    *out_done = status != TN_ERR_UNSUPPORTED;
    if (*out_done)
        return a->kind == TC_ACT_ADD ? tc_workload_must(w, TNP_KERNEL_STREAM, status, "add")
                                     : tc_workload_must(w, TNP_COPY_PEER, status, "copy_peer");
    if (a->kind == TC_ACT_PEER) /* what declines is not asked again */
        w->no_peer = true;
    else
        w->add[l->device] = NULL;
    return true;
}

void tc_action_apply(tc_workload *w, const tc_action *a, int device) {
    unsigned char *x = first_place(w, a, device)->b.model, *y = place(w, device, a->b)->b.model,
                  *z = place(w, device, a->c)->b.model, *pinned = w->pinned[device].b.model;
    switch (a->kind) {
    case TC_ACT_FILL:
        memset(x + a->from, a->value, a->bytes);
        break;
    case TC_ACT_ADD:
        for (uint64_t i = 0; i < a->bytes; i += 4) {
            uint32_t u, v;
            memcpy(&u, x + a->from + i, 4);
            memcpy(&v, y + i, 4);
            u += 3 * v;
            memcpy(z + a->from + i, &u, 4);
        }
        break;
    case TC_ACT_TO_PINNED:
        memcpy(pinned + a->to, x + a->from, a->bytes);
        break;
    case TC_ACT_FROM_PINNED:
        memcpy(x + a->to, pinned + a->from, a->bytes);
        break;
    default:
        memcpy(y + a->to, x + a->from, a->bytes);
    }
}
