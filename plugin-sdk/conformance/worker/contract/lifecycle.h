/* Helpers of cases that take a plugin through its whole lifecycle: single calls on the way to an
 * open device, a probe of whether the device works, resource counts, a checksum of the tables. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_LIFECYCLE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_LIFECYCLE_H

#include "plugin-sdk/conformance/worker/kernel/invocation.h"
#include "plugin-sdk/conformance/worker/contract/contract.h"

/* The loaded object, which stays loaded, and its entry; NULL where the case has failed. */
void *tc_lifecycle_object(tc_contract *k, tn_plugin_query_fn *out_query);

/* Its entry called, with the suite's host; NULL where the case has failed. */
const tn_plugin *tc_lifecycle_query(tc_contract *k);

/* Single calls on the way to an open device; `out` and the members of `s` and `out` that a call is
 * to set hold something else before. False where the case has failed. */
bool tc_lifecycle_load(tc_contract *k, tc_subject *s);
bool tc_lifecycle_init(tc_contract *k, tc_subject *s, const char *path);
bool tc_lifecycle_count(tc_contract *k, tc_subject *s, uint32_t *out);
bool tc_lifecycle_open_device(tc_contract *k, tc_subject *s, uint32_t index, tc_subject *out);

/* Loads and opens a device with `host`, and says in the verdict why that failed: as `requirement`,
 * or where that is TNP_NONE as the one that was broken. */
bool tc_lifecycle_open(tc_contract *k, tc_subject *s, const tn_host *host,
                       tn_requirement requirement, const char *when);

/* Options that a plugin has asked for, each once. */
typedef struct tc_asked {
    char names[32][64];
    int n;
} tc_asked;

/* Where `name` stands among them, put behind them if it is new; -1 where they are too many. */
int tc_asked_index(tc_asked *asked, const char *name);

/* Runs a case where what it takes for the name of a file, a value of an option, say, is one in a folder of
 * its own, which goes with it. */
void tc_in_own_folder(tc_contract *k, void (*run)(tc_contract *k));

/* Which kernel calls: `wide` has so many elements that a device splits the work, `product` is what
 * plugins leave to a library. */
typedef enum tc_probe { TC_WORK_SMALL, TC_WORK_WIDE, TC_WORK_PRODUCT } tc_probe;

/* Writes, fills, reads, and runs a kernel whose result is checked. `out_sum` (may be NULL) follows
 * from the bits that came out; 0: no kernel ran. A failure is reported with `when`, as `requirement`, or where that is
 * TNP_NONE as the one that was broken. */
bool tc_lifecycle_probe(tc_contract *k, tc_subject *s, tc_probe work, tn_requirement requirement,
                        const char *when, uint64_t *out_sum);

/* What the process holds. */
typedef struct tc_census {
    int64_t threads, descriptors, mappings, virtual_bytes, resident_bytes, heap_bytes;
} tc_census;

/* Threads that are ending get a moment to be gone: as few as `threads` are waited for. */
tc_census tc_census_take(int64_t threads);

/* What grows in jumps, as pools of a runtime below the plugin do, and what is lost each time, told
 * apart: the least growth in any `step` times. */
typedef struct tc_growth {
    int64_t before, least;
    int n;
} tc_growth;

/* `now` after time number `time`, of which those below `first` do not count. */
void tc_growth_note(tc_growth *g, int64_t time, int64_t first, int64_t step, int64_t now);

/* Address space that is lost each time, in `step` times: more than a runtime that does so by a
 * mistake too small to matter. */
bool tc_growth_is_loss(const tc_growth *g, int64_t step);

/* No host block is out; otherwise fails the case with `when`. */
bool tc_lifecycle_balanced(tc_contract *k, tn_requirement requirement, const char *when);

/* The bytes of the plugin's tables and of the strings that they point to. */
uint64_t tc_tables_sum(const tn_plugin *plugin);

/* The kernel calls of tc_lifecycle_probe: the first line that the plugin claims, placed by the
 * caller. NULL where it claims none. */
const tn_kernel *tc_lifecycle_call(tc_contract *k, tc_subject *s, tc_probe work,
                                   tc_invocation *call);

#endif
