/* Hooks: functions that see gradients on their way.
 *
 * A hook hangs on the node that made a tensor, or on the state of a leaf, and is its own
 * registration. One lock guards all lists; it is never held while a hook runs. A hook lives until
 * its list, its registration and the passes that run it are gone, and what it uses until no pass can
 * run it any more. */
#include "core/autograd/engine.h"
#include "base/alloc.h"
#include "base/fork.h"

#include <pthread.h>

typedef enum hook_kind { HOOK_GRAD, HOOK_NODE, HOOK_RETAIN, HOOK_TRACE } hook_kind;

struct tni_hook {
    tni_registration_head head; /* first: a hook is its registration */
    tni_hook *next, **link;     /* link NULL: off its list */
    _Atomic uint32_t refs;
    _Atomic uint32_t uses; /* of `user`: by the list, and by each pass that has the hook */
    hook_kind kind;
    uint32_t output;
    tn_grad_hook on_grad;
    tn_node_hook on_node;
    tn_tensor *retains; /* RETAIN: not owned; it takes the hook off when it dies */
    void *user;
    void (*destroy)(void *user);
};

static pthread_mutex_t hooks_lock = PTHREAD_MUTEX_INITIALIZER;

TNI_FORK_MUTEX(HOOKS, hooks_lock, tni_fork_no_mend)

static void hook_drop(tni_hook *h) {
    if (atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) == 1)
        tni_free(h);
}

/* Every write of a link is atomic: the first of a list is read without the lock. */
static void point(tni_hook **link, tni_hook *h) {
    __atomic_store_n(link, h, __ATOMIC_RELAXED);
}

static void unlink_locked(tni_hook *h) {
    point(h->link, h->next);
    if (h->next)
        h->next->link = h->link;
    h->link = NULL;
    h->next = NULL;
}

/* Gives up the list's reference, or a pass's. */
static void gone(tni_hook *h) {
    if (atomic_fetch_sub_explicit(&h->uses, 1, memory_order_acq_rel) == 1 && h->destroy)
        h->destroy(h->user);
    hook_drop(h);
}

static void drop_registration(tn_registration *registration) {
    tni_hook *h = (tni_hook *)registration;
    pthread_mutex_lock(&hooks_lock);
    bool listed = h->link != NULL;
    if (listed)
        unlink_locked(h);
    pthread_mutex_unlock(&hooks_lock);
    if (listed)
        gone(h);
    hook_drop(h);
}

void tni_hooks_destroy(tni_hook **list) {
    while (tni_hooks_any(list)) {
        pthread_mutex_lock(&hooks_lock);
        tni_hook *h = *list;
        if (h)
            unlink_locked(h);
        pthread_mutex_unlock(&hooks_lock);
        if (h)
            gone(h);
    }
}

/* At the end: hooks run in the order in which they were registered. */
static void append(tni_hook **list, tni_hook *h) {
    pthread_mutex_lock(&hooks_lock);
    while (*list)
        list = &(*list)->next;
    point(list, h);
    h->link = list;
    pthread_mutex_unlock(&hooks_lock);
}

static tni_hook *hook_new(hook_kind kind, uint32_t refs) {
    tni_hook *h = tni_calloc(1, sizeof *h);
    if (!h)
        return tni_fail_memory_null("a hook");
    h->head.drop = drop_registration;
    h->kind = kind;
    atomic_init(&h->refs, refs);
    atomic_init(&h->uses, 1);
    return h;
}

/* ---- registering ------------------------------------------------------------------------- */

tn_registration *tn_register_hook(tn_tensor *t, tn_grad_hook on_grad, void *user,
                                  void (*destroy)(void *user)) {
    if (tni_no_tensor(t, "tn_register_hook"))
        return NULL;
    if (!on_grad)
        return tni_fail_null(TN_ERR_INVALID_ARGUMENT, "tn_register_hook: the function is NULL");
    if (!tni_requires_grad(t))
        return tni_fail_null(TN_ERR_STATE,
                             "tn_register_hook: the tensor requires no gradient, so the hook would "
                             "never be called; see tn_set_requires_grad");
    tni_hook *h = hook_new(HOOK_GRAD, 2);
    if (!h)
        return NULL;
    h->on_grad = on_grad;
    h->user = user;
    h->destroy = destroy;
    tni_autograd *a = t->autograd;
    h->output = a->node ? a->output : 0;
    append(a->node ? &a->node->hooks : &a->hooks, h);
    return (tn_registration *)h;
}

