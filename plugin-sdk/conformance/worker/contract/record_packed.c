/* contract/record-packed: tensors of one call that lie in one allocation without a gap, as the pieces of a host's pool
 * do, or between one another, as the columns of one matrix do: an element of the first, one of the second, and so on. They
 * share no byte. */
#include "plugin-sdk/conformance/worker/contract/reach.h"
#include "plugin-sdk/conformance/worker/kernel/checks.h"

#include <string.h>

/* One of the call's tensors: its elements, and where they go. */
typedef struct piece {
    const tc_operand *o;
    tn_tensor_view *view;
} piece;

static uint64_t size_of(const tc_operand *o) {
    return (uint64_t)o->shape.numel * tc_dtype_bytes(o->dtype);
}

static unsigned char *elements(const tc_operand *o, unsigned char *image) {
    return image + (uint64_t)o->shape.offset * tc_dtype_bytes(o->dtype);
}

/* Of all tensors that were placed, the outputs last or first; 0: one of them is not dense, or lies in another. */
static int list_pieces(tc_placed *p, bool outs_first, piece out[TC_MAX_ARGS + TC_MAX_OUTS]) {
    tc_invocation *call = p->call;
    uint32_t n_args = call->record->n_args, n_outs = call->record->n_outs;
    int n = 0;
    if (call->in_place >= 0)
        return 0;
    for (uint32_t i = 0; i < n_args + n_outs; i++) {
        uint32_t j = outs_first ? (i + n_args) % (n_args + n_outs) : i;
        bool is_arg = j < n_args;
        if (is_arg && p->cells[j].tag != TN_CELL_TENSOR)
            continue;
        if (is_arg && (tc_owner(call, j) != j || tc_lies_within(call, j)))
            return 0;
        out[n] = is_arg ? (piece){&call->args[j].tensor, &p->arg_views[j]}
                        : (piece){&call->outs[j - n_args].tensor, &p->out_views[j - n_args]};
        if (!tc_is_dense(&out[n++].o->shape))
            return 0;
    }
    return n;
}

/* How the pieces lie. */
typedef enum manner { OUTS_BEHIND, OUTS_BEFORE, INTERLEAVED, N_MANNERS } manner;
static const char *const manners[N_MANNERS] = {
    "one behind the other", "one behind the other, the output first", "element by element"};

enum { SLOT = 16 }; /* bytes of an element where they are interleaved; a multiple of each dtype's */

/* All of the allocation. */
typedef struct layout {
    manner manner;
    piece pieces[TC_MAX_ARGS + TC_MAX_OUTS];
    int n;
    int64_t strides[TC_MAX_ARGS + TC_MAX_OUTS][TC_MAX_RANK];
    tn_memory memory;
    unsigned char *image, *model; /* as it is read back, and as it was written */
    uint64_t bytes;
} layout;

/* Where element i of piece p lies. */
static uint64_t place_of(const layout *l, int p, int64_t i) {
    uint64_t size = tc_dtype_bytes(l->pieces[p].o->dtype);
    uint64_t step = l->manner == INTERLEAVED ? SLOT * (uint64_t)l->n : size;
    return l->pieces[p].view->offset + (uint64_t)i * step;
}

/* Gives each view its place; the bytes that they need. */
static uint64_t lay_out(layout *l, tn_memory memory) {
    uint64_t at = 0, most = 0;
    for (int p = 0; p < l->n; p++) {
        const tc_operand *o = l->pieces[p].o;
        tn_tensor_view *view = l->pieces[p].view;
        uint64_t size = tc_dtype_bytes(o->dtype);
        int64_t step = l->manner == INTERLEAVED ? SLOT * l->n / (int64_t)size : 1;
        for (int32_t d = 0; d < o->shape.rank; d++)
            l->strides[p][d] = o->shape.strides[d] * step;
        at = l->manner == INTERLEAVED ? SLOT * (uint64_t)p : (at + size - 1) / size * size;
        view->memory = memory;
        view->offset = at;
        view->strides = l->strides[p];
        at += size_of(o);
        uint64_t end = place_of(l, p, o->shape.numel - 1) + size;
        most = o->shape.numel > 0 && end > most ? end : most;
    }
    return most;
}

static bool write_all(tc_contract *k, layout *l) {
    const tc_subject *s = k->subject;
    memset(l->model, 0x3c, l->bytes);
    for (int p = 0; p < l->n; p++) {
        const tc_operand *o = l->pieces[p].o;
        uint64_t size = tc_dtype_bytes(o->dtype);
        for (int64_t i = 0; i < o->shape.numel; i++)
            memcpy(l->model + place_of(l, p, i), elements(o, o->image) + (uint64_t)i * size, size);
    }
    return tc_must(
        k, TNP_TRANSFER_RANGE,
        s->memory->copy_from_host(s->device, s->stream, l->memory, 0, l->model, 0, l->bytes),
        "write of tensors");
}

