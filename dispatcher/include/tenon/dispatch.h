/* tenon/dispatch.h: operators as data: define them, hang handlers and kernels on them, call them
 * boxed.
 *
 * Most programs need none of this: tenon/ops.h has every operator as a C function. It is for custom
 * operators, interposers (a handler on every operator of a key) and language bindings.
 *
 * An operator is named by its schema, in the field's notation:
 *   mylib::swiglu(Tensor x, Tensor gate, *, float beta=1.0) -> Tensor
 * A call carries its arguments in an array of tn_cell, one per schema argument: TENSOR cells hold
 * tn_tensor * in v.pointer, TENSORS cells a tn_tensor *const * (NULL among those of a Tensor?[] is
 * None), Scalar arguments are I64, F64 or BOOL, ScalarType is I64 (a tn_dtype), Device is I64 (tn_device_pack), what is left out is NONE.
 *
 * Ownership: a call borrows its arguments and returns owned references in `rets`; on failure every
 * ret is NONE. Threads: registering is safe while other threads call; a call sees the table from
 * before or from after. Unregistering does not wait for calls that are under way.
 */
#ifndef TENON_DISPATCH_H
#define TENON_DISPATCH_H

#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_tensor tn_tensor;
typedef struct tn_op tn_op;

/* Functionality keys, lowest first; a call goes to the highest that applies. Backend, Profile and
 * Check apply to every call, the others when a tensor, or the thread, asks for them.
 * X(NAME, name, what it does) */
#define TN_KEY_MAP(X) \
    X(BACKEND, "Backend", "runs the kernel, or the decomposition, on the tensors' device") \
    X(INPLACE_OR_VIEW, "InplaceOrView", "tracks views and counts versions of what is written") \
    X(AUTOGRAD, "Autograd", "records the node whose backward gives the gradient") \
    X(STORAGE_DTYPE, "StorageDtype", "moves what is not computed with as integers of its size") \
    X(AUTOCAST, "Autocast", "casts arguments by policy") \
    X(CAPTURE, "Capture", "records calls instead of, or besides, running them") \
    X(PROFILE, "Profile", "times calls") \
    X(CHECK, "Check", "refuses tensors that are no longer there")

typedef enum tn_key {
#define TN_KEY_ENUM(NAME, name, text) TN_KEY_##NAME,
    TN_KEY_MAP(TN_KEY_ENUM)
#undef TN_KEY_ENUM
        TN_KEY_COUNT
} tn_key;

/* "Autograd"; "" for what is no key. */
TN_API const char *tn_key_name(tn_key key);

#define TN_KEY_BIT(key) (1u << (key))

/* What is known of a call's arguments: functionality keys and backends, as masks. */
typedef struct tn_keyset {
    uint64_t backends;
    uint32_t keys;
    uint32_t reserved;
} tn_keyset;

/* A handler: does its part, then usually tn_op_redispatch(op, keys without its own and higher
 * ones). `keys` holds what remains to be done, this handler's key included. */
typedef tn_status (*tn_handler_fn)(const tn_op *op, tn_keyset keys, const tn_cell *args,
                                   tn_cell *rets, void *user);

/* A registration; dropping it restores what was there before. */
typedef struct tn_registration tn_registration;
TN_API void tn_registration_drop(tn_registration *registration);

/* Defines an operator. `origin` is kept and shown by `tenon ops` ("mylib 1.2"). NULL, with an error
 * that points into the text, when the schema does not parse, and when the name exists. */
TN_API tn_op *tn_op_define(const char *schema, const char *origin, tn_registration **out);

/* The operator of that name ("add.Tensor", "mylib::swiglu"), or NULL with an error. */
TN_API const tn_op *tn_op_find(const char *name);

TN_API const char *tn_op_name(const tn_op *op);
TN_API const char *tn_op_schema(const tn_op *op);
TN_API uint32_t tn_op_n_args(const tn_op *op);
TN_API uint32_t tn_op_n_rets(const tn_op *op);

/* Hangs a handler on `key` of one operator, or of all with op NULL (the key's default handler).
 * With `device_type` not NULL it holds for calls on that device type only. fn NULL means fall
 * through. The newest registration wins, and one operator's before the default. */
TN_API tn_registration *tn_handler_register(const tn_op *op, tn_key key, const char *device_type,
                                            tn_handler_fn fn, void *user, const char *origin);

/* Calls an operator: checks the cells against the schema, fills in defaults for NONE, dispatches.
 */
TN_API tn_status tn_op_call(const tn_op *op, const tn_cell *args, uint32_t n_args, tn_cell *rets);

/* Goes on below: `keys` as the handler got it, with its own bit and higher ones cleared. */
TN_API tn_status tn_op_redispatch(const tn_op *op, tn_keyset keys, const tn_cell *args,
                                  tn_cell *rets);

/* The keyset with `key` and all above it cleared. */
static inline tn_keyset tn_keyset_below(tn_keyset keys, tn_key key) {
    tn_keyset below = {keys.backends, keys.keys & (TN_KEY_BIT(key) - 1), 0};
    return below;
}

/* Keys switched on and off for the calling thread. Save the state, change it, put it back. */
typedef struct tn_thread_keys {
    uint32_t included;
    uint32_t excluded;
} tn_thread_keys;
TN_API tn_thread_keys tn_thread_keys_get(void);
TN_API void tn_thread_keys_set(tn_thread_keys state);

#ifdef __cplusplus
}
#endif

#endif /* TENON_DISPATCH_H */
