/* Operator schemas: parsed once, checked at each boxed call, printed as they were written.
 *
 *   name.overload(Type arg, Type arg=default, *, Type kwarg=default) -> Ret
 *
 * Types: Tensor Tensor? Tensor[] Tensor?[] int int? int[] int[N] int[]? float float? bool bool?
 * Scalar Scalar? ScalarType ScalarType? Device Device? str str?; Tensor(a) may be returned as a
 * view, Tensor(a!) is written. A return may be named: (Tensor values, Tensor indices).
 *
 * Defaults: 3, -0.5, 1e-5, inf, True, False, 'text', [1, 1], f32 (a ScalarType), None (an optional
 * type). Positional arguments with a default come last; keyword-only ones in any order.
 */
#ifndef TNI_DISPATCHER_SCHEMA_H
#define TNI_DISPATCHER_SCHEMA_H

#include <tenon/dispatch.h>

typedef enum tni_type {
    TNI_TYPE_TENSOR,
    TNI_TYPE_TENSORS, /* Tensor[], Tensor?[] */
    TNI_TYPE_INT,
    TNI_TYPE_INTS, /* int[]; a single int is accepted for int[N] and repeated */
    TNI_TYPE_FLOAT,
    TNI_TYPE_BOOL,
    TNI_TYPE_SCALAR,
    TNI_TYPE_DTYPE,  /* ScalarType */
    TNI_TYPE_DEVICE, /* Device */
    TNI_TYPE_STRING  /* str */
} tni_type;

enum {
    TNI_MAX_ARGS = 16,
    TNI_MAX_RETS = 4,
    TNI_MAX_INTS = 16,          /* N of int[N], and the length of a default */
    TNI_MAX_SCHEMA_BYTES = 2048 /* of the text */
};

typedef struct tni_arg {
    const char *name; /* "" for an unnamed return */
    tni_type type;
    bool optional;     /* Type? */
    bool keyword_only; /* after the * */
    bool has_default;
    bool is_written;  /* (a!) */
    bool holes;       /* Tensor?[]: elements may be NULL */
    char alias;       /* 'a' of (a) or (a!), 0 without */
    uint32_t n_ints;  /* N of int[N], else 0 */
    tn_cell fallback; /* the default; NONE for =None; owned ints and strings */
} tni_arg;

typedef struct tni_schema {
    char *text; /* as written, spaces normalised */
    char *name; /* "ns::base.overload" */
    uint32_t n_args, n_rets;
    tni_arg args[TNI_MAX_ARGS];
    tni_arg rets[TNI_MAX_RETS];
    char *names; /* storage of argument names and of default strings */
} tni_schema;

/* Parses `text`, any bytes up to a NUL; on failure *out is untouched and the error shows the text
 * with a caret under the place:
 *   schema: expected a type, found 'Tensr': f(Tensr x) -> Tensor
 *                                             ^
 * The schema and everything it points to is one allocation. */
tn_status tni_schema_parse(const char *text, tni_schema **out);
void tni_schema_destroy(tni_schema *schema);

/* Does `cell` fit argument `i`? Sets an error that names operator, argument and type. An int fits
 * float, Scalar and int[N] arguments too; NONE fits where the argument may be left out. */
tn_status tni_schema_check(const tni_schema *schema, uint32_t i, const tn_cell *cell);

/* "Tensor", "int[]": the type without N and without the ? of an optional one. */
const char *tni_type_name(const tni_arg *arg);

/* The operator's name without the namespace that needs none: "tenon::add.Tensor" is "add.Tensor".
 */
const char *tni_plain_name(const char *name);

/* 64-bit FNV-1a of `text`: the hash of kernel schemas. */
uint64_t tni_schema_hash(const char *text);

#endif
