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

#include <string.h>

TNI_TLS tni_scope_stack tni_scopes;

typedef struct mark {
    uint64_t at; /* items[at] is the scope's first */
    uint32_t serial;
} mark;

static TNI_TLS struct {
    mark *items;
    size_t n, capacity;
    size_t floor; /* those below belong to who called the callback that runs */
    uint32_t serial;
    bool known; /* the thread's end closes the root scope */
} marks;

/* Results are the caller's where no scope is open. Both stacks, empty then, look full, so that a
 * push and an opening come to their slow halves, and threads that do without pay nothing. The
 * outermost scope's handle has depth 0, which leads its closing there, too. */
static TNI_TLS struct {
    bool on, looks_full;
    uint64_t items; /* the stacks' capacities, while they look full */
    size_t marks;
} owned;

static void look_full(bool full) {
    if (full == owned.looks_full)
        return;
    uint64_t items = tni_scopes.capacity;
    size_t room = marks.capacity;
    tni_scopes.capacity = owned.items;
    marks.capacity = owned.marks;
    owned.items = items;
    owned.marks = room;
    owned.looks_full = full;
}

/* Handle of a scope for which there was no memory; closing it does nothing. */
static const tn_scope not_opened = UINT64_MAX;

/* Pops one by one: a tensor's end may run a program's code, which may push. */
static void pop_to(uint64_t at) {
    while (tni_scopes.n > at) {
        tn_tensor *t = tni_scopes.items[--tni_scopes.n];
        if (TNI_UNLIKELY(tni_is_gone(t)))
            tni_refuse_gone(t, "tn_scope_close", "a tensor that the scope holds");
        else
            tni_drop(t);
    }
}

void tni_scope_finish(void) {
    look_full(false);
    owned.on = false;
    marks.n = 0;
    pop_to(0);
    tni_free(tni_scopes.items);
    tni_free(marks.items);
    tni_scopes = (tni_scope_stack){NULL, 0, 0};
    marks.items = NULL;
    marks.capacity = 0;
}

static void end_of_thread(void) {
    if (tni_scopes.n && strcmp(tni_env(TNI_ENV_SCOPE_DEBUG), "1") == 0 &&
        tni_log_on(TN_LOG_WARN, "scope"))
        tni_log_line(TN_LOG_WARN, "scope",
                     "a thread ended with %llu tensors held by its scopes; open a scope round the"
                     " work of a thread (TN_SCOPE)",
                     (unsigned long long)tni_scopes.n);
    tni_scope_finish();
    marks.known = false;
}

static bool know_thread(void) {
    if (!marks.known)
        marks.known = tni_slab_thread_init() && tni_thread_at_exit(end_of_thread);
    return marks.known;
}

bool tni_scope_reserve(void) {
    if (owned.looks_full)
        return true;
    size_t capacity = tni_scopes.capacity;
    if (!know_thread() ||
        !tni_grow(&tni_scopes.items, tni_scopes.n, &capacity, sizeof *tni_scopes.items)) {
        tni_fail_memory("room for a tensor in a scope");
        return false;
    }
    tni_scopes.capacity = capacity;
    return true;
}

tn_tensor *tni_scope_push_slow(tn_tensor *t) {
    if (!t || owned.looks_full)
        return t;
    if (!tni_scope_reserve()) {
        tni_drop(t);
        return NULL;
    }
    return tni_scopes.items[tni_scopes.n++] = t;
}

static bool room_for_mark(void) {
    return know_thread() && tni_grow(&marks.items, marks.n, &marks.capacity, sizeof *marks.items);
}

static tn_scope open_mark(void) {
    marks.items[marks.n++] = (mark){tni_scopes.n, ++marks.serial};
    return (uint64_t)marks.serial << 32 | marks.n;
}

static __attribute__((noinline)) tn_scope open_slow(void) {
    look_full(false);
    if (!room_for_mark())
        return not_opened;
    tn_scope scope = open_mark();
    return owned.on && marks.n == 1 ? scope - 1 : scope;
}

