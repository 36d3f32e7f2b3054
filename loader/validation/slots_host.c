/* What the plugin calls of the host: memory, log, failures, options. */
#include "base/error.h"
#include "loader/validation/internal.h"

#include <inttypes.h>

/* The operator of the call that the thread is in, when that is of this plugin. */
static const char *operator_of(const tni_watch *w) {
    const tni_frame *f = tni_frame_top();
    return f && f->watch == w ? f->op : "";
}

/* Whose host it is. Inside a call it must be that of the called plugin, which is also who gets
 * what comes with a host that nobody was given. NULL: nobody's, outside of all calls. */
static tni_watch *watch_of(const tn_host *host, const char *slot) {
    const tni_frame *f = tni_frame_top();
    tni_watch *w = tni_watch_of(TNI_RECORD_HOST, host);
    if (w && (!f || f->watch == w))
        return w;
    tni_finding(f ? f->watch : NULL, TNP_HOST_ARGUMENT, slot, f ? f->op : "",
                "the first argument is %p%s; it must be the table that init was given",
                (const void *)host, w ? ", which another plugin was given" : "");
    return w || !f ? w : f->watch;
}

static void *host_alloc(const tn_host *host, uint64_t bytes, uint64_t alignment) {
    tni_watch *w = watch_of(host, "host->alloc");
    if (!w)
        return NULL;
    tni_frame *f = tni_frame_top();
    if (alignment == 0 || (alignment & (alignment - 1)))
        tni_finding(w, TNP_HOST_ALLOC_RETURNED, "host->alloc", operator_of(w),
                    "alignment %" PRIu64 " is no power of two", alignment);
    void *p = w->host->alloc(w->host, bytes, alignment);
    if (p) {
        pthread_mutex_lock(&tni_records_lock);
        tni_record like = {.kind = TNI_RECORD_BLOCK, .key = (uintptr_t)p, .bytes = bytes};
        bool kept = tni_record_add(w, &like);
        pthread_mutex_unlock(&tni_records_lock);
        if (!kept) {
            w->host->dealloc(w->host, p);
            p = NULL;
        }
    }
    if (!p && f && f->watch == w)
        f->dry = true;
    return p;
}

static void host_dealloc(const tn_host *host, void *p) {
    tni_watch *w = watch_of(host, "host->dealloc");
    if (!w || !p)
        return;
    pthread_mutex_lock(&tni_records_lock);
    tni_record *r = tni_record_find(w, TNI_RECORD_BLOCK, (uintptr_t)p);
    if (r)
        tni_record_remove(w, r);
    pthread_mutex_unlock(&tni_records_lock);
    if (r)
        w->host->dealloc(w->host, p);
    else
        tni_finding(w, TNP_HOST_ALLOC_RETURNED, "host->dealloc", operator_of(w),
                    "%p is no block that host->alloc gave out, or was freed before; it is left"
                    " alone",
                    p);
}

static void host_log_message(const tn_host *host, int32_t level, const char *message) {
    tni_watch *w = watch_of(host, "host->log_message");
    if (w)
        w->host->log_message(w->host, level, message);
}

static tn_status host_fail(const tn_host *host, tn_status status, const char *message) {
    tni_watch *w = watch_of(host, "host->fail");
    if (!w)
        return status;
    tni_frame *f = tni_frame_top();
    if (status == TN_OK)
        tni_finding(w, TNP_FAIL_MESSAGE, "host->fail", operator_of(w),
                    "status is TN_OK, which is no failure");
    else if (status < 0 || (status >= TN_STATUS_COUNT && !tni_is_newer(w)))
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

static const char *host_option(const tn_host *host, const char *name) {
    tni_watch *w = watch_of(host, "host->option");
    if (!w)
        return NULL;
    if (atomic_load(&w->state) == TNI_WATCH_LOADED) {
        tni_finding(w, TNP_HOST_OPTION, "host->option", "",
                    "asked before init or after shutdown; the answer is NULL");
        return NULL;
    }
    return w->host->option(w->host, name);
}

static const void *host_extension(const tn_host *host, const char *id) {
    tni_watch *w = watch_of(host, "host->extension");
    return w ? w->host->extension(w->host, id) : NULL;
}

/* ---- the table --------------------------------------------------------------------------- */

const tn_host tni_checked_host = {
    .alloc = host_alloc,
    .dealloc = host_dealloc,
    .log_message = host_log_message,
    .fail = host_fail,
    .option = host_option,
    .extension = host_extension,
};
TN_LAST_MEMBER(tn_host, extension);
