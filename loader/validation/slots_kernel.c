/* Kernel calls: what the caller hands over, what the plugin answers, and at level 2 whether the
 * kernel leaves alone what it may not write. */
#include "base/error.h"
#include "dispatcher/kernel_ops.h"
#include "loader/validation/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REPORT(k, slot, ...) tni_finding((k)->watch, TNI_TENON, slot, (k)->real.op, __VA_ARGS__)

/* ---- what is handed over ----------------------------------------------------------------- */

static void add_view(const tni_watched_kernel *k, const tn_call *call, const tn_tensor_view *view,
                     const char *what, uint32_t i, tni_call_views *views) {
    tni_extent spare;
    bool room = views->n < TNI_MAX_VIEWS;
    tni_extent *e = room ? &views->at[views->n] : &spare;
    *e = (tni_extent){0};
    snprintf(e->name, sizeof e->name, "%s %u", what, i);
    if (!tni_check_view(k, "kernel->run", call, view, *what == 'o', e))
        views->deadly = true;
    else if (room)
        views->n++;
    views->whole = views->whole && room;
}

/* A tensor's dtype against its type variable; `chosen` keeps what each variable stands for. */
static void check_dtype(const tni_watched_kernel *k, const tn_tensor_view *view, int code,
                        const char *what, uint32_t i, tn_dtype *chosen) {
    if (!view || view->dtype < 0 || view->dtype >= TN_DTYPE_COUNT)
        return;
    bool right;
    if (code < 0) {
        right = view->dtype == TN_KERNEL_FIXED(code);
    } else {
        right = (k->real.dtypes[code] & TN_DTYPE_BIT(view->dtype)) &&
                (chosen[code] == TN_DTYPE_NONE || chosen[code] == view->dtype);
        chosen[code] = view->dtype;
    }
    if (right)
        return;
    REPORT(k, "kernel->run",
           "%s %u has dtype %d, which the record's dtypes or the operator's types exclude", what, i,
           view->dtype);
}

/* One argument: its tensors, or that a number stands for one. Returns 1 for the latter. */
static uint32_t check_argument(const tni_watched_kernel *k, const tn_call *call, uint32_t i,
                               int code, tn_dtype *chosen, tni_call_views *views) {
    const tn_cell *c = &call->args[i];
    if (c->tag == TN_CELL_TENSOR) {
        add_view(k, call, c->v.view, "argument", i, views);
        if (code < TN_KERNEL_SCALAR)
            check_dtype(k, c->v.view, code, "argument", i, chosen);
    } else if (c->tag == TN_CELL_TENSORS) {
        for (uint32_t j = 0; j < c->n; j++) {
            if (!c->v.views[j])
                continue;
            add_view(k, call, c->v.views[j], "argument", i, views);
            if (code < TN_KERNEL_SCALAR)
                check_dtype(k, c->v.views[j], code, "argument", i, chosen);
        }
    } else if (c->tag > TN_CELL_STRING) {
        REPORT(k, "kernel->run", "argument %u has the tag %u, which is none", i, c->tag);
    }
    return code < TN_KERNEL_SCALAR &&
           (c->tag == TN_CELL_I64 || c->tag == TN_CELL_F64 || c->tag == TN_CELL_BOOL);
}

