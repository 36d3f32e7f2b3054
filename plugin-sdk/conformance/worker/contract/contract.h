/* Cases of what plugin.h says beyond single kernel calls.
 *
 *     contract/NAME …     on the device that the worker keeps open, and leaves as it was
 *     process/NAME …      in a process of its own: the case loads the plugin itself
 *
 * A file has the cases of one subject and a table of their rows; contract.c has the list of tables.
 * A row is a line: its name, its parameters, and the smallest set it is in. Each check names the
 * requirement that it checks, where it fails:
 *
 *     if (memory == 0)
 *         TC_BROKEN(k, TNP_ALLOC_HANDLE, "alloc of %llu bytes gave the handle 0", ...);
 *
 * The first failure is the one that is reported; a case goes on or gives up as it likes.
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_CONTRACT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_CONTRACT_H

#include "plugin-sdk/conformance/worker/data/arena.h"
#include "plugin-sdk/conformance/worker/data/element.h"
#include "plugin-sdk/conformance/worker/subject/subject.h"

typedef struct tc_owned tc_owned;

typedef struct tc_contract {
    const tc_case *c;
    const tc_options *options;
    tc_subject *subject; /* open in contract/, NULL in process/ */
    tc_verdict *out;
    tc_arena arena;   /* finished after the case */
    tc_owned *owned;  /* of the device, released after the case; see buffers.h */
    tc_random random; /* from the case's seed */
} tc_contract;

typedef struct tc_contract_row {
    const char *name, *params; /* "bytes=1 times=3"; "" for none */
    tc_set set;
    void (*run)(tc_contract *k);
} tc_contract_row;

/* Fails the case, unless it has failed before. */
#define TC_BROKEN(k, requirement, ...) tc_verdict_set((k)->out, TC_FAIL, requirement, __VA_ARGS__)

/* The case asks for what this plugin does not offer (no streams, one device only). */
#define TC_NOT_OFFERED(k, ...) tc_verdict_set((k)->out, TC_UNSUPPORTED, TNP_NONE, __VA_ARGS__)

static inline bool tc_failed(const tc_contract *k) {
    return k->out->status != TC_PASS;
}

/* A call that must succeed: fails the case with `what` and the plugin's message otherwise. */
bool tc_must(tc_contract *k, tn_requirement requirement, tn_status status, const char *what);

/* The same of a kernel call; where prepare or run of every record declines it, the case asks for what is not offered. */
bool tc_must_run(tc_contract *k, tn_requirement requirement, tn_status status, const char *what);

/* A call that must fail with `expected` and a message (TNP-16). */
bool tc_must_fail(tc_contract *k, tn_requirement requirement, tn_status status, tn_status expected,
                  const char *what);

/* A parameter of the row, which the case relies on. */
int64_t tc_contract_int(tc_contract *k, const char *name);
const char *tc_contract_word(tc_contract *k, const char *name); /* "" where it is not given */

/* Tables, each ended by a row without name. */
extern const tc_contract_row tc_property_rows[], tc_record_rows[], tc_memory_rows[],
    tc_transfer_rows[], tc_stream_rows[], tc_event_rows[], tc_workload_rows[], tc_error_rows[],
    tc_thread_rows[], tc_device_rows[], tc_space_rows[], tc_native_rows[], tc_prepare_rows[],
    tc_graph_rows[], tc_graph_order_rows[], tc_graph_race_rows[], tc_size_rows[], tc_queue_rows[],
    tc_concurrent_rows[], tc_graph_done_rows[], tc_memory_race_rows[], tc_pair_rows[],
    tc_far_rows[], tc_graph_hand_rows[], tc_asked_rows[], tc_long_wait_rows[],
    tc_event_clock_rows[], tc_two_waits_rows[], tc_many_streams_rows[], tc_host_memory_among_rows[],
    tc_capture_race_rows[], tc_memory_size_rows[], tc_capture_meet_rows[], tc_host_thread_rows[],
    tc_kernel_large_rows[], tc_one_command_rows[];
extern const tc_contract_row tc_load_rows[], tc_table_rows[], tc_life_rows[], tc_open_rows[],
    tc_fork_rows[], tc_two_hosts_rows[], tc_two_options_rows[], tc_host_memory_rows[],
    tc_host_compatibility_rows[], tc_environment_rows[], tc_exhaustion_rows[], tc_lost_rows[],
    tc_order_rows[], tc_pair_host_rows[], tc_release_rows[], tc_total_rows[], tc_first_call_rows[];

#endif
