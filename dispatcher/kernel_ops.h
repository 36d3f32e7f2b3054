/* The kernel operators: the entries of plugin-sdk/kernels.toml, and those that programs define at run
 * time. Each has a row in the table of kernels of every open device (core/device/kernel_table.h).
 */
#ifndef TNI_DISPATCHER_KERNEL_OPS_H
#define TNI_DISPATCHER_KERNEL_OPS_H

#include <stdbool.h>
#include <tenon/dispatch.h>
#include <tenon/kernels.h>

#include "dispatcher/schema.h"

/* A kernel operator. */
typedef struct tni_kernel_op {
    const char *name;
    const char *schema;
    uint64_t hash;
    uint32_t index; /* its row */
    bool small;     /* of the small set */
} tni_kernel_op;

/* Positions of the built-in kernel operators: TNI_KERNEL_add ... TNI_KERNEL_COUNT. */
enum {
#define X(name, hash, small, kind, schema) TNI_KERNEL_##name,
    TN_KERNEL_TABLE(X)
#undef X
        TNI_KERNEL_COUNT
};

/* What dtype each argument and output of a built-in kernel operator has, as tenon/kernels.h codes it:
 * the position of its type variable, TN_KERNEL_FIXED, or (arguments) that it is no tensor. */
typedef struct tni_kernel_types {
    uint8_t n_args, n_outs, n_types;
    int8_t args[TNI_MAX_ARGS];
    int8_t outs[TNI_MAX_RETS];
    uint64_t dtypes[TN_KERNEL_MAX_TYPES]; /* what each variable may be */
} tni_kernel_types;
extern const tni_kernel_types tni_kernel_types_of[TNI_KERNEL_COUNT];

/* The dtype of a tensor with that code, by the dtypes of the variables. */
static inline tn_dtype tni_coded_dtype(int8_t code, const tn_dtype *types) {
    return code < 0 ? (tn_dtype)TN_KERNEL_FIXED(code) : types[code];
}

const tni_kernel_op *tni_kernel_op_find(const char *name); /* NULL when there is none; no error */
const tni_kernel_op *tni_kernel_op_at(uint32_t index);
uint32_t tni_kernel_op_count(void);
/* Adds one, for a custom operator; the same name with the same schema gives the same row, another
 * schema a new one. `name` is the schema's; text and hash are of the schema with normal spacing.
 * NULL with an error. */
const tni_kernel_op *tni_kernel_op_define(const char *name, const char *schema);
/* The added one with just this schema, or NULL; no error. */
const tni_kernel_op *tni_kernel_op_added(const char *name, const char *schema);
/* Forgets those that were added; tni_registry_finish calls it. */
void tni_kernel_ops_finish(void);

#endif