static void check_tensors(const tni_watched_kernel *k, const tn_call *call, tni_call_views *views) {
    const tni_kernel_op *op = k->real.op ? tni_kernel_op_find(k->real.op) : NULL;
    const tni_kernel_types *types =
        op && op->index < TNI_KERNEL_COUNT ? &tni_kernel_types_of[op->index] : NULL;
    tn_dtype chosen[TN_KERNEL_MAX_TYPES];
    for (int i = 0; i < TN_KERNEL_MAX_TYPES; i++)
        chosen[i] = TN_DTYPE_NONE;
    if (types && (call->n_args != types->n_args || call->n_outs != types->n_outs)) {
        REPORT(k, "kernel->run", "%u arguments and %u outputs; the schema is %s", call->n_args,
               call->n_outs, op->schema);
        types = NULL;
    }
    for (uint32_t i = 0; i < call->n_outs; i++) {
        add_view(k, call, call->outs[i], "output", i, views);
        if (types)
            check_dtype(k, call->outs[i], types->outs[i], "output", i, chosen);
    }
    views->n_outs = views->n;
    uint32_t n_scalars = 0;
    for (uint32_t i = 0; i < call->n_args; i++)
        n_scalars +=
            check_argument(k, call, i, types ? types->args[i] : TN_KERNEL_NO_TENSOR, chosen, views);
    if (n_scalars > (k->real.flags & TN_KERNEL_SCALARS ? 1u : 0u)) {
        REPORT(k, "kernel->run", "%u tensor arguments came as numbers, and the kernel %s",
               n_scalars,
               k->real.flags & TN_KERNEL_SCALARS ? "takes one"
                                                 : "has not"
                                                   " TN_KERNEL_SCALARS");
    }
}

static void check_overlap(const tni_watched_kernel *k, tni_call_views *views) {
    for (uint32_t i = 0; i < views->n_outs; i++) {
        for (uint32_t j = i + 1; j < views->n; j++) {
            const tni_extent *out = &views->at[i], *other = &views->at[j];
            if (!tni_extents_share(out, other))
                continue;
            bool same = j >= views->n_outs && tni_same_view(out->view, other->view);
            if (same && (k->real.flags & TN_KERNEL_IN_PLACE))
                continue;
            REPORT(k, "kernel->run", "%s and %s share memory%s", out->name, other->name,
                   same ? ", and the kernel has not TN_KERNEL_IN_PLACE" : "");
        }
    }
}

static void check_workspace(const tni_watched_kernel *k, const tn_call *call,
                            const tni_record *device, tni_call_views *views) {
    tni_watch *w = k->watch;
    if (!call->workspace && !call->workspace_bytes)
        return;
    pthread_mutex_lock(&tni_records_lock);
    const tni_record *m = tni_memory_find(w, call->device, TN_SPACE_DEVICE, call->workspace);
    bool there = m != NULL;
    uint64_t bytes = m ? m->bytes : 0;
    pthread_mutex_unlock(&tni_records_lock);
    bool outside = !there || call->workspace_bytes > bytes ||
                   call->workspace_offset > bytes - call->workspace_bytes;
    views->deadly |= outside;
    if (outside)
        REPORT(k, "kernel->run", "the workspace, %" PRIu64 " bytes at offset %" PRIu64 ", %s",
               call->workspace_bytes, call->workspace_offset,
               there ? "leaves its allocation" : "is in no device memory that is alive");
    if (call->workspace_offset % device->alignment)
        REPORT(k, "kernel->run",
               "workspace_offset %" PRIu64 " is no multiple of the device's alignment %" PRIu64,
               call->workspace_offset, device->alignment);
}

/* Device and stream of a call; false when there are none to call. */
static bool check_place(const tni_watched_kernel *k, const char *slot, const tn_call *call,
                        tni_record *out_device) {
    tni_watch *w = k->watch;
    tni_record s;
    const char *op = k->real.op;
    if (!tni_live_device(w, slot, op, call->device, out_device))
        return false;
    if (call->stream)
        return tni_live_stream(w, slot, op, call->device, call->stream, &s);
    if (w->real.devices.streams)
        REPORT(k, slot, "stream is NULL on a device with streams");
    return true;
}

/* The call as the plugin's own record expects it. */
static tn_call forward(const tni_watched_kernel *k, const tn_call *call) {
    tn_call copy = {0};
    memcpy(&copy, call, call->struct_size < sizeof copy ? call->struct_size : sizeof copy);
    if (copy.struct_size > sizeof copy)
        copy.struct_size = sizeof copy;
    copy.user = k->real.user;
    return copy;
}

