/* Equal failures together: how many there are, of what, and the first of them. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_GROUPS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_RUN_GROUPS_H

#include "plugin-sdk/conformance/runner/run/log.h"

/* How many cases of a subject, "kernel/copy T=f32 S=i64". */
typedef struct tc_tally {
    char *what;
    size_t n;
} tc_tally;

typedef struct tc_group {
    uint64_t key;
    size_t first; /* index of a result */
    size_t n;
    tc_tally *tallies;
    size_t n_tallies;
} tc_group;

typedef struct tc_groups {
    tc_group **at; /* by key until tc_groups_order */
    size_t n;
} tc_groups;

void tc_groups_finish(tc_groups *groups);

/* Counts the result at `index` of the log; NULL: no memory. */
tc_group *tc_groups_add(tc_groups *groups, const tc_log *log, size_t index);

/* Those of the log's results that `wanted` says: in order, the largest first. False: no memory. */
bool tc_groups_make(tc_groups *groups, const tc_log *log, bool (*wanted)(const tc_result *));
void tc_groups_order(tc_groups *groups);

/* "fail TNP-71: what the first of them said", cut where there is no more room. Returns out. */
enum { TC_GROUP_TEXT = 320 };
char *tc_group_text(const tc_result *first, char out[TC_GROUP_TEXT]);

/* "kernel/copy T=f32 S=i64 (2100), operator/ones (12) and 3 others (9)". Returns out. */
char *tc_group_subjects(tc_group *group, char *out, size_t room);

#endif
