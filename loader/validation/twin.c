/* Level 2: a call with strides, zero strides or an output that is its input is made once more, on
 * dense copies of the inputs, and must come to the same: flags are promises. Numbers may differ
 * as much as another order of a sum makes them; one that was read from the wrong place differs by
 * more. */
#include "base/alloc.h"
#include "dispatcher/kernel_ops.h"
#include "loader/validation/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_EXTENT = 1 << 18 /* bytes that a tensor spans, and all are copied */ };

static const uint32_t element_bytes[TN_DTYPE_COUNT] = {
#define X(NAME, value, name, bytes, category) [value] = bytes,
    TN_DTYPE_MAP(X)
#undef X
};

/* ---- dense copies ------------------------------------------------------------------------ */

static bool is_dense(const tn_tensor_view *v) {
    int64_t expected = 1;
    for (int32_t d = v->rank; d-- > 0; expected *= v->sizes[d])
        if (v->sizes[d] != 1 && v->strides[d] != expected)
            return false;
    return true;
}

/* The elements in row-major order, in memory to be freed; NULL where it cannot be had. */
static char *gather(tni_watch *w, tn_device_impl *device, const tni_extent *e) {
    const tn_tensor_view *v = e->view;
    uint64_t size = element_bytes[v->dtype], span = e->high - e->low;
    char *all = tni_alloc(span), *dense = tni_alloc((uint64_t)v->numel * size);
    bool ok = all && dense && tni_peek(w, device, v->memory, e->host, e->low, all, span);
    int64_t index[TN_MAX_RANK] = {0};
    for (int64_t n = 0; ok && n < v->numel; n++) {
        int64_t at = 0;
        for (int32_t d = 0; d < v->rank; d++)
            at += v->sizes[d] == 1 ? 0 : index[d] * v->strides[d];
        memcpy(dense + (uint64_t)n * size, all + (uint64_t)at * size, size);
        for (int32_t d = v->rank; d-- > 0 && ++index[d] == v->sizes[d];)
            index[d] = 0;
    }
    tni_free(all);
    if (!ok)
        tni_free(dense);
    return ok ? dense : NULL;
}

/* ---- what is promised -------------------------------------------------------------------- */

/* The promise that the call counts on, or 0. */
static tn_requirement promise_of(const tni_call_views *views) {
    for (uint32_t i = 0; i < views->n; i++) {
        const tn_tensor_view *v = views->at[i].view;
        for (int32_t d = 0; d < v->rank; d++)
            if (v->sizes[d] > 1 && v->strides[d] == 0)
                return TNP_KERNEL_BROADCAST;
        if (!is_dense(v))
            return TNP_KERNEL_STRIDED;
    }
    for (uint32_t i = 0; i < views->n_outs; i++)
        for (uint32_t j = views->n_outs; j < views->n; j++)
            if (tni_same_view(views->at[i].view, views->at[j].view))
                return TNP_KERNEL_IN_PLACE;
    return TNP_NONE;
}

/* May two right kernels give different numbers? What does not fit an integer is any of them. */
static bool is_free(const tni_watched_kernel *k, const tni_call_views *views) {
    return strcmp(k->real.op, TN_KERNEL_copy) == 0 && views->n > 1 &&
           (TN_DTYPE_BIT(views->at[1].view->dtype) & TN_DTYPES_FLOAT) &&
           !(TN_DTYPE_BIT(views->at[0].view->dtype) & TN_DTYPES_FLOAT);
}

void tni_twin_begin(const tni_watched_kernel *k, const tn_call *call, const tni_call_views *views,
                    const tni_witness *witness, tni_twin *out) {
    *out = (tni_twin){.promise = TNP_NONE};
    if (!witness->on || !witness->alone || !k->real.op || is_free(k, views))
        return;
    for (uint32_t i = 0; i < views->n; i++)
        if (views->at[i].high - views->at[i].low > MAX_EXTENT)
            return;
    out->promise = promise_of(views);
    for (uint32_t i = views->n_outs; out->promise && i < views->n; i++) {
        out->dense[i] = gather(k->watch, call->device, &views->at[i]);
        if (!out->dense[i])
            out->promise = TNP_NONE;
    }
}