/* What the tensor's image is now. */
static unsigned char *image_of(tc_contract *k, layout *l, const tn_tensor_view *view) {
    int p = 0;
    while (l->pieces[p].view != view)
        p++;
    const tc_operand *o = l->pieces[p].o;
    uint64_t size = tc_dtype_bytes(o->dtype);
    unsigned char *image = tc_arena_array(&k->arena, o->bytes, 1);
    if (!image) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return NULL;
    }
    memcpy(image, o->image, o->bytes);
    for (int64_t i = 0; i < o->shape.numel; i++) {
        memcpy(elements(o, image) + (uint64_t)i * size, l->image + place_of(l, p, i), size);
        memcpy(l->model + place_of(l, p, i), l->image + place_of(l, p, i), size);
    }
    return image;
}

static void check(tc_contract *k, tc_placed *placed, layout *l) {
    tc_invocation *call = placed->call;
    const tc_subject *s = k->subject;
    tc_result result = {0};
    tc_verdict v = {0};
    if (!tc_must(k, TNP_READ_COMPLETE,
                 s->memory->copy_to_host(s->device, s->stream, l->image, 0, l->memory, 0, l->bytes),
                 "read of tensors"))
        return;
    for (uint32_t a = 0; a < call->record->n_args && !tc_failed(k); a++)
        if (placed->cells[a].tag == TN_CELL_TENSOR)
            result.args[a] = image_of(k, l, &placed->arg_views[a]);
    for (uint32_t i = 0; i < call->record->n_outs && !tc_failed(k); i++)
        result.outs[i] = image_of(k, l, &placed->out_views[i]);
    if (tc_failed(k))
        return;
    tc_check_untouched(call, &result, &v);
    tc_check_outputs(call, &result, s, &v);
    if (v.status == TC_FAIL)
        TC_BROKEN(k, v.requirement, "tensors that lie in one allocation %s: %.900s",
                  manners[l->manner], v.message);
    else if (memcmp(l->image, l->model, l->bytes) != 0)
        TC_BROKEN(k, TNP_KERNEL_RESULT,
                  "%s: with tensors that lie in one allocation %s, bytes between their elements "
                  "have changed",
                  call->record->op, manners[l->manner]);
}

static void call_packed(tc_contract *k, tc_placed *p, manner how) {
    tc_subject *s = k->subject;
    void *host;
    layout *l = tc_arena_array(&k->arena, 1, sizeof *l);
    if (!l)
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
    if (!l || (how == INTERLEAVED && !(p->kernel->flags & TN_KERNEL_STRIDED)))
        return;
    l->manner = how;
    l->n = list_pieces(p, how == OUTS_BEFORE, l->pieces);
    l->bytes = lay_out(l, 0);
    if (l->bytes == 0)
        return;
    l->image = tc_arena_array(&k->arena, l->bytes, 1);
    l->model = tc_arena_array(&k->arena, l->bytes, 1);
    if (!l->image || !l->model) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return;
    }
    if (!tc_must(k, TNP_ALLOC_HANDLE, tc_alloc(s, TN_SPACE_DEVICE, l->bytes, &l->memory, &host),
                 "alloc"))
        return;
    lay_out(l, l->memory);
    bool declined = false;
    if (write_all(k, l) && tc_supports_placed(p) && tc_ready_call(p, &declined, k->out) &&
        !declined) {
        tn_status status = tc_run_placed(p);
        if (status != TN_ERR_UNSUPPORTED && /* this record is passed over */
            tc_must(k, TNP_KERNEL_OFFSET, status,
                    "run of a call whose tensors lie in one allocation") &&
            tc_must(k, TNP_KERNEL_RESULT, tc_subject_sync(s), "synchronize"))
            check(k, p, l);
    }
    tc_subject_sync(s);
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, l->memory);
}

static void one(tc_contract *k, const char *line) {
    tc_case c;
    tc_placed placed = {0};
    char why[TC_MESSAGE];
    tc_invocation *call = tc_arena_array(&k->arena, 1, sizeof *call);
    if (!call || !tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, &k->arena, call, why) ||
        !tc_fill_for(k->subject, call, call->seed, why))
        TC_CASE_ERROR(k->out, "%s: %s", line, call ? why : "no memory");
    else if (tc_place_call(k->subject, k->subject->stream, call, &placed, k->out))
        for (int i = 0; i < N_MANNERS && !tc_failed(k); i++)
            call_packed(k, &placed, (manner)i);
    if (placed.subject) { /* its tensors have been written where it was placed first, too */
        tc_subject_sync(k->subject);
        tc_unplace(&placed);
    }
}

void tc_record_packed(tc_contract *k) {
    tc_reached *reached = tc_reach_records(k, TC_SMOKE, NULL);
    for (uint64_t i = 0; reached && i < k->subject->plugin->n_kernels && !tc_failed(k); i++)
        for (int j = 0; j < TC_REACHING && reached[i].lines[j] && !tc_failed(k); j++)
            one(k, reached[i].lines[j]);
}
