/* Tensors that ended, found out when a program uses them (TENON_SCOPE_DEBUG=1).
 *
 * A slot is free for the next tensor the moment its own ended, so that whoever still has the address
 * reads another's values and nobody can tell. Watched, slots wait in a queue first, with what they
 * were; their count of references is 0, which no tensor's is. The functions that take a tensor look
 * at it, and so does a handler of the Check key, which is there for this alone. */
#include "core/tensor/tensor.h"
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum { WAITING = 1 << 16 };

_Atomic bool tni_lifetimes_watched;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn_tensor **waiting; /* [WAITING], a ring */
static uint64_t n_retired;  /* so far; the last WAITING of them wait */

TNI_FORK_MUTEX(LIFETIMES, lock, tni_fork_no_mend)

void tni_slot_retire(tn_tensor *slot) {
    pthread_mutex_lock(&lock);
    tn_tensor *oldest = slot;
    if (waiting) {
        tn_tensor **place = &waiting[n_retired++ % WAITING];
        oldest = *place;
        *place = slot;
    }
    pthread_mutex_unlock(&lock);
    if (oldest)
        tni_slab_free(TNI_SLAB_TENSOR, oldest);
}

tn_status tni_refuse_gone(const tn_tensor *t, const char *call, const char *what) {
    tn_status status =
        tni_fail(TN_ERR_STATE,
                 "%s: %s is no longer there (it was %s of %s): its scope was closed or its last"
                 " reference dropped; tn_keep takes a reference, tn_escape moves a tensor to the"
                 " scope outside",
                 call, what, TNI_SHAPE_OF(t), tn_dtype_name(t->view.dtype));
    /* Many of these calls answer with no status. */
    if (tni_log_on(TN_LOG_ERROR, "scope"))
        tni_log_line(TN_LOG_ERROR, "scope", "%s", tn_error_message());
    return status;
}

static tn_status refuse_argument(const tn_op *op, uint32_t arg, const tn_tensor *t) {
    char what[64];
    snprintf(what, sizeof what, "argument '%s'", op->schema->args[arg].name);
    return tni_refuse_gone(t, op->name, what);
}

static tn_status check(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                       void *user) {
    (void)user;
    for (uint32_t i = 0; i < op->n_tensor_args + op->n_list_args; i++) {
        const tn_cell *a = &args[op->tensor_args[i]];
        tn_tensor *const *list = a->v.pointer;
        if (a->tag == TN_CELL_TENSOR && tni_is_gone(a->v.pointer))
            return refuse_argument(op, op->tensor_args[i], a->v.pointer);
        for (uint32_t j = 0; a->tag == TN_CELL_TENSORS && j < a->n; j++)
            if (list[j] && tni_is_gone(list[j]))
                return refuse_argument(op, op->tensor_args[i], list[j]);
    }
    return tni_dispatch(op, tn_keyset_below(keys, TN_KEY_CHECK), args, rets);
}

tn_status tni_lifetimes_init(void) {
    if (strcmp(tni_env(TNI_ENV_SCOPE_DEBUG), "1") != 0)
        return TN_OK;
    tn_tensor **ring = tni_calloc(WAITING, sizeof(tn_tensor *));
    if (!ring)
        return tni_fail_memory("the queue of tensors that ended");
    if (!tn_handler_register(NULL, TN_KEY_CHECK, NULL, check, NULL, "TENON_SCOPE_DEBUG")) {
        tni_free(ring);
        return tni_failed();
    }
    pthread_mutex_lock(&lock);
    waiting = ring;
    n_retired = 0;
    pthread_mutex_unlock(&lock);
    atomic_store(&tni_lifetimes_watched, true);
    return TN_OK;
}

void tni_lifetimes_finish(void) {
    atomic_store(&tni_lifetimes_watched, false);
    pthread_mutex_lock(&lock);
    tn_tensor **ring = waiting;
    waiting = NULL;
    pthread_mutex_unlock(&lock);
    for (uint64_t i = 0; ring && i < WAITING; i++)
        if (ring[i])
            tni_slab_free(TNI_SLAB_TENSOR, ring[i]);
    tni_free(ring);
}