/* ---- the same again ---------------------------------------------------------------------- */

/* The twin's tensors, one behind the other in an allocation of its own. */
typedef struct pair {
    tn_tensor_view views[TNI_MAX_VIEWS];
    int64_t strides[TNI_MAX_VIEWS][TN_MAX_RANK];
    const tn_tensor_view *outs[TNI_MAX_VIEWS];
    tn_cell args[TNI_MAX_VIEWS];
    tn_call call;
    tn_allocation memory, workspace;
} pair;

static uint64_t lay_out(const tni_call_views *views, uint64_t alignment, pair *p) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < views->n; i++) {
        tn_tensor_view *v = &p->views[i];
        memcpy(v, views->at[i].view, sizeof *v);
        v->struct_size = sizeof *v;
        v->offset = at;
        v->strides = p->strides[i];
        int64_t stride = 1;
        for (int32_t d = v->rank; d-- > 0; stride *= v->sizes[d])
            p->strides[i][d] = stride;
        at +=
            ((uint64_t)v->numel * element_bytes[v->dtype] + alignment - 1) / alignment * alignment;
    }
    return at;
}

static bool allocate(tni_watch *w, const tn_call *call, const tni_record *d, uint64_t bytes,
                     tn_allocation *out) {
    *out = (tn_allocation){.struct_size = sizeof *out,
                           .bytes = bytes,
                           .alignment = d->alignment,
                           .space = TN_SPACE_DEVICE};
    return w->real.memory.alloc(call->device, out) == TN_OK && out->memory;
}

static void release(tni_watch *w, const tn_call *call, const tn_allocation *a) {
    if (a->memory)
        w->real.memory.dealloc(call->device, TN_SPACE_DEVICE, a->memory);
}

/* The call with the twin's tensors in place of its own; lists are left to others. */
static bool retarget(const tn_call *call, const tni_call_views *views, pair *p) {
    uint32_t next = views->n_outs;
    p->call = *call;
    if (call->n_args > TNI_MAX_VIEWS)
        return false;
    for (uint32_t i = 0; i < call->n_args; i++) {
        p->args[i] = call->args[i];
        if (call->args[i].tag == TN_CELL_TENSORS)
            return false;
        if (call->args[i].tag == TN_CELL_TENSOR)
            p->args[i].v.view = &p->views[next++];
    }
    for (uint32_t i = 0; i < views->n_outs; i++)
        p->outs[i] = &p->views[i];
    p->call.args = p->args;
    p->call.outs = p->outs;
    p->call.workspace = p->call.workspace_offset = p->call.workspace_bytes = p->call.cookie = 0;
    return true;
}

static bool plan_it(const tni_watched_kernel *k, const tni_record *d, pair *p) {
    tn_plan plan = {.struct_size = sizeof plan};
    if (k->real.supports && k->real.supports(&p->call) != TN_OK)
        return false;
    if (!k->real.prepare)
        return true;
    if (k->real.prepare(&p->call, &plan) != TN_OK)
        return false;
    p->call.cookie = plan.cookie;
    if (plan.workspace_bytes == 0)
        return true;
    if (allocate(k->watch, &p->call, d, plan.workspace_bytes, &p->workspace)) {
        p->call.workspace = p->workspace.memory;
        p->call.workspace_bytes = plan.workspace_bytes;
        return true;
    }
    if (k->real.abandon)
        k->real.abandon(&p->call);
    return false;
}

/* Runs it to the end; false where it does not come to an end that can be compared. */
static bool run_twin(const tni_watched_kernel *k, const tni_record *d, const tni_call_views *views,
                     const tni_twin *twin, pair *p) {
    tni_watch *w = k->watch;
    bool ok;
    p->call.stream = tni_own_stream(w, p->call.device, &ok);
    if (!ok || !allocate(w, &p->call, d, lay_out(views, d->alignment, p), &p->memory))
        return false;
    for (uint32_t i = 0; i < views->n; i++)
        p->views[i].memory = p->memory.memory;
    for (uint32_t i = views->n_outs; i < views->n && ok; i++)
        ok = tni_poke(w, p->call.device, p->memory.memory, p->views[i].offset, twin->dense[i],
                      (uint64_t)p->views[i].numel * element_bytes[p->views[i].dtype]);
    return ok && plan_it(k, d, p) && k->real.run(&p->call) == TN_OK &&
           (!p->call.stream || w->real.streams.synchronize(p->call.stream) == TN_OK);
}

