/* What the plugin calls of the host: memory, log, failures, options. */
#include "base/error.h"
#include "loader/validation/internal.h"

#include <inttypes.h>

/* The operator of the call that the thread is in, when that is of this plugin. */
static const char *operator_of(const tni_watch *w) {
    const tni_frame *f = tni_frame_top();
    return f && f->watch == w ? f->op : "";
}

static void check_host(const tni_watch *w, const tn_host *host, const char *slot) {
    if (host != &w->proxy.host)
        tni_finding(w, TNP_HOST_ARGUMENT, slot, operator_of(w),
                    "the first argument is %p; it must be the table that init was given, %p",
                    (const void *)host, (const void *)&w->proxy.host);
}

void *tni_watched_host_alloc(tni_watch *w, const tn_host *host, uint64_t bytes,
                             uint64_t alignment) {
    tni_frame *f = tni_frame_top();
    check_host(w, host, "host->alloc");
    if (alignment == 0 || (alignment & (alignment - 1)))
        tni_finding(w, TNP_HOST_ALLOC_RETURNED, "host->alloc", operator_of(w),
                    "alignment %" PRIu64 " is no power of two", alignment);
    void *p = w->host->alloc(w->host, bytes, alignment);
    if (p) {
        pthread_mutex_lock(&w->lock);
        tni_record *r = tni_record_add(w, TNI_RECORD_BLOCK, (uintptr_t)p, 0);
        if (r)
            r->bytes = bytes;
        pthread_mutex_unlock(&w->lock);
        if (!r) {
            w->host->dealloc(w->host, p);
            p = NULL;
        }
    }
    if (!p && f && f->watch == w)
        f->dry = true;
    return p;
}

void tni_watched_host_dealloc(tni_watch *w, const tn_host *host, void *p) {
    check_host(w, host, "host->dealloc");
    if (!p)
        return;
    pthread_mutex_lock(&w->lock);
    tni_record *r = tni_record_find(w, TNI_RECORD_BLOCK, (uintptr_t)p);
    if (r)
        tni_record_remove(w, r);
    pthread_mutex_unlock(&w->lock);
    if (r)
        w->host->dealloc(w->host, p);
    else
        tni_finding(w, TNP_HOST_ALLOC_RETURNED, "host->dealloc", operator_of(w),
                    "%p is no block that host->alloc gave out, or was freed before; it is left"
                    " alone",
                    p);
}

void tni_watched_host_log_message(tni_watch *w, const tn_host *host, int32_t level,
                                  const char *message) {
    check_host(w, host, "host->log_message");
    w->host->log_message(w->host, level, message);
}

tn_status tni_watched_host_fail(tni_watch *w, const tn_host *host, tn_status status,
                                const char *message) {
    tni_frame *f = tni_frame_top();
    check_host(w, host, "host->fail");
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
    return w->host->fail(w->host, status, message);
}

const char *tni_watched_host_option(tni_watch *w, const tn_host *host, const char *name) {
    if (atomic_load(&w->state) == TNI_WATCH_LOADED) {
        tni_finding(w, TNP_HOST_OPTION, "host->option", "",
                    "asked before init or after shutdown; the answer is NULL");
        return NULL;
    }
    check_host(w, host, "host->option");
    return w->host->option(w->host, name);
}

const void *tni_watched_host_extension(tni_watch *w, const tn_host *host, const char *id) {
    check_host(w, host, "host->extension");
    return w->host->extension(w->host, id);
}
