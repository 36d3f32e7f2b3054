/* What the files of the registry share: operators, registrations, and the rows made from them.
 *
 * A row follows from two lists of registrations alone: those of the operator and those for all
 * operators. So rows are interned by content and shared by operators, and "the same state comes
 * back" is a look-up. Everything here is guarded by tni_registry_lock.
 */
#ifndef TNI_DISPATCHER_INTERNAL_H
#define TNI_DISPATCHER_INTERNAL_H

#include "dispatcher/registry.h"

#include <pthread.h>
#include <stddef.h>

extern pthread_mutex_t tni_registry_lock;

typedef struct tni_operator {
    tn_op op;   /* first: tn_op * and tni_operator * are the same address */
    bool alive; /* the definition was not dropped */
    char *origin;
    struct tni_operator *next;      /* in order of definition */
    struct tni_operator *same_hash; /* in the table of names */
    tn_registration *registrations; /* of this operator, newest first */
    tn_registration *definition;    /* NULL when the definition cannot be dropped */
} tni_operator;

/* A handler, or the definition of an operator. */
struct tn_registration {
    tni_registration_head head;
    tn_registration *next;
    tni_operator *op;   /* NULL: all operators */
    bool is_definition; /* then only `op` and `next` matter */
    tn_key key;
    uint64_t backends; /* one bit, or 0: whatever the backend */
    tni_entry entry;
    char origin[];
};

static inline tni_operator *tni_operator_of(const tn_op *op) {
    return (tni_operator *)(uintptr_t)op;
}

/* ---- rows -------------------------------------------------------------------------------- */

/* Nothing is handled: of an operator without handlers; and of one that was dropped. */
extern const tni_row tni_row_empty, tni_row_dropped;

/* Makes sure that n more rows, of up to `n_backend_entries` each, can be made without asking for
 * memory; false, and nothing changed, when there is none. */
bool tni_rows_reserve(size_t n, size_t n_backend_entries);

/* The row for an operator with these registrations. Uses up a reserved row unless this row was made
 * before; never fails. */
const tni_row *tni_row_resolve(const tn_registration *own, const tn_registration *for_all);

/* The entry of `key` for a call on `backends`: the first of the row's entries for one of them, else
 * the one for all. The cpu's bit counts only when it is alone, since cpu scalars may join any
 * device's call. */
tni_entry tni_row_entry(const tni_row *row, tn_key key, uint64_t backends);

void tni_rows_finish(void);

/* ---- the parts of registry --------------------------------------------------------------- */

/* The row of operators without handlers of their own. */
const tni_row *tni_default_row(void);

/* Every operator ever defined, dropped ones too. */
tni_operator *tni_operators_first(void);

/* Takes the definition back. */
void tni_operator_drop(tni_operator *o);

/* Frees the registrations for all operators. */
void tni_handlers_finish(void);

/* tni_backend_id for who holds the lock. */
int tni_backend_id_locked(const char *key);
void tni_backends_finish(void);

#endif
