/* Which kernel runs (device, kernel operator, dtypes).
 *
 * Every open device has a table with one row per kernel operator; a table is immutable, published by
 * pointer, replaced when a kernel is registered at run time, and retired tables live until finish.
 */
#ifndef TNI_CORE_DEVICE_KERNEL_TABLE_H
#define TNI_CORE_DEVICE_KERNEL_TABLE_H

#include "dispatcher/kernel_ops.h"
#include "loader/loader.h"

#include <stdatomic.h>

/* tn_outputs_fn of tenon/custom.h. */
struct tn_output;
typedef tn_status (*tni_outputs_fn)(const tn_cell *args, struct tn_output *outputs, void *user);

/* A kernel as a device's table holds it: the record, read once through TN_HAS. */
typedef struct tni_kernel {
    tn_status (*run)(const tn_call *call);
    void *user;
    uint64_t flags;
    tn_status (*supports)(const tn_call *call);
    tn_status (*prepare)(const tn_call *call, tn_plan *out);
    void (*abandon)(const tn_call *call);
    tni_outputs_fn outputs; /* of a custom operator's kernel; NULL: pointwise */
    uint64_t dtypes[TN_KERNEL_MAX_TYPES];
    const char *origin;            /* the plugin's id, or what the program said */
    bool is_own;                   /* the program's: its reasons come by tn_fail */
    bool is_plain;                 /* nothing has to be done round `run` */
    const struct tni_kernel *next; /* another record with the same first dtype */
} tni_kernel;

typedef struct tni_kernel_row {
    const tni_kernel *by_dtype[TN_DTYPE_END]; /* of storage dtypes always NULL */
} tni_kernel_row;

typedef struct tni_kernel_table {
    uint32_t n_rows;
    uint32_t reserved;
    tni_kernel_row rows[];
} tni_kernel_table;

/* The first kernel for this dtype of the first type variable, or NULL. */
static inline const tni_kernel *tni_kernel_lookup(const tni_kernel_table *table, uint32_t op,
                                                  tn_dtype d0) {
    return op < table->n_rows ? table->rows[op].by_dtype[d0] : NULL;
}
/* k, or the first behind it that takes the dtypes of all n_types type variables; NULL: none. */
static inline const tni_kernel *tni_kernel_fitting(const tni_kernel *k, const tn_dtype *dtypes,
                                                   uint32_t n_types) {
    for (; k; k = k->next) {
        uint32_t i = 1;
        while (i < n_types && (k->dtypes[i] & TN_DTYPE_BIT(dtypes[i])))
            i++;
        if (i >= n_types)
            return k;
    }
    return NULL;
}

/* The kernels of one open device. */
typedef struct tni_kernel_set {
    _Atomic(const tni_kernel_table *) table;
    void *state; /* registrations and retired tables */
} tni_kernel_set;

/* Builds the table of a device from the plugin's records, asking device_ops->accepts for each. */
tn_status tni_kernel_set_init(tni_kernel_set *set, const tni_plugin *plugin,
                              tn_device_impl *device);
/* Is the record one of a kernel of `op`? Sets an error that says what is wrong. */
tn_status tni_kernel_check(const tni_kernel_op *op, const tn_kernel *record);
/* Adds one record for `op` at run time; newest first. `*out_id` takes it out again. */
tn_status tni_kernel_set_add(tni_kernel_set *set, const tni_kernel_op *op, const tn_kernel *record,
                             tni_outputs_fn outputs, const char *origin, uint64_t *out_id);
void tni_kernel_set_remove(tni_kernel_set *set, uint64_t id);
void tni_kernel_set_finish(tni_kernel_set *set);

#endif
