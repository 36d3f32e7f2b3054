/* What the plugin calls of the host: memory, log, failures, options. */
#include "base/error.h"
#include "loader/validation/internal.h"

#include <inttypes.h>

/* The operator of the call that the thread is in, when that is of this plugin. */
static const char *operator_of(const tni_watch *w) {
    const tni_frame *f = tni_frame_top();
    return f && f->watch == w ? f->op : "";
}

void *tni_watched_host_alloc(tni_watch *w, uint64_t bytes, uint64_t alignment) {
    tni_frame *f = tni_frame_top();
    if (alignment == 0 || (alignment & (alignment - 1)))
        tni_finding(w, TNP_HOST_ALLOC_RETURNED, "host->alloc", operator_of(w),
                    "alignment %" PRIu64 " is no power of two", alignment);
    void *p = w->real.host.alloc(bytes, alignment);
    if (p) {
        pthread_mutex_lock(&w->lock);
        tni_record *r = tni_record_add(w, TNI_RECORD_BLOCK, (uintptr_t)p, 0);
        if (r)
            r->bytes = bytes;
        pthread_mutex_unlock(&w->lock);
        if (!r) {
            w->real.host.free(p);
            p = NULL;
        }
    }
    if (!p && f && f->watch == w)
        f->dry = true;
    return p;
}

void tni_watched_host_free(tni_watch *w, void *p) {
    if (!p)
        return;
    pthread_mutex_lock(&w->lock);
    tni_record *r = tni_record_find(w, TNI_RECORD_BLOCK, (uintptr_t)p);
    if (r)
        tni_record_remove(w, r);
    pthread_mutex_unlock(&w->lock);
    if (r)
        w->real.host.free(p);
    else
        tni_finding(w, TNP_HOST_ALLOC_RETURNED, "host->free", operator_of(w),
                    "%p is no block that host->alloc gave out, or was freed before; it is left"
                    " alone",
                    p);
}

/* Is `self` what the plugin must pass now? Threads of the plugin's own may be early or late. */
static void check_self(const tni_watch *w, const tn_pself *self, const char *slot) {
    int state = atomic_load(&w->state);
    const tni_frame *f = tni_frame_top();
    bool inside = f && f->watch == w;
    if (state == TNI_WATCH_INIT && inside && self)
        tni_finding(w, TNP_HOST_SELF, slot, "", "self is %p inside init; it must be NULL there",
                    (const void *)self);
    if ((state == TNI_WATCH_STARTED || state == TNI_WATCH_SHUTDOWN) && self != w->self)
        tni_finding(w, TNP_HOST_SELF, slot, "", "self is %p, but init gave out %p",
                    (const void *)self, (void *)w->self);
}

void tni_watched_host_log(tni_watch *w, tn_pself *self, int32_t level, const char *message) {
    check_self(w, self, "host->log");
    w->real.host.log(self, level, message);
}

tn_status tni_watched_host_fail(tni_watch *w, tn_status status, const char *message) {
    tni_frame *f = tni_frame_top();
    if (status == TN_OK)
        tni_finding(w, TNP_FAIL_MESSAGE, "host->fail", operator_of(w),
                    "status is TN_OK, which is no failure");
    else if (status < 0 || status >= TN_STATUS_COUNT)
        tni_finding(w, TNP_STATUS_CODES, "host->fail", operator_of(w), "status %d is no tn_status",
                    status);
    if (!message || !*message)
        tni_finding(w, TNP_FAIL_MESSAGE, "host->fail", operator_of(w), "the message is %s",
                    message ? "empty" : "NULL");
    if (f && f->watch == w) {
        f->failed = message && *message;
        f->status = status;
    }
    return w->real.host.fail(status, message);
}

const char *tni_watched_host_option(tni_watch *w, tn_pself *self, const char *name) {
    if (atomic_load(&w->state) == TNI_WATCH_LOADED) {
        tni_finding(w, TNP_HOST_OPTION, "host->option", "",
                    "asked before init or after shutdown; the answer is NULL");
        return NULL;
    }
    check_self(w, self, "host->option");
    return w->real.host.option(self, name);
}

const void *tni_watched_host_extension(tni_watch *w, const char *id) {
    return w->real.host.extension(id);
}
