/* Registrations of handlers: hung on one operator or on all, dropped in any order, listed with
 * their origin.
 *
 * Dropping must not need memory. Every registration therefore sets rows aside for its own drop: one
 * for an operator's handler; for a handler on all operators one for each operator with handlers of
 * its own and one for all the others together. */
#include "base/alloc.h"
#include "base/error.h"
#include "dispatcher/internal.h"

#include <string.h>

static tn_registration *for_all; /* newest first */
static size_t n_for_all;
static size_t n_own;           /* registrations of single operators */
static size_t n_own_operators; /* operators that have some */
static size_t n_with_backend;  /* registrations for one device type */
static const tni_row *default_row = &tni_row_empty;

const tni_row *tni_default_row(void) {
    return default_row;
}

static void publish(tni_operator *o) {
    const tni_row *row = default_row;
    if (!o->alive)
        row = &tni_row_dropped;
    else if (o->registrations)
        row = tni_row_resolve(o->registrations, for_all);
    atomic_store_explicit(&o->op.row, row, memory_order_release);
}

/* After the list of `changed` (NULL: the one for all operators) changed. */
static void publish_changed(tni_operator *changed) {
    if (changed) {
        publish(changed);
        return;
    }
    default_row = tni_row_resolve(NULL, for_all);
    for (tni_operator *o = tni_operators_first(); o; o = o->next)
        publish(o);
}

/* Rows for publishing once now, and for dropping everything one by one later, should one more
 * registration of `o` (NULL: for all) come. */
static bool reserve_for(const tni_operator *o, bool with_backend) {
    size_t own_operators = n_own_operators + (o && !o->registrations);
    size_t drops = (n_for_all + !o) * (1 + own_operators) + n_own + (o != NULL);
    size_t now = o ? 1 : 1 + own_operators;
    return tni_rows_reserve(drops + now, n_with_backend + with_backend);
}

static void count(const tn_registration *r, size_t by) {
    n_with_backend += r->backends ? by : 0;
    if (!r->op) {
        n_for_all += by;
    } else {
        n_own += by;
        n_own_operators += !r->op->registrations ? by : 0; /* counted while it is not linked */
    }
}

tn_registration *tn_handler_register(const tn_op *op, tn_key key, const char *device_type,
                                     tn_handler_fn fn, void *user, const char *origin) {
    if (!tni_registry_ready())
        return NULL;
    tni_operator *o = op ? tni_operator_of(op) : NULL;
    if ((int)key < 0 || key >= TN_KEY_COUNT) {
        tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_handler_register: there is no key %d; see TN_KEY_MAP",
                (int)key);
        return NULL;
    }
    if (!origin)
        origin = "unnamed";
    size_t n = strlen(origin) + 1;
    tn_registration *r = tni_alloc(sizeof *r + n);
    if (!r)
        return tni_fail_memory_null("a handler's registration");
    *r = (tn_registration){.op = o, .key = key, .entry = {fn, fn ? user : NULL}};
    memcpy(r->origin, origin, n);

    tn_registration *done = NULL;
    pthread_mutex_lock(&tni_registry_lock);
    if (o && !o->alive) {
        tn_fail(TN_ERR_STATE, "tn_handler_register: operator %s was unregistered", op->name);
        goto out;
    }
    if (!reserve_for(o, device_type != NULL)) {
        tni_fail_memory("dispatch rows");
        goto out;
    }
    if (device_type) {
        int id = tni_backend_id_locked(device_type);
        if (id < 0)
            goto out;
        r->backends = UINT64_C(1) << id;
    }
    count(r, 1);
    tn_registration **list = o ? &o->registrations : &for_all;
    r->next = *list;
    *list = r;
    publish_changed(o);
    done = r;
out:
    pthread_mutex_unlock(&tni_registry_lock);
    if (!done)
        tni_free(r);
    return done;
}

void tn_registration_drop(tn_registration *registration) {
    if (!registration)
        return;
    if (registration->head.drop) {
        registration->head.drop(registration);
        return;
    }
    pthread_mutex_lock(&tni_registry_lock);
    if (registration->is_definition) {
        tni_operator_drop(registration->op);
    } else {
        tni_operator *o = registration->op;
        tn_registration **link = o ? &o->registrations : &for_all;
        while (*link != registration)
            link = &(*link)->next;
        *link = registration->next;
        count(registration, (size_t)-1);
        publish_changed(o);
    }
    pthread_mutex_unlock(&tni_registry_lock);
    tni_free(registration);
}

void tni_handlers_finish(void) {
    for (tn_registration *next; for_all; for_all = next) {
        next = for_all->next;
        tni_free(for_all);
    }
    n_for_all = n_own = n_own_operators = n_with_backend = 0;
    default_row = &tni_row_empty;
}

/* ---- provenance -------------------------------------------------------------------------- */

void tni_op_provenance(const tn_op *op, void (*fn)(const tni_provenance *line, void *user),
                       void *user) {
    pthread_mutex_lock(&tni_registry_lock);
    const tn_registration *levels[] = {tni_operator_of(op)->registrations, for_all};
    static const char *const why[] = {"for this operator", "default of the key"};
    for (int key = TN_KEY_COUNT - 1; key >= 0; key--) {
        bool is_decided = false; /* by an entry for every backend */
        uint64_t covered = 0;
        for (int level = 0; level < 2; level++) {
            for (const tn_registration *r = levels[level]; r; r = r->next) {
                if ((int)r->key != key)
                    continue;
                tni_provenance line = {
                    .key = r->key,
                    .device_type =
                        r->backends ? tni_backend_name(__builtin_ctzll(r->backends)) : NULL,
                    .origin = r->origin,
                    .why = r->entry.fn ? why[level] : "falls through",
                    .active = !is_decided && !(covered & r->backends),
                };
                fn(&line, user);
                covered |= r->backends;
                is_decided |= !r->backends;
            }
        }
        if (!is_decided) {
            tni_provenance line = {
                .key = (tn_key)key, .origin = "", .why = "falls through", .active = true};
            fn(&line, user);
        }
    }
    pthread_mutex_unlock(&tni_registry_lock);
}
