/* The operators, their dispatch rows, and the call.
 *
 * A row is immutable: registering builds a new one and publishes its pointer. A retired row stays
 * readable until tni_registry_finish, and is published again when the same state comes back, so
 * that registering in a loop does not grow memory.
 */
#ifndef TNI_DISPATCHER_REGISTRY_H
#define TNI_DISPATCHER_REGISTRY_H

#include "base/thread.h"
#include "dispatcher/schema.h"

#include <stdatomic.h>

/* How the dispatcher sees a tensor: the first member of every tn_tensor. */
typedef struct tni_tensor_head {
    uint64_t backends; /* one bit: the backend of its device */
    uint32_t keys;     /* functionality it asks for, TN_KEY_BIT(...) */
} tni_tensor_head;

typedef struct tni_entry {
    tn_handler_fn fn; /* NULL: falls through; never of a handled key without backend entries */
    void *user;
} tni_entry;

/* A handler that holds for some backends only. */
typedef struct tni_backend_entry {
    uint64_t backends;
    tn_key key;
    tni_entry entry;
} tni_backend_entry;

typedef struct tni_row {
    uint32_t handled; /* keys with an entry, whatever the backend */
    uint32_t n_backend_entries;
    tni_entry entries[TN_KEY_COUNT];
    const tni_backend_entry *backend_entries;
} tni_row;

struct tn_op {
    _Atomic(const tni_row *) row;
    const char *name;
    const tni_schema *schema;
    uint32_t index;        /* dense, for side tables */
    uint8_t n_tensor_args; /* single tensors, optional ones included */
    uint8_t n_list_args;   /* Tensor[] */
    int8_t device_arg;     /* position of the Device argument, or -1 */
    uint8_t reserved;
    uint8_t tensor_args[TNI_MAX_ARGS]; /* positions: tensors, then lists */
    const void *info;                  /* what the core keeps about it (tni_op_info), or NULL */
};

/* What every registration starts with. One of another layer sets `drop`, and tn_registration_drop
 * leaves the rest to it. */
typedef struct tni_registration_head {
    void (*drop)(tn_registration *registration);
} tni_registration_head;

/* Thread state. */
extern TNI_TLS tn_thread_keys tni_thread_keys;

/* Which backend bit a packed Device argument (an I64 cell) stands for. The device type ids of the
 * packed form are backend ids plus one; 0 is "not given". */
static inline uint64_t tni_device_cell_backends(const tn_cell *cell) {
    return cell->tag == TN_CELL_I64 && cell->v.i64 >> 32 > 0
               ? (uint64_t)1 << ((cell->v.i64 >> 32) - 1)
               : 0;
}

/* The dispatch over a row with entries for single backends, and of a call that the row does not
 * handle: a failure that names operator, keys and backends, or says that the operator was
 * unregistered. */
tn_status tni_dispatch_slow(const tn_op *op, const tni_row *row, tn_keyset keys,
                            const tn_cell *args, tn_cell *rets);

static inline tn_keyset tni_keyset_of(const tn_op *op, const tn_cell *args) {
    /* Profile and Check have handlers only while somebody wants to know; then every call passes. */
    tn_keyset set = {
        0, TN_KEY_BIT(TN_KEY_BACKEND) | TN_KEY_BIT(TN_KEY_PROFILE) | TN_KEY_BIT(TN_KEY_CHECK), 0};
    uint32_t i = 0;
    for (; i < op->n_tensor_args; i++) {
        const tn_cell *a = &args[op->tensor_args[i]];
        if (TNI_LIKELY(a->tag == TN_CELL_TENSOR)) {
            const tni_tensor_head *t = a->v.pointer;
            set.backends |= t->backends;
            set.keys |= t->keys;
        }
    }
    for (uint32_t end = i + op->n_list_args; i < end; i++) {
        const tn_cell *a = &args[op->tensor_args[i]];
        const tni_tensor_head *const *list = a->v.pointer;
        for (uint32_t j = 0; j < a->n; j++) {
            if (list[j]) {
                set.backends |= list[j]->backends;
                set.keys |= list[j]->keys;
            }
        }
    }
    if (op->device_arg >= 0)
        set.backends |= tni_device_cell_backends(&args[op->device_arg]);
    return set;
}