static tni_point note_work(tni_watch *w, tn_stream_impl *stream) {
    pthread_mutex_lock(&tni_records_lock);
    tni_point work = tni_note_work(w, stream);
    pthread_mutex_unlock(&tni_records_lock);
    return work;
}

static void note_uses(tni_watch *w, tni_point work, const tn_call *call,
                      const tni_call_views *views) {
    pthread_mutex_lock(&tni_records_lock);
    for (uint32_t i = 0; i < views->n; i++)
        tni_note_use(w, work,
                     tni_memory_find(w, call->device, TN_SPACE_DEVICE, views->at[i].view->memory));
    tni_note_use(w, work, tni_memory_find(w, call->device, TN_SPACE_DEVICE, call->workspace));
    pthread_mutex_unlock(&tni_records_lock);
}

/* ---- plans ------------------------------------------------------------------------------- */

/* What `prepare` said last on this thread, until `run` or `abandon` of that kernel follows. */
static TNI_TLS struct {
    const tni_watch *watch; /* NULL: they did */
    const tni_watched_kernel *kernel;
    bool owed; /* the kernel has something to release */
    tn_plan plan;
} prepared;

/* Is this the call that was prepared? */
static bool take_plan(const tni_watched_kernel *k, const char *slot, const tn_call *call) {
    if (prepared.watch != k->watch || prepared.kernel != k)
        return false;
    prepared.watch = NULL;
    if (call->cookie != prepared.plan.cookie)
        REPORT(k, slot, "the cookie is %#" PRIx64 "; prepare gave out %#" PRIx64, call->cookie,
               prepared.plan.cookie);
    return true;
}

/* ---- the slots --------------------------------------------------------------------------- */

static tni_watched_kernel *kernel_of(const tn_call *call) {
    return call->user;
}

static void abandon(const tni_watched_kernel *k, const tn_call *call) {
    TNI_TELL(k->watch, "kernel->abandon", k->real.op, k->real.abandon(call));
}

static tn_status run_at_level_2(const tni_watched_kernel *k, const tn_call *call,
                                const tni_record *device, tni_frame *f,
                                const tni_call_views *views) {
    tni_watch *w = k->watch;
    const char *slot = "kernel->run", *op = k->real.op;
    tni_process_before process;
    tni_witness witness;
    tni_loan *loan;
    tni_twin twin;
    tni_witness_begin(k, call, views, &witness);
    tni_twin_begin(k, call, views, &witness, &twin);
    if (call->stream)
        tni_hold(w, call->device, call->stream,
                 TNI_A_WHILE); /* so that what is read later is read later */
    const tn_call *lent = tni_lend_call(w, slot, op, call, &loan);
    tni_process_begin(w, &process);
    tni_enter(f, w, slot, op);
    tn_status status = tni_answer(f, k->real.run(lent), TNI_MAY_DECLINE);
    tni_process_end(w, &process, slot, op, 2);
    tni_lend_back(loan);
    tni_witness_end(k, call, views, &witness, status == TN_ERR_UNSUPPORTED);
    tni_twin_end(k, call, device, views, &twin, status);
    return status;
}