tn_registration *tn_register_node_hook(tn_tensor *t, tn_node_hook on_node, void *user,
                                       void (*destroy)(void *user)) {
    if (tni_no_tensor(t, "tn_register_node_hook"))
        return NULL;
    if (!on_node)
        return tni_fail_null(TN_ERR_INVALID_ARGUMENT,
                             "tn_register_node_hook: the function is NULL");
    if (!tni_requires_grad(t) || !t->autograd->node)
        return tni_fail_null(TN_ERR_STATE,
                             "tn_register_node_hook: no recorded operator made the tensor; hang a "
                             "hook on the tensor itself with tn_register_hook");
    tni_hook *h = hook_new(HOOK_NODE, 2);
    if (!h)
        return NULL;
    h->on_node = on_node;
    h->user = user;
    h->destroy = destroy;
    append(&t->autograd->node->hooks, h);
    return (tn_registration *)h;
}

tn_status tni_retain_hook_add(tn_tensor *t) {
    tni_hook *h = hook_new(HOOK_RETAIN, 1);
    if (!h)
        return TN_ERR_OUT_OF_MEMORY;
    h->retains = t;
    h->output = t->autograd->output;
    append(&t->autograd->node->hooks, h);
    return TN_OK;
}

void tni_retain_hook_remove(tn_tensor *t) {
    tni_hook *found = NULL;
    pthread_mutex_lock(&hooks_lock);
    for (tni_hook *h = t->autograd->node ? t->autograd->node->hooks : NULL; h && !found;
         h = h->next)
        found = h->kind == HOOK_RETAIN && h->retains == t ? h : NULL;
    if (found)
        unlink_locked(found);
    pthread_mutex_unlock(&hooks_lock);
    if (found)
        gone(found);
}

bool tni_hooks_add_trace(tni_hook **list, void *trace, void (*destroy)(void *user)) {
    tni_hook *h = tni_calloc(1, sizeof *h);
    if (!h)
        return false;
    h->kind = HOOK_TRACE;
    atomic_init(&h->refs, 1);
    atomic_init(&h->uses, 1);
    h->user = trace;
    h->destroy = destroy;
    append(list, h);
    return true;
}

const void *tni_hooks_trace(tni_hook *const *list) {
    pthread_mutex_lock(&hooks_lock);
    const tni_hook *h = *list;
    while (h && h->kind != HOOK_TRACE)
        h = h->next;
    pthread_mutex_unlock(&hooks_lock);
    return h ? h->user : NULL; /* it goes with the node, which the caller holds */
}

/* ---- running ----------------------------------------------------------------------------- */

/* References to the hooks of one moment, in `few` or in memory of its own. */
enum { FEW = 8 };
static tni_hook **snapshot(tni_hook **list, bool (*match)(const tni_hook *h, uint32_t output),
                           uint32_t output, tni_hook **few, uint32_t *out_n) {
    tni_hook **taken = few;
    uint32_t n = 0;
    pthread_mutex_lock(&hooks_lock);
    for (tni_hook *h = *list; h; h = h->next)
        n += match(h, output);
    if (n > FEW && !(taken = tni_alloc(n * sizeof(tni_hook *)))) {
        pthread_mutex_unlock(&hooks_lock);
        return tni_fail_memory_null("a list of hooks");
    }
    n = 0;
    for (tni_hook *h = *list; h; h = h->next) {
        if (match(h, output)) {
            atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&h->uses, 1, memory_order_relaxed);
            taken[n++] = h;
        }
    }
    pthread_mutex_unlock(&hooks_lock);
    *out_n = n;
    return taken;
}

static void snapshot_free(tni_hook **taken, tni_hook **few, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        gone(taken[i]);
    if (taken != few)
        tni_free(taken);
}

static bool sees_output(const tni_hook *h, uint32_t output) {
    return h->kind == HOOK_GRAD && h->output == output;
}
static bool sees_node(const tni_hook *h, uint32_t output) {
    return h->kind == HOOK_NODE;
}

static tn_status call_grad_hook(const tni_hook *h, tn_tensor **grad) {
    tn_tensor *before = *grad;
    tn_tensor *after = h->on_grad(before, h->user);
    if (!after)
        return tn_error_status() != TN_OK
                   ? tn_error_status()
                   : tni_fail(TN_ERR_INVALID_ARGUMENT,
                              "a hook on a gradient returned NULL; return the gradient to go on "
                              "with, or NULL with an error");
    if (after == before)
        return TN_OK;
    bool same = after != TN_NONE && after->view.rank == before->view.rank &&
                after->view.dtype == before->view.dtype && after->device == before->device;
    for (int32_t i = 0; same && i < after->view.rank; i++)
        same = after->sizes[i] == before->sizes[i];
    if (!same)
        return tni_fail(
            TN_ERR_SHAPE,
            "a hook on a gradient of %s, shape %s on %s, returned %s, shape %s on %s; they "
            "must be alike",
            tn_dtype_name(before->view.dtype), TNI_SHAPE_OF(before), before->device->name,
            after == TN_NONE ? "TN_NONE" : tn_dtype_name(after->view.dtype),
            after == TN_NONE ? "[]" : TNI_SHAPE_OF(after),
            after == TN_NONE ? "no device" : after->device->name);
    *grad = tni_keep(after);
    tni_drop(before);
    return TN_OK;
}