tn_scope tn_scope_open(void) {
    return TNI_UNLIKELY(marks.n == marks.capacity) ? open_slow() : open_mark();
}

/* A callback names a scope that was open when it was called, and in which the caller may have what it
 * works on. */
static void refuse_outer(tn_scope scope) {
    uint64_t depth = scope & UINT32_MAX;
    uint64_t at = depth ? depth - 1 : 0;
    if (scope == 0 || (at < marks.n && marks.items[at].serial == scope >> 32))
        tni_fail(TN_ERR_STATE,
                 "tn_scope_close: the scope was opened outside of the hook or function that"
                 " runs; whoever opened it closes it");
}

tni_callback_scope tni_scope_enter(void) {
    tni_callback_scope before = {tn_scope_open(), marks.floor};
    marks.floor = marks.n;
    return before;
}

void tni_scope_leave(tni_callback_scope before) {
    marks.floor = before.floor;
    tn_scope_close(before.scope);
}

/* The root scope, or the outermost of a thread whose results are its own. */
static __attribute__((noinline)) void close_outermost(tn_scope scope) {
    if (marks.floor > 0) {
        refuse_outer(scope);
        return;
    }
    if (scope != 0 && (!owned.on || marks.n == 0 || marks.items[0].serial != scope >> 32))
        return;
    marks.n = 0;
    pop_to(0);
    look_full(owned.on);
}

void tn_scope_close(tn_scope scope) {
    uint64_t depth = scope & UINT32_MAX;
    if (depth <= marks.floor) {
        close_outermost(scope);
        return;
    }
    if (depth > marks.n || marks.items[depth - 1].serial != scope >> 32)
        return;
    uint64_t at = marks.items[depth - 1].at;
    marks.n = depth - 1;
    pop_to(at);
}

tn_status tn_set_results_owned(bool on) {
    if (marks.n > 0 || tni_scopes.n > 0)
        return tni_fail(TN_ERR_STATE,
                        "tn_set_results_owned: %s, and the scopes of this thread hold %llu tensors;"
                        " close them first (tn_scope_close(0))",
                        marks.n > 0 ? "a scope is open" : "no scope is open",
                        (unsigned long long)tni_scopes.n);
    look_full(false);
    /* Room for the first mark, without which an opened scope would have nobody to hold for it. */
    if (on && !room_for_mark()) {
        look_full(owned.on);
        return tni_fail_memory("room for a scope");
    }
    owned.on = on;
    look_full(on);
    return TN_OK;
}

bool tn_results_owned(void) {
    return owned.on;
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

/* Takes out what is at i, from whichever scope. */
static inline __attribute__((always_inline)) void take_out(uint64_t i) {
    tni_scopes.n--;
    if (TNI_UNLIKELY(i < tni_scopes.n)) /* the newest is freed most */
        memmove(tni_scopes.items + i, tni_scopes.items + i + 1,
                (tni_scopes.n - i) * sizeof *tni_scopes.items);
    for (size_t k = marks.n; k > 0 && marks.items[k - 1].at > i; k--)
        marks.items[k - 1].at--;
}

void tn_free(tn_tensor *t) {
    if (!tni_is_tensor(t, "tn_free"))
        return;
    uint64_t i = find(t, 0);
    if (i == UINT64_MAX)
        return;
    take_out(i);
    tni_drop(t);
}

tn_tensor *tn_escape(tn_tensor *t) {
    if (!tni_is_tensor(t, "tn_escape"))
        return tni_not_tensor(t) ? t : NULL;
    if (marks.n == 0)
        return t;
    mark *innermost = &marks.items[marks.n - 1];
    uint64_t i = find(t, innermost->at);
    if (i == UINT64_MAX)
        return t;
    if (owned.on && marks.n == 1) { /* the parent is the caller */
        take_out(i);
        return t;
    }
    memmove(tni_scopes.items + innermost->at + 1, tni_scopes.items + innermost->at,
            (i - innermost->at) * sizeof *tni_scopes.items);
    tni_scopes.items[innermost->at++] = t;
    return t;
}
