/* Defines the operators of the table and their handlers, on the first use of the library. */
#include "core/call/autocast.h"
#include "core/call/counters.h"
#include "core/call/call.h"
#include "core/call/init.h"
#include "core/call/storage_dtype.h"
#include "core/graph/graph.h"
#include "core/ops/operators.h"
#include "core/profile/profile.h"
#include "base/fork.h"

const tn_op *tni_ops[TNI_OP_COUNT];
_Atomic bool tni_core_ready;
static tni_lock lock = TNI_LOCK_INITIALIZER;
static bool half_done; /* in a child: another thread of the parent was at it */

static void mend(bool whole) {
    half_done = !whole && !tni_core_ready;
}

TNI_FORK_LOCK(INIT, lock, mend)

/* What the Autograd key does for this operator, where the default (record a node) is not right. */
static bool autograd_handler(const tni_op_info *info, tn_handler_fn *out) {
    bool records = !info->not_differentiable;
    bool composite = info->kind == TNI_OP_COMPOSITE && !info->derivative;
    if (!records || (composite && info->form == TNI_FORM_FUNCTIONAL)) {
        *out = NULL; /* falls through: nothing to record, or `run` calls what records */
        return true;
    }
    if (!info->derivative && info->run) {
        *out = tni_autograd_decomposed;
        return true;
    }
    return false;
}

static bool tracks_views(const tni_op_info *info) {
    return info->kind == TNI_OP_VIEW || info->written;
}

static tn_status register_all(void) {
    const char *origin = "tenon core";
    for (int i = 0; i < TNI_OP_COUNT; i++) {
        const tni_op_info *info = &tni_op_infos[i];
        tn_op *op = tni_op_define(info->schema, origin, info);
        if (!op)
            return tni_failed();
        tni_ops[i] = op;
        tn_handler_fn fn;
        if (autograd_handler(info, &fn) &&
            !tn_handler_register(op, TN_KEY_AUTOGRAD, NULL, fn, NULL, origin))
            return tni_failed();
        if (info->autocast &&
            !tn_handler_register(op, TN_KEY_AUTOCAST, NULL, tni_autocast_handler, NULL, origin))
            return tni_failed();
        if (!tracks_views(info) &&
            !tn_handler_register(op, TN_KEY_INPLACE_OR_VIEW, NULL, NULL, NULL, origin))
            return tni_failed();
    }
    if (!tn_handler_register(NULL, TN_KEY_BACKEND, NULL, tni_backend_handler, NULL, origin) ||
        !tn_handler_register(NULL, TN_KEY_INPLACE_OR_VIEW, NULL, tni_inplace_or_view_handler, NULL,
                             origin) ||
        !tn_handler_register(NULL, TN_KEY_AUTOGRAD, NULL, tni_autograd_handler, NULL, origin) ||
        !tn_handler_register(NULL, TN_KEY_STORAGE_DTYPE, NULL, tni_storage_dtype_handler, NULL,
                             origin) ||
        !tn_handler_register(NULL, TN_KEY_CAPTURE, NULL, tni_capture_handler, NULL, origin))
        return tni_failed();
    return TN_OK;
}

/* Registering asks the registry, which asks us: answer at once. */
static TNI_TLS bool registering;

tn_status tni_core_init_slow(void) {
    if (registering)
        return TN_OK;
    tni_lock_take(&lock);
    tn_status status = TN_OK;
    if (half_done)
        tni_registry_clear();
    half_done = false;
    if (!atomic_load(&tni_core_ready)) {
        registering = true;
        status = register_all();
        registering = false;
        if (status == TN_OK) {
            atomic_store_explicit(&tni_core_ready, true, memory_order_release);
            status = tni_profile_init();
            if (status == TN_OK)
                status = tni_lifetimes_init();
        }
        if (status != TN_OK) { /* all or nothing: the next use tries again */
            atomic_store(&tni_core_ready, false);
            tni_registry_clear();
        }
    }
    tni_lock_give(&lock);
    return status;
}

/* Only stores a pointer: the work waits for the first use. */
static tn_status prepare(void) {
    return tni_core_init();
}
__attribute__((constructor)) static void announce(void) {
    tni_registry_prepare = prepare;
}

void tni_core_finish(void) {
    atomic_store(&tni_core_ready, false);
    tni_counters_finish();
}