/* ---- comparing --------------------------------------------------------------------------- */

static double number_of(const char *at, tn_dtype dtype) {
    uint16_t half;
    uint32_t bits;
    float f;
    double d;
    switch (dtype) {
    case TN_F64:
        memcpy(&d, at, sizeof d);
        return d;
    case TN_F32:
        memcpy(&f, at, sizeof f);
        return f;
    case TN_BF16:
        memcpy(&half, at, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(&f, &bits, sizeof f);
        return f;
    default: /* f16 */
        memcpy(&half, at, sizeof half);
        if ((half & 0x7c00) == 0x7c00)
            return half & 0x3ff ? NAN : half & 0x8000 ? -INFINITY : INFINITY;
        d = half & 0x7c00 ? ldexp((half & 0x3ff) | 0x400, (half >> 10 & 31) - 25)
                          : ldexp(half & 0x3ff, -24);
        return half & 0x8000 ? -d : d;
    }
}

/* The first element in which the two differ beyond what rounding does, or -1. */
static int64_t first_difference(const tn_tensor_view *v, const char *a, const char *b) {
    uint64_t size = element_bytes[v->dtype];
    bool floats = (TN_DTYPE_BIT(v->dtype) & TN_DTYPES_FLOAT) != 0;
    double largest = 0;
    for (int64_t i = 0; floats && i < v->numel; i++) {
        double x = fabs(number_of(b + (uint64_t)i * size, v->dtype));
        largest = isfinite(x) && x > largest ? x : largest;
    }
    for (int64_t i = 0; i < v->numel; i++) {
        const char *p = a + (uint64_t)i * size, *q = b + (uint64_t)i * size;
        if (memcmp(p, q, size) == 0)
            continue;
        if (!floats)
            return i;
        double x = number_of(p, v->dtype), y = number_of(q, v->dtype);
        bool same = isfinite(x) && isfinite(y) ? fabs(x - y) <= largest / 32
                                               : (isnan(x) && isnan(y)) || x == y;
        if (!same)
            return i;
    }
    return -1;
}

static void compare(const tni_watched_kernel *k, const tni_call_views *views, const tni_twin *twin,
                    pair *p) {
    static const char *const promised[] = {"TN_KERNEL_STRIDED", "TN_KERNEL_BROADCAST",
                                           "TN_KERNEL_IN_PLACE"};
    tni_watch *w = k->watch;
    for (uint32_t i = 0; i < views->n_outs; i++) {
        tni_extent dense = {.view = &p->views[i],
                            .low = p->views[i].offset,
                            .high = p->views[i].offset +
                                    (uint64_t)p->views[i].numel * element_bytes[p->views[i].dtype],
                            .host = p->memory.host};
        char *a = gather(w, p->call.device, &views->at[i]), *b = gather(w, p->call.device, &dense);
        int64_t at = a && b ? first_difference(&p->views[i], a, b) : -1;
        tni_free(a);
        tni_free(b);
        if (at >= 0)
            tni_finding(
                w, (int)twin->promise, "kernel->run", k->real.op,
                "output %u is another than for dense tensors apart from each other, first in"
                " element %" PRId64 "; keep what %s promises, or take the flag away",
                i, at, promised[twin->promise - TNP_KERNEL_STRIDED]);
    }
}

void tni_twin_end(const tni_watched_kernel *k, const tn_call *call, const tni_record *device,
                  const tni_call_views *views, tni_twin *twin, tn_status status) {
    pair *p = twin->promise && status == TN_OK ? tni_calloc(1, sizeof *p) : NULL;
    if (p && retarget(call, views, p) && run_twin(k, device, views, twin, p) &&
        (!call->stream || tni_still(k->watch, call->device)))
        compare(k, views, twin, p);
    if (p) {
        release(k->watch, call, &p->workspace);
        release(k->watch, call, &p->memory);
        tni_free(p);
    }
    for (uint32_t i = 0; i < views->n; i++)
        tni_free(twin->dense[i]);
}