/* Hands the gradient to the tensor that retains it, which takes itself off the list, under the
 * lock, before it dies. */
static void retain(tni_hook **list, uint32_t output, tn_tensor *grad) {
    tn_tensor *before = NULL;
    pthread_mutex_lock(&hooks_lock);
    tni_hook *h = *list;
    while (h && (h->kind != HOOK_RETAIN || h->output != output))
        h = h->next;
    if (h) {
        before = h->retains->autograd->grad;
        h->retains->autograd->grad = tni_keep(grad);
    }
    pthread_mutex_unlock(&hooks_lock);
    tni_drop(before);
}

/* Adds to what a tensor retained from earlier passes. */
static tn_tensor *retained(tni_hook **list, uint32_t output) {
    tn_tensor *earlier = NULL;
    pthread_mutex_lock(&hooks_lock);
    for (tni_hook *h = *list; h && !earlier; h = h->next)
        if (h->kind == HOOK_RETAIN && h->output == output && h->retains->autograd->grad)
            earlier = tni_keep(h->retains->autograd->grad);
    pthread_mutex_unlock(&hooks_lock);
    return earlier;
}

tn_status tni_hooks_run(tni_hook **list, uint32_t output, tn_tensor **grad, bool create_graph) {
    tni_hook *few[FEW];
    uint32_t n = 0;
    tni_hook **taken = snapshot(list, sees_output, output, few, &n);
    if (!taken)
        return TN_ERR_OUT_OF_MEMORY;
    tn_status status = TN_OK;
    if (n) {
        tn_thread_keys before = tni_keys_callback(create_graph);
        for (uint32_t i = 0; i < n && status == TN_OK; i++) {
            tni_callback_scope scope = tni_scope_enter();
            status = call_grad_hook(taken[i], grad);
            tni_scope_leave(scope);
        }
        tni_thread_keys = before;
    }
    snapshot_free(taken, few, n);
    if (status != TN_OK)
        return status;
    bool retains = false;
    pthread_mutex_lock(&hooks_lock);
    for (tni_hook *h = *list; h; h = h->next)
        retains = retains || (h->kind == HOOK_RETAIN && h->output == output);
    pthread_mutex_unlock(&hooks_lock);
    if (retains) {
        tn_tensor *earlier = retained(list, output);
        tn_tensor *sum = earlier ? tni_add_grads(earlier, tni_keep(*grad), true) : tni_keep(*grad);
        if (!sum)
            return tni_failed();
        retain(list, output, sum);
        tni_drop(sum);
    }
    return TN_OK;
}

tn_status tni_hooks_run_node(tni_node *node, tn_tensor **grads, bool create_graph) {
    tni_hook *few[FEW];
    uint32_t n = 0;
    tni_hook **taken = snapshot(&node->hooks, sees_node, 0, few, &n);
    if (!taken)
        return TN_ERR_OUT_OF_MEMORY;
    tn_tensor **owned = n ? tni_alloc(node->n_edges * sizeof(tn_tensor *)) : NULL;
    tn_status status = n && !owned ? tni_fail_memory("the gradients of a hook") : TN_OK;
    tn_thread_keys before = tni_keys_callback(create_graph);
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        tni_callback_scope scope = tni_scope_enter();
        for (uint32_t k = 0; k < node->n_edges; k++)
            owned[k] = grads[k];
        status = taken[i]->on_node(grads, node->n_edges, taken[i]->user);
        /* What the hook put there belongs to its scope; what it replaced was ours. */
        for (uint32_t k = 0; k < node->n_edges; k++) {
            if (grads[k] == owned[k])
                continue;
            if (status == TN_OK && grads[k] && grads[k] != TN_NONE)
                tni_keep(grads[k]);
            else
                grads[k] = NULL;
            tni_drop(owned[k]);
        }
        tni_scope_leave(scope);
    }
    tni_thread_keys = before;
    tni_free(owned);
    snapshot_free(taken, few, n);
    return status;
}
