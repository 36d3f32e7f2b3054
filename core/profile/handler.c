/* The Profile key: stands above all others while someone wants to know what runs.
 *
 * Every call's key set has the key's bit, so all it takes is a handler in the rows; without one the
 * dispatcher passes by. */
#include "base/env.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "core/call/op_info.h"
#include "core/profile/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TNI_TLS tni_run_note tni_noted;
static TNI_TLS uint32_t depth;
static TNI_TLS uint64_t n_ended; /* calls of this thread */
static TNI_TLS bool worked;      /* has any within the call under way done more than make a view? */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn_registration *registration;

TNI_FORK_MUTEX(PROFILE, lock, tni_fork_no_mend)
static _Atomic bool recording, logging;
static const char *trace_path; /* what TENON_PROFILE names, while it is to be written */

/* ---- the log of calls -------------------------------------------------------------------- */

/* "add.Tensor(f32[2], f32[2])  Autograd > Backend": the keys that have a handler for it. */
static void log_entry(const tn_op *op, tn_keyset keys, const tn_cell *args) {
    char shown[TNI_PROFILE_ARGS], way[128] = "";
    const tni_row *row = atomic_load_explicit(&op->row, memory_order_acquire);
    uint32_t left = tn_keyset_below(keys, TN_KEY_PROFILE).keys & row->handled;
    while (left) {
        uint32_t key = (uint32_t)__builtin_clz(left) ^ 31;
        left &= ~(1u << key);
        strncat(way, tn_key_name((tn_key)key), sizeof way - strlen(way) - 1);
        if (left)
            strncat(way, " > ", sizeof way - strlen(way) - 1);
    }
    tni_log_line(TN_LOG_TRACE, "dispatch", "%*s%s(%s)  %s", (int)(2 * depth), "", op->name,
                 tni_describe_args(op, args, shown, sizeof shown), way);
}

static void log_exit(const tn_op *op, tn_status status) {
    tn_profile_how how = tni_noted.how;
    const char *by = tni_noted.kernel ? tni_noted.kernel->origin : "";
    if (status != TN_OK)
        tni_log_line(TN_LOG_TRACE, "dispatch", "%*s! %s: %s", (int)(2 * depth + 2), "", op->name,
                     tn_status_name(status));
    else if (how == TN_PROFILE_KERNEL || how == TN_PROFILE_FALLBACK)
        tni_log_line(TN_LOG_TRACE, "dispatch", "%*s= %s%s%s", (int)(2 * depth + 2), "",
                     tni_how_name(how), *by ? " of " : "", by);
}

/* ---- the handler ------------------------------------------------------------------------- */

static tn_profile_how expected(const tn_op *op) {
    const tni_op_info *info = tni_info(op);
    return !info                            ? TN_PROFILE_COMPOSITE
           : info->kind == TNI_OP_VIEW      ? TN_PROFILE_VIEW
           : info->kind == TNI_OP_COMPOSITE ? TN_PROFILE_COMPOSITE
                                            : TN_PROFILE_NOTHING;
}

static tn_status handler(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                         void *user) {
    tni_run_note outer = tni_noted;
    tni_event event;
    bool record = atomic_load_explicit(&recording, memory_order_relaxed);
    bool log = atomic_load_explicit(&logging, memory_order_relaxed);
    if (log)
        log_entry(op, keys, args);
    if (record) {
        event = (tni_event){
            .shown = {.struct_size = sizeof event.shown, .op = op->name, .depth = depth}};
        tni_describe_args(op, args, event.args, sizeof event.args);
        tni_event_begin(&event, tni_call_place(op, args));
    }
    tni_note(expected(op));
    bool outer_worked = worked;
    uint64_t n_before = n_ended;
    worked = false;
    depth++;
    tn_status status = tni_dispatch(op, tn_keyset_below(keys, TN_KEY_PROFILE), args, rets);
    depth--;
    bool work = tni_noted.how != TN_PROFILE_VIEW && (worked || n_ended == n_before);
    n_ended++;
    worked = outer_worked || work;
    if (record) {
        event.shown.status = status;
        event.shown.how = tni_noted.how;
        event.shown.kernel = tni_noted.kernel ? tni_noted.kernel->origin : "";
        tni_event_end(&event, work);
    }
    if (log)
        log_exit(op, status);
    tni_noted = outer;
    return status;
}

/* Under the lock: the handler is there while anyone needs it. */
static tn_status update(void) {
    bool wanted = atomic_load(&recording) || atomic_load(&logging);
    if (wanted && !registration) {
        registration =
            tn_handler_register(NULL, TN_KEY_PROFILE, NULL, handler, NULL, "the profiler");
        return registration ? TN_OK : tn_error_status();
    }
    if (!wanted && registration) {
        tn_registration_drop(registration);
        registration = NULL;
    }
    return TN_OK;
}

/* ---- on and off -------------------------------------------------------------------------- */

tn_status tni_profile_switch(bool on) {
    pthread_mutex_lock(&lock);
    atomic_store(&recording, on);
    tn_status status = update();
    if (status != TN_OK)
        atomic_store(&recording, false);
    pthread_mutex_unlock(&lock);
    return status;
}

bool tn_profile_is_on(void) {
    return atomic_load(&recording);
}

/* At the end of the program, whether or not tn_shutdown came before. */
static void write_out(void) {
    const char *path = trace_path;
    if (!path)
        return;
    trace_path = NULL;
    tn_profile_stop();
    char *table = tn_profile_table();
    if (table)
        fputs(table, stderr);
    tn_string_free(table);
    if (tn_profile_write_trace(path) == TN_OK)
        fprintf(stderr, "tenon: trace written to %s\n", path);
    else
        fprintf(stderr, "tenon: %s\n", tn_error_message());
}

tn_status tni_profile_init(void) {
    static bool at_exit;
    tn_status status = TN_OK;
    if (tni_log_on(TN_LOG_TRACE, "dispatch")) {
        pthread_mutex_lock(&lock);
        atomic_store(&logging, true);
        status = update();
        pthread_mutex_unlock(&lock);
    }
    const char *path = tni_env(TNI_ENV_PROFILE);
    if (status != TN_OK || !*path)
        return status;
    status = tn_profile_start();
    if (status == TN_OK) {
        trace_path = path;
        if (!at_exit)
            at_exit = atexit(write_out) == 0;
    }
    return status;
}

void tni_profile_finish(void) {
    write_out();
    tn_profile_stop();
    tni_profile_clear();
    pthread_mutex_lock(&lock);
    atomic_store(&logging, false);
    update();
    pthread_mutex_unlock(&lock);
}
