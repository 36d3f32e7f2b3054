/* Which of the suite's kernel calls reach which records, by the core's choice. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_REACH_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_REACH_H

#include "plugin-sdk/conformance/worker/contract/contract.h"
#include "plugin-sdk/conformance/worker/kernel/choose.h"

enum { TC_REACHING = 2 };

/* The first lines of kernel/ that reach a record, of different sizes or dimensions; NULL: none.
 * They live as long as the case. */
typedef struct tc_reached {
    const char *lines[TC_REACHING];
} tc_reached;

/* For each record of the plugin, from the lines of `set`; `wanted` (NULL: all) says of which. Those
 * are what the core would hand it before any `prepare` or `run` has declined. NULL where the case
 * has failed. */
tc_reached *tc_reach_records(tc_contract *k, tc_set set, bool (*wanted)(const tn_kernel *kernel));

/* Lines drawn from all that reach a record, each as likely as another. None is in place: what such
 * a call has changed it would find when it runs again. */
enum { TC_DRAWN = 8 };
typedef struct tc_drawn {
    char *lines[TC_DRAWN]; /* NULL behind the last */
    uint64_t n_met;
} tc_drawn;

/* For each record; seeded by the case. */
tc_drawn *tc_reach_draw(tc_contract *k, tc_set set, bool (*wanted)(const tn_kernel *kernel));

/* For each record a line whose longest list has n numbers, at [n]; at [0], of what takes no list, that with the most numbers in its
 * shapes. NULL: none. */
typedef struct tc_listed {
    const char *lines[TC_MAX_RANK + 1];
} tc_listed;
tc_listed *tc_reach_lists(tc_contract *k, tc_set set);

/* The cases record-newer, record-queues, record-packed, record-arguments, record-lists, capture-arguments and capture-lists. */
void tc_record_newer(tc_contract *k);
void tc_record_lists(tc_contract *k);
void tc_capture_lists(tc_contract *k);
void tc_record_queues(tc_contract *k);
void tc_record_packed(tc_contract *k);
void tc_record_arguments(tc_contract *k);
void tc_capture_arguments(tc_contract *k);

/* Does the device run it, and the core know it? */
bool tc_record_counts(const tc_subject *s, const tn_kernel *kernel);

#endif
