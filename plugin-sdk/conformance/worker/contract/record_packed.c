/* contract/record-packed: tensors of one call that lie in one allocation without a gap, as the pieces of a host's pool
 * do. Where one ends and the next begins they share no byte. */
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

/* Moves them into `memory`, one behind the other. */
static bool pack(tc_contract *k, piece *pieces, int n, tn_memory memory) {
    const tc_subject *s = k->subject;
    uint64_t at = 0;
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        uint64_t step = tc_dtype_bytes(pieces[i].o->dtype), bytes = size_of(pieces[i].o);
        at = (at + step - 1) / step * step;
        pieces[i].view->memory = memory;
        pieces[i].view->offset = at;
        ok = tc_must(k, TNP_TRANSFER_RANGE,
                     s->memory->copy_from_host(s->device, s->stream, memory, at,
                                               elements(pieces[i].o, pieces[i].o->image), 0, bytes),
                     "write of a tensor");
        at += bytes;
    }
    return ok;
}

/* What a tensor's image is now. */
static unsigned char *read_piece(tc_contract *k, const tc_operand *o, const tn_tensor_view *view) {
    const tc_subject *s = k->subject;
    unsigned char *image = tc_arena_array(&k->arena, o->bytes, 1);
    if (!image) {
        TC_CASE_ERROR(k->out, "the host has no memory for this case");
        return NULL;
    }
    memcpy(image, o->image, o->bytes);
    return tc_must(k, TNP_READ_COMPLETE,
                   s->memory->copy_to_host(s->device, s->stream, elements(o, image), 0,
                                           view->memory, view->offset, size_of(o)),
                   "read of a tensor")
               ? image
               : NULL;
}

static void check(tc_contract *k, tc_placed *p) {
    tc_invocation *call = p->call;
    tc_result result = {0};
    tc_verdict v = {0};
    for (uint32_t a = 0; a < call->record->n_args && !tc_failed(k); a++)
        if (p->cells[a].tag == TN_CELL_TENSOR)
            result.args[a] = read_piece(k, &call->args[a].tensor, &p->arg_views[a]);
    for (uint32_t i = 0; i < call->record->n_outs && !tc_failed(k); i++)
        result.outs[i] = read_piece(k, &call->outs[i].tensor, &p->out_views[i]);
    if (tc_failed(k))
        return;
    tc_check_untouched(call, &result, &v);
    tc_check_outputs(call, &result, k->subject, &v);
    if (v.status == TC_FAIL)
        TC_BROKEN(k, v.requirement, "tensors that lie in one allocation without a gap: %.900s",
                  v.message);
}

static void call_packed(tc_contract *k, tc_placed *p, bool outs_first) {
    tc_subject *s = k->subject;
    piece pieces[TC_MAX_ARGS + TC_MAX_OUTS];
    uint64_t bytes = 0;
    tn_memory memory;
    void *host;
    int n = list_pieces(p, outs_first, pieces);
    for (int i = 0; i < n; i++)
        bytes += size_of(pieces[i].o) + sizeof(int64_t);
    if (n == 0 ||
        !tc_must(k, TNP_ALLOC_HANDLE, tc_alloc(s, TN_SPACE_DEVICE, bytes, &memory, &host), "alloc"))
        return;
    if (pack(k, pieces, n, memory)) {
        tn_status status = tc_call_placed(p);
        if (status != TN_ERR_UNSUPPORTED && /* this record is passed over */
            tc_must(k, TNP_KERNEL_OFFSET, status,
                    "run of a call whose tensors lie in one allocation without a gap") &&
            tc_must(k, TNP_KERNEL_RESULT, tc_subject_sync(s), "synchronize"))
            check(k, p);
    }
    tc_subject_sync(s);
    s->memory->dealloc(s->device, TN_SPACE_DEVICE, memory);
}

static void one(tc_contract *k, const char *line) {
    tc_case c;
    tc_placed placed = {0};
    char why[TC_MESSAGE];
    tc_invocation *call = tc_arena_array(&k->arena, 1, sizeof *call);
    if (!call || !tc_case_parse(line, &c, why) || !tc_invocation_parse(&c, &k->arena, call, why) ||
        !tc_invocation_fill(call, call->seed, why))
        TC_CASE_ERROR(k->out, "%s: %s", line, call ? why : "no memory");
    else if (tc_place_call(k->subject, k->subject->stream, call, &placed, k->out))
        for (int outs_first = 0; outs_first < 2 && !tc_failed(k); outs_first++)
            call_packed(k, &placed, outs_first);
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
