/* The host table that the suite gives the plugin under test.
 *
 * One plugin is under test, so all of this belongs to the process. The functions of the table may be
 * called from any thread; the others only while the plugin is not running.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_HOST_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_SUBJECT_HOST_H

#include <stdbool.h>
#include <tenon/plugin.h>
#include <tenon/requirements.h>

/* The whole table. Options are the environment's, as in Tenon: option `threads` of a plugin of type
 * `npu` is TENON_NPU_THREADS. */
const tn_host *tc_host_table(void);
void tc_host_set_type(const char *device_type);

/* A poorer table, with `bytes` of the whole one as its struct_size, lying against a page that
 * cannot be touched. NULL without memory. Freed by tc_host_poor_destroy. */
tn_host *tc_host_poor_create(uint64_t bytes);
void tc_host_poor_destroy(tn_host *host);

/* ---- messages ---------------------------------------------------------------------------- */

/* The message that this thread's last call of host->fail gave, and its status; "" and TN_OK since
 * tc_host_forget. */
const char *tc_host_message(void);
tn_status tc_host_message_status(void);
void tc_host_forget(void);
void tc_host_remember(tn_status status, const char *text); /* as if it had been given */

bool tc_is_utf8(const char *text);

/* ---- memory ------------------------------------------------------------------------------ */

/* Blocks and bytes handed out and not given back. */
int64_t tc_host_blocks(void);
int64_t tc_host_bytes(void);

/* How often alloc was called. */
int64_t tc_host_allocations(void);

/* Lets n more allocations succeed and fails the one after; negative: none. True from
 * tc_host_failed once one was. */
void tc_host_fail_after(int64_t n);
bool tc_host_failed(void);

/* Whether alloc and dealloc let other threads run first, as if they had to wait for a lock: what a
 * plugin does round them without a lock of its own meets what its other threads do. */
void tc_host_yield(bool wanted);

/* Each call of the table looks whether what all threads share is as in `state`, which lives on; NULL: no longer. */
struct tni_process_state;
void tc_host_watch(const struct tni_process_state *state);

/* How often option was called with a name. */
int64_t tc_host_options_asked(void);

/* ---- what the plugin did wrong ----------------------------------------------------------- */

/* The first misuse of the table since tc_host_clear, or what a call was blamed for, with its
 * requirement; false: none. */
bool tc_host_misuse(tn_requirement *out_requirement, const char **out_text);
void tc_host_blame(tn_requirement requirement, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tc_host_clear(void);

/* Before `init`, and after `shutdown`: between the two, functions must be given `host`, or that of
 * another life that goes on, and options may be asked. At most two lives at once. */
void tc_host_begin(const tn_host *host);
/* NULL: all of them. */
void tc_host_end(const tn_host *host);

#endif
