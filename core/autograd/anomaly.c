/* Anomaly mode: which operator made the first NaN among the gradients, and where it was called.
 *
 * While it is on, a node keeps the call stack of its recording, as one of its hooks: nodes are no
 * larger for it, and other programs pay for a look at one flag. */
#define _GNU_SOURCE /* dladdr */
#include "base/alloc.h"
#include "core/autograd/engine.h"
#include "core/ops/functions.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else /* musl */
static int backtrace(void **frames, int n) {
    (void)frames, (void)n;
    return 0;
}
#endif

enum { MOST_FRAMES = 32, SHOWN = 12, TEXT = 700 };

atomic_bool tni_anomaly;

typedef struct trace {
    int n;
    void *frames[MOST_FRAMES];
} trace;

bool tn_set_anomaly_mode(bool enabled) {
    return atomic_exchange(&tni_anomaly, enabled);
}

bool tn_anomaly_mode(void) {
    return atomic_load(&tni_anomaly);
}

static void free_trace(void *user) {
    tni_free(user);
}

tni_node *tni_anomaly_recorded(tni_node *node) {
    trace *t = tni_alloc(sizeof *t);
    if (!t)
        return node; /* the message says less */
    t->n = backtrace(t->frames, MOST_FRAMES);
    if (!tni_hooks_add_trace(&node->hooks, t, free_trace))
        tni_free(t);
    return node;
}

/* "function+0x1a (program+0x1234)", as addr2line takes it. */
static int put_frame(char *to, size_t room, const void *frame, const Dl_info *at) {
    const char *slash = at->dli_fname ? strrchr(at->dli_fname, '/') : NULL;
    const char *object = slash ? slash + 1 : at->dli_fname ? at->dli_fname : "?";
    uintptr_t offset = (uintptr_t)frame - (uintptr_t)at->dli_fbase;
    if (at->dli_sname)
        return snprintf(to, room, "%s+0x%" PRIxPTR " (%s+0x%" PRIxPTR ")", at->dli_sname,
                        (uintptr_t)frame - (uintptr_t)at->dli_saddr, object, offset);
    return snprintf(to, room, "%s+0x%" PRIxPTR, object, offset);
}

/* The frames of this library come first, and are not the user's. In a program that it is linked
 * into nothing tells them from the program's own, and all are shown. */
static int first_of_program(const trace *t) {
    Dl_info here, program, at;
    int first = 0;
    if (!dladdr((const void *)&tn_set_anomaly_mode, &here) ||
        !dladdr((const void *)getauxval(AT_ENTRY), &program) || program.dli_fbase == here.dli_fbase)
        return 0;
    while (first < t->n && dladdr(t->frames[first], &at) && at.dli_fbase == here.dli_fbase)
        first++;
    return first;
}

static void put_trace(char text[TEXT], const trace *t) {
    Dl_info at;
    size_t used = 0;
    int first = first_of_program(t);
    text[0] = '\0';
    for (int i = first; i < t->n && i < first + SHOWN && used + 1 < TEXT; i++) {
        int n = snprintf(text + used, TEXT - used, "%s", i > first ? " < " : "");
        used += n > 0 ? (size_t)n : 0;
        memset(&at, 0, sizeof at);
        dladdr(t->frames[i], &at);
        if (used + 1 < TEXT)
            n = put_frame(text + used, TEXT - used, t->frames[i], &at);
        used += n > 0 ? (size_t)n : 0;
    }
}

static tn_status count_nans(tn_tensor *t, int64_t *out) {
    bool before = tn_set_grad_enabled(false);
    tn_tensor *nan = tni_isnan(t), *n = tni_count_nonzero(nan);
    tn_status status = n ? tn_item_i64(n, out) : tni_failed();
    tni_drop(n);
    tni_drop(nan);
    tn_set_grad_enabled(before);
    return status;
}

/* The first of `grads` with a NaN in it, and how many; *out_n is 0 where there is none. */
static tn_status find_nans(tn_tensor *const *grads, uint32_t n, uint32_t *out_at, int64_t *out_n) {
    *out_n = 0;
    for (uint32_t i = 0; i < n && *out_n == 0; i++) {
        *out_at = i;
        if (grads[i] && tni_is_float(grads[i]->view.dtype))
            TNI_TRY(count_nans(grads[i], out_n));
    }
    return TN_OK;
}

static tn_status fail(tni_node *node, const tn_tensor *grad, int64_t n, const char *what) {
    char where[TEXT] = "; where it was recorded is told if the mode is on by then";
    const trace *t = tni_hooks_trace(&node->hooks);
    if (t && t->n > 0)
        put_trace(where, t);
    return tni_fail(TN_ERR_STATE, "%s, shape %s, is NaN in %" PRId64 " of its elements%s%s", what,
                    TNI_SHAPE_OF(grad), n, t && t->n > 0 ? "; recorded by " : "", where);
}

tn_status tni_anomaly_check(tni_node *node, tn_tensor *const *outs) {
    uint32_t at = 0;
    int64_t n;
    char what[64];
    TNI_TRY(find_nans(outs, node->n_edges, &at, &n));
    snprintf(what, sizeof what, "the gradient of input %u", at);
    return n ? fail(node, outs[at], n, what) : TN_OK;
}

tn_status tni_anomaly_arrived(tni_node *node, tn_tensor *const *grads) {
    uint32_t at = 0;
    int64_t n;
    TNI_TRY(find_nans(grads, node->n_outputs, &at, &n));
    return n ? fail(node, grads[at], n,
                    "the gradient that arrives here, which no operator made so (it was given to "
                    "backward, came from a hook, or is a sum with infinities of both signs)")
             : TN_OK;
}