/* Jumps to the handler of the highest key in `keys` that this operator handles. Nothing is called
 * on the way but in tail position, so that no register needs saving. */
static inline tn_status tni_dispatch(const tn_op *op, tn_keyset keys, const tn_cell *args,
                                     tn_cell *rets) {
    const tni_row *row = atomic_load_explicit(&op->row, memory_order_acquire);
    uint32_t here = keys.keys & row->handled;
    if (TNI_UNLIKELY(!here || row->n_backend_entries))
        return tni_dispatch_slow(op, row, keys, args, rets);
    uint32_t key = (uint32_t)__builtin_clz(here) ^ 31;
    const tni_entry *entry = &row->entries[key];
    /* What fell through is done: the handler sees its own key as the highest. */
    tn_keyset left = {keys.backends, keys.keys & ((2u << key) - 1), 0};
    return entry->fn(op, left, args, rets, entry->user);
}

/* The call, without checks of the cells: what the generated wrappers use. Defaults are filled in.
 */
static inline tn_status tni_call(const tn_op *op, const tn_cell *args, tn_cell *rets) {
    tn_keyset keys = tni_keyset_of(op, args);
    keys.keys = (keys.keys | tni_thread_keys.included) & ~tni_thread_keys.excluded;
    return tni_dispatch(op, keys, args, rets);
}

/* The layer above may put its operators here before anyone looks: called by the public functions
 * that define, find and hang handlers. NULL: nothing to prepare. */
extern tn_status (*tni_registry_prepare)(void);
bool tni_registry_ready(void);

/* ---- the table of operators -------------------------------------------------------------- */

/* Names: "tenon" is the namespace that need not be written, so "tenon::add.Tensor" and "add.Tensor"
 * are one name. A tn_op stays valid until finish, also when its definition is dropped; calls on it
 * then fail. Defining the same schema again revives it, index included. */

/* Defines an operator with the core's record about it; not to be dropped before finish. */
tn_op *tni_op_define(const char *schema, const char *origin, const void *info);
/* NULL, without an error, when there is none of that name. */
tn_op *tni_op_lookup(const char *name);
/* All operators in the order of definition: calls fn for each under the registry's lock, so fn must
 * not define, register or look up. */
void tni_op_for_each(void (*fn)(const tn_op *op, void *user), void *user);
/* How many indices were given out; dropped operators count. */
uint32_t tni_op_count(void);
/* Who defined it; valid while it is defined. */
const char *tni_op_origin(const tn_op *op);

/* One line of the resolved table, for `tenon ops`: who answers `key` (on `device_type` if not
 * NULL), where that entry came from, and why it won. Highest key first, and of one key the
 * strongest first: the operator's own before those for all, the newest before the older, whether
 * for one device type or for every one. A key that may remain unanswered ends with a line of origin
 * "". */
typedef struct tni_provenance {
    tn_key key;
    const char *device_type; /* NULL: every backend */
    const char *origin;      /* "tenon core", a plugin's id, what was given at registration */
    const char *why;         /* "for this operator", "default of the key", "falls through" */
    bool active;             /* false: hidden behind a newer registration */
} tni_provenance;
/* Calls fn for each line under the registry's lock; the strings are valid during the call. */
void tni_op_provenance(const tn_op *op, void (*fn)(const tni_provenance *line, void *user),
                       void *user);

/* ---- backends ---------------------------------------------------------------------------- */

enum { TNI_MAX_BACKENDS = 64 };

/* Id 0 is always "cpu": the one backend whose tensors may be operands of another's call. */
#define TNI_BACKEND_CPU_BIT UINT64_C(1)

/* The id (0..63) of a device type, given out at first sight; `key` is "npu", or "npu@com.acme" for
 * the second plugin of a type. -1 with an error when all are taken. */
int tni_backend_id(const char *key);
/* The key of an id, or NULL. */
const char *tni_backend_name(int id);

/* Frees operators and registrations; no other thread may be in a call. Backends keep their ids, as
 * open devices know them. */
void tni_registry_clear(void);
/* The same, and the backends: the registry is then as it was at the start. */
void tni_registry_finish(void);

#endif