static tn_status kernel_run(const tn_call *call) {
    tni_watched_kernel *k = kernel_of(call);
    tni_watch *w = k->watch;
    tni_frame f;
    tni_record d;
    const char *slot = "kernel->run", *op = k->real.op;
    if (!TN_HAS(call, tn_call, cookie))
        REPORT(k, slot, "struct_size %" PRIu64 " ends before cookie", call->struct_size);
    bool planned = take_plan(k, slot, call);
    if (planned && call->workspace_bytes < prepared.plan.workspace_bytes)
        REPORT(k, slot, "a workspace of %" PRIu64 " bytes; prepare asked for %" PRIu64,
               call->workspace_bytes, prepared.plan.workspace_bytes);
    if (!check_place(k, slot, call, &d))
        return tni_watch_refuse("kernel->run: device or stream is not alive");
    tni_call_views views;
    views.n = views.n_outs = 0;
    views.whole = true;
    views.deadly = false;
    check_tensors(k, call, &views);
    check_overlap(k, &views);
    check_workspace(k, call, &d, &views);
    tn_call copy = forward(k, call);
    if (views.deadly) {
        if (planned && k->real.abandon)
            abandon(k, &copy);
        return tni_watch_refuse("kernel->run: a tensor or the workspace lies where no memory is");
    }
    /* Whoever waits for the stream from here on has waited for the call. */
    tni_point work = note_work(w, call->stream);
    tn_status status;
    if (w->level >= 2) {
        status = run_at_level_2(k, &copy, &d, &f, &views);
    } else {
        status = TNI_ASK(w, slot, op, TNI_MAY_DECLINE, k->real.run(&copy));
    }
    if (status != TN_ERR_UNSUPPORTED)
        note_uses(w, work, call, &views);
    tni_note_loss(w, call->device, d.lost, status, slot, op);
    return status;
}

static tn_status kernel_supports(const tn_call *call) {
    tni_watched_kernel *k = kernel_of(call);
    tni_watch *w = k->watch;
    tni_record d;
    tn_status again;
    const char *slot = "kernel->supports", *op = k->real.op;
    if (!check_place(k, slot, call, &d))
        return tni_watch_refuse("kernel->supports: device or stream is not alive");
    tn_call copy = forward(k, call);
    tn_status status = TNI_ASK(w, slot, op, TNI_MAY_DECLINE, k->real.supports(&copy));
    TNI_TELL(w, slot, op, again = k->real.supports(&copy));
    tni_judge_choice(w, TNP_SUPPORTS_ANSWER, slot, op, status, again);
    return status;
}

static tn_status kernel_prepare(const tn_call *call, tn_plan *out) {
    tni_watched_kernel *k = kernel_of(call);
    tni_watch *w = k->watch;
    tni_record d;
    const char *slot = "kernel->prepare", *op = k->real.op;
    if (!check_place(k, slot, call, &d))
        return tni_watch_refuse("kernel->prepare: device or stream is not alive");
    if (prepared.watch == w && prepared.owed)
        REPORT(k, slot, "neither run nor abandon followed the last prepare on this thread");
    tn_call copy = forward(k, call);
    uint64_t size = out->struct_size;
    tn_status status = TNI_ASK(w, slot, op, TNI_MAY_DECLINE, k->real.prepare(&copy, out));
    prepared.watch = status == TN_OK ? w : NULL;
    prepared.kernel = k;
    prepared.owed = k->real.abandon != NULL;
    prepared.plan = *out;
    if (out->struct_size != size)
        tni_finding(w, TNP_HOST_STRUCT_SIZE, slot, op,
                    "struct_size, which the caller set, was changed");
    uint64_t most = d.max_allocation ? d.max_allocation : UINT64_C(1) << 46;
    if (status == TN_OK && out->workspace_bytes > most)
        tni_finding(w, TNP_KERNEL_WORKSPACE, slot, op,
                    "asks for %" PRIu64 " bytes, more than the device can give",
                    out->workspace_bytes);
    tni_note_loss(w, call->device, d.lost, status, slot, op);
    return status;
}

static void kernel_abandon(const tn_call *call) {
    tni_watched_kernel *k = kernel_of(call);
    tni_record d;
    take_plan(k, "kernel->abandon", call);
    if (!check_place(k, "kernel->abandon", call, &d))
        return;
    tn_call copy = forward(k, call);
    abandon(k, &copy);
}

/* ---- the table --------------------------------------------------------------------------- */

const tn_kernel tni_checked_kernel = {
    .run = kernel_run,
    .supports = kernel_supports,
    .prepare = kernel_prepare,
    .abandon = kernel_abandon,
};
TN_LAST_MEMBER(tn_kernel, abandon);
