/* The standing error of each thread, and the names of statuses. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "base/thread.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct error_state {
    tn_status status;
    bool read;
    uint64_t suppressed;
    char *message;     /* owned; NULL: `fixed` is the message */
    const char *fixed; /* for when there is no memory for a message */
    char *operator_;   /* owned; NULL: none, or no memory for it */
} error_state;

static TNI_TLS error_state standing;
static TNI_TLS char *plugin_message;
static TNI_TLS bool exit_registered;

_Static_assert(sizeof(error_state) <= sizeof(tni_saved_error), "tni_saved_error is too small");

static const struct {
    const char *name, *text;
} statuses[TN_STATUS_COUNT] = {
#define ENTRY(NAME, value, name, text) [value] = {name, text},
    TN_STATUS_MAP(ENTRY)
#undef ENTRY
};

const char *tn_status_name(tn_status status) {
    return status >= 0 && status < TN_STATUS_COUNT ? statuses[status].name : "?";
}

const char *tn_status_text(tn_status status) {
    return status >= 0 && status < TN_STATUS_COUNT ? statuses[status].text : "?";
}

static void free_thread_state(void) {
    tn_error_clear();
    tni_free(plugin_message);
    plugin_message = NULL;
    exit_registered = false;
}

bool tni_error_stands(void) {
    return standing.status != TN_OK && !standing.read;
}

/* Keeps `message` (owned; NULL when there was no memory for it) as the standing error. */
static tn_status stand(tn_status status, char *message) {
    if (!exit_registered)
        exit_registered = tni_thread_at_exit(free_thread_state);
    if (tni_error_stands()) {
        standing.suppressed++;
        tni_free(message);
        return status;
    }
    tni_free(standing.message);
    tni_free(standing.operator_);
    standing = (error_state){.status = status,
                             .message = message,
                             .fixed = "out of host memory while describing an error"};
    return status;
}

tn_status tn_fail(tn_status status, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *message = n < 0 ? NULL : tni_alloc((size_t)n + 1);
    if (message) {
        vsnprintf(message, (size_t)n + 1, format, again);
        tni_text_make_printable(message); /* parts may be a plugin's, or a path */
    }
    va_end(again);
    va_end(args);
    return stand(status, message);
}

tn_status tni_fail_memory(const char *what) {
    return tn_fail(TN_ERR_OUT_OF_MEMORY,
                   "out of host memory while making %s; free tensors you no longer"
                   " need, or close scopes earlier",
                   what);
}

tn_status tn_error_status(void) {
    return standing.status;
}

const char *tn_error_message(void) {
    standing.read = true;
    if (standing.status == TN_OK)
        return "";
    return standing.message ? standing.message : standing.fixed;
}

const char *tn_error_operator(void) {
    return standing.status != TN_OK && standing.operator_ ? standing.operator_ : "";
}

uint64_t tn_error_suppressed(void) {
    return standing.suppressed;
}

void tn_error_clear(void) {
    tni_free(standing.message);
    tni_free(standing.operator_);
    standing = (error_state){0};
}

tn_status tni_failed(void) {
    return standing.status != TN_OK ? standing.status : TN_ERR_INTERNAL;
}

void tni_error_operator(const char *operator_name) {
    if (standing.status != TN_OK && !standing.read && !standing.operator_)
        standing.operator_ = tni_strdup(operator_name);
}

tn_status tni_error_plugin(tn_status status, const char *message) {
    if (!exit_registered)
        exit_registered = tni_thread_at_exit(free_thread_state);
    tni_free(plugin_message);
    plugin_message = message ? tni_strdup(message) : NULL;
    if (plugin_message)
        tni_text_make_printable(plugin_message);
    return status;
}

const char *tni_error_plugin_message(void) {
    return plugin_message;
}

tn_status tni_error_take_plugin(tn_status status, const char *context) {
    if (status < 0 || status >= TN_STATUS_COUNT) {
        tn_fail(TN_ERR_INTERNAL, "%s: the plugin returned %d, which is no tn_status%s%s", context,
                status, plugin_message ? ": " : "", plugin_message ? plugin_message : "");
        status = TN_ERR_INTERNAL;
    } else {
        tn_fail(status, "%s: %s", context,
                plugin_message ? plugin_message : tn_status_text(status));
    }
    tni_free(plugin_message);
    plugin_message = NULL;
    return status;
}

void tni_error_save(tni_saved_error *saved) {
    memcpy(saved, &standing, sizeof standing);
    standing = (error_state){0};
}

void tni_error_restore(tni_saved_error *saved) {
    tn_error_clear();
    memcpy(&standing, saved, sizeof standing);
}
