/* Calls that every device must refuse, and the error messages that operators owe. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_REFUSE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_REFUSE_H

#include "plugin-sdk/conformance/worker/core/outcome.h"
#include "plugin-sdk/conformance/worker/core/device_pair.h"

/* The words of `invalid=`. */
typedef enum tc_mutation {
    TC_MUTATE_SIZE,   /* the last tensor has one row more */
    TC_MUTATE_RANK,   /* the last tensor has two dimensions more */
    TC_MUTATE_DTYPE,  /* the last tensor is of integers, or of floats if it was an index */
    TC_MUTATE_DEVICE, /* the last tensor lies on the CPU */
    TC_N_MUTATIONS
} tc_mutation;

const char *tc_mutation_name(tc_mutation mutation);
bool tc_mutation_find(const char *name, tc_mutation *out);

/* Makes the placed arguments wrong. False where the mutation does not apply, or with an error. */
bool tc_mutate(tc_sample *s, tn_device device, tn_device cpu, tc_mutation mutation);

/* Is the failure one that says what the device lacks: by its status, and with the dtype and the
 * device in its message? */
bool tc_is_clean_lack(const tc_outcome *o, const char *device_name);

#endif
