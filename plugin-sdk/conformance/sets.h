/* Sets of cases: smoke, standard, exhaustive, perf. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_SETS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_SETS_H

#include <stdbool.h>
#include <stdint.h>

/* Each of the first three has what the one before it has; the timed cases are a set of their own.
 */
typedef enum tc_set { TC_SMOKE, TC_STANDARD, TC_EXHAUSTIVE, TC_PERF, TC_N_SETS } tc_set;

/* "smoke", "standard", "exhaustive", "perf". */
const char *tc_set_name(tc_set set);
/* False where `name` is none. */
bool tc_set_find(const char *name, tc_set *out);

/* Several sets at once: a bit for each. */
typedef uint32_t tc_sets;
#define TC_SET_BIT(set) (1u << (set))
enum { TC_SETS_NAME = 64 };

/* "standard+perf". Returns out. */
char *tc_sets_name(tc_sets sets, char out[TC_SETS_NAME]);
/* False where a name between the plus signs is none. */
bool tc_sets_find(const char *names, tc_sets *out);
/* What has the lines of both, named by as few sets as do. */
tc_sets tc_sets_join(tc_sets a, tc_sets b);
/* Whether all lines of `set` are in `sets`. */
bool tc_sets_have(tc_sets sets, tc_set set);

#endif
