/* Scopes: a thread's stack of references to what operators made, with watermarks.
 *
 * The marks are a stack of their own, because moving a tensor to the parent scope, or taking one
 * out from below, moves watermarks. A scope's handle is its depth and a serial number, so that
 * closing a scope that went with an outer one does nothing. */
#include "core/tensor/tensor.h"
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

TNI_TLS tni_scope_stack tni_scopes;

typedef struct mark {
    uint64_t at; /* items[at] is the scope's first */
    uint32_t serial;
} mark;

static TNI_TLS struct {
    mark *items;
    size_t n, capacity;
    uint32_t serial;
    bool known; /* the thread's end closes the root scope */
} marks;

/* Handle of a scope for which there was no memory; closing it does nothing. */
static const tn_scope not_opened = UINT64_MAX;

/* Pops one by one: a tensor's end may run a program's code, which may push. */
static void pop_to(uint64_t at) {
    while (tni_scopes.n > at)
        tni_drop(tni_scopes.items[--tni_scopes.n]);
}

void tni_scope_finish(void) {
    marks.n = 0;
    pop_to(0);
    tni_free(tni_scopes.items);
    tni_free(marks.items);
    tni_scopes = (tni_scope_stack){NULL, 0, 0};
    marks.items = NULL;
    marks.capacity = 0;
}

static void end_of_thread(void) {
    if (tni_scopes.n && tni_env_i64(TNI_ENV_SCOPE_DEBUG)) {
        /* The variable asks for the line, so it comes out with the log off, too. */
        char line[160];
        snprintf(line, sizeof line,
                 "a thread ended with %llu tensors held by its scopes; open a scope round the work"
                 " of a thread (TN_SCOPE)",
                 (unsigned long long)tni_scopes.n);
        if (tni_log_on(TN_LOG_WARN, "scope"))
            tni_log_line(TN_LOG_WARN, "scope", "%s", line);
        else
            fprintf(stderr, "tenon: %s\n", line);
    }
    tni_scope_finish();
    marks.known = false;
}

static bool know_thread(void) {
    if (!marks.known)
        marks.known = tni_slab_thread_init() && tni_thread_at_exit(end_of_thread);
    return marks.known;
}

tn_tensor *tni_scope_push_slow(tn_tensor *t) {
    if (!t)
        return NULL;
    size_t capacity = tni_scopes.capacity;
    if (!know_thread() ||
        !tni_grow(&tni_scopes.items, tni_scopes.n, &capacity, sizeof *tni_scopes.items)) {
        tni_drop(t);
        return tni_fail_memory_null("room for a tensor in a scope");
    }
    tni_scopes.capacity = capacity;
    return tni_scopes.items[tni_scopes.n++] = t;
}

tn_scope tn_scope_open(void) {
    if (TNI_UNLIKELY(marks.n == marks.capacity)) {
        if (!know_thread() ||
            !tni_grow(&marks.items, marks.n, &marks.capacity, sizeof *marks.items))
            return not_opened;
    }
    marks.items[marks.n++] = (mark){tni_scopes.n, ++marks.serial};
    return (uint64_t)marks.serial << 32 | marks.n;
}

void tn_scope_close(tn_scope scope) {
    if (scope == 0) {
        marks.n = 0;
        pop_to(0);
        return;
    }
    uint64_t depth = scope & UINT32_MAX;
    if (depth == 0 || depth > marks.n || marks.items[depth - 1].serial != scope >> 32)
        return;
    uint64_t at = marks.items[depth - 1].at;
    marks.n = depth - 1;
    pop_to(at);
}

uint64_t tn_scope_held(void) {
    return tni_scopes.n;
}

/* Where the thread's scopes hold t, from the top down to `end`; UINT64_MAX when they do not. */
static uint64_t find(const tn_tensor *t, uint64_t end) {
    for (uint64_t i = tni_scopes.n; i > end; i--) {
        if (tni_scopes.items[i - 1] == t)
            return i - 1;
    }
    return UINT64_MAX;
}

void tn_free(tn_tensor *t) {
    if (!t || t == TN_NONE)
        return;
    uint64_t i = find(t, 0);
    if (i == UINT64_MAX)
        return;
    tni_scopes.n--;
    if (TNI_UNLIKELY(i < tni_scopes.n)) /* the newest is freed most */
        memmove(tni_scopes.items + i, tni_scopes.items + i + 1,
                (tni_scopes.n - i) * sizeof *tni_scopes.items);
    for (size_t k = marks.n; k > 0 && marks.items[k - 1].at > i; k--)
        marks.items[k - 1].at--;
    tni_drop(t);
}

tn_tensor *tn_escape(tn_tensor *t) {
    if (!t || t == TN_NONE || marks.n == 0)
        return t;
    mark *innermost = &marks.items[marks.n - 1];
    uint64_t i = find(t, innermost->at);
    if (i == UINT64_MAX)
        return t;
    memmove(tni_scopes.items + innermost->at + 1, tni_scopes.items + innermost->at,
            (i - innermost->at) * sizeof *tni_scopes.items);
    tni_scopes.items[innermost->at++] = t;
    return t;
}
