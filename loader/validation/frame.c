/* One call into the plugin: who is in it, and what holds of every answer. */
#include "base/error.h"
#include "loader/validation/internal.h"

static TNI_TLS tni_frame *top;

/* Does more than one thread use the plugin? */
static void note_caller(tni_watch *w) {
    uint64_t self = (uint64_t)pthread_self(), nobody = 0;
    if (!atomic_compare_exchange_strong(&w->caller, &nobody, self) && nobody != self)
        atomic_store(&w->caller, TNI_MANY_CALLERS);
}

void tni_enter(tni_frame *f, tni_watch *w, const char *slot, const char *op) {
    *f = (tni_frame){.watch = w, .slot = slot, .op = op ? op : "", .outer = top};
    top = f;
    note_caller(w);
}

void tni_leave(tni_frame *f) {
    top = f->outer;
}

tni_frame *tni_frame_top(void) {
    return top;
}

/* Is the status one that this slot may answer, and was a failure explained? */
static void check_failure(const tni_frame *f, tn_status status, uint32_t may) {
    if (status == TN_NOT_READY) {
        if (!(may & TNI_MAY_WAIT))
            tni_finding(f->watch, TNP_NOT_READY_QUERIES_ONLY, f->slot, f->op,
                        "answered TN_NOT_READY, which only a query may");
        return;
    }
    if (status == TN_ERR_UNSUPPORTED && (may & TNI_MAY_DECLINE))
        return;
    if (!f->failed)
        tni_finding(f->watch, TNP_FAIL_MESSAGE, f->slot, f->op,
                    "failed with %s and no message; call host->fail before",
                    tn_status_name(status));
    else if (f->status != status)
        tni_finding(f->watch, TNP_FAIL_MESSAGE, f->slot, f->op,
                    "failed with %s, but told host->fail %s", tn_status_name(status),
                    tn_status_name(f->status));
    if (f->dry && status != TN_ERR_OUT_OF_MEMORY)
        tni_finding(f->watch, TNP_HOST_ALLOC_FAILURE, f->slot, f->op,
                    "host->alloc had no memory, and the call failed with %s; it must be"
                    " OUT_OF_MEMORY",
                    tn_status_name(status));
}

tn_status tni_answer(tni_frame *f, tn_status status, uint32_t may) {
    tni_leave(f);
    if (status < 0 || (status >= TN_STATUS_COUNT && !tni_is_newer(f->watch)))
        tni_finding(f->watch, TNP_STATUS_CODES, f->slot, f->op,
                    "answered %d, which is no tn_status", status);
    else if (status != TN_OK)
        check_failure(f, status, may);
    return status;
}

void tni_judge_choice(const tni_watch *w, int requirement, const char *slot, const char *op,
                      tn_status status, tn_status again) {
    if (status != again)
        tni_finding(w, requirement, slot, op, "answered %d and then %d to the same question",
                    status, again);
    if (status != TN_OK && status != TN_ERR_UNSUPPORTED)
        tni_finding(w, requirement, slot, op,
                    "answered %s; only TN_OK and TN_ERR_UNSUPPORTED are answers",
                    tn_status_name(status));
}

tn_status tni_watch_refuse(const char *what) {
    return tni_error_plugin(TN_ERR_STATE, what);
}

bool tni_expect_started(tni_watch *w, const char *slot, const tn_instance *self) {
    int state = w ? atomic_load(&w->state) : TNI_WATCH_LOADED;
    if (state == TNI_WATCH_STARTED && w->self == self)
        return true;
    tni_finding(w, TNI_TENON, slot, "", "called %s",
                !w                            ? "with a self that no plugin gave out"
                : state == TNI_WATCH_SHUTDOWN ? "inside shutdown"
                                              : "after shutdown");
    return false;
}

void tni_one_thread_enter(tni_watch *w, const char *slot) {
    if (atomic_fetch_add(&w->one_thread, 1) != 0)
        tni_finding(w, TNI_TENON, slot, "",
                    "called while another call to this plugin that is tagged one-thread goes on");
}

void tni_one_thread_leave(tni_watch *w) {
    atomic_fetch_sub(&w->one_thread, 1);
}
