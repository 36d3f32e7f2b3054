/* See contract.h. */
#include "plugin-sdk/conformance/worker/contract/contract.h"

#include "plugin-sdk/conformance/worker/contract/buffers.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/properties.h"
#include "plugin-sdk/conformance/worker/subject/fence.h"
#include "plugin-sdk/conformance/worker/suite.h"

#include <stdio.h>
#include <string.h>

static const tc_contract_row *const contract_tables[] = {
    tc_property_rows,     tc_record_rows,       tc_memory_rows,      tc_transfer_rows,
    tc_stream_rows,       tc_event_rows,        tc_error_rows,       tc_thread_rows,
    tc_device_rows,       tc_space_rows,        tc_native_rows,      tc_prepare_rows,
    tc_workload_rows,     tc_graph_rows,        tc_graph_order_rows, tc_graph_race_rows,
    tc_size_rows,         tc_queue_rows,        tc_concurrent_rows,  tc_graph_done_rows,
    tc_memory_race_rows,  tc_pair_rows,         tc_far_rows,         tc_graph_hand_rows,
    tc_asked_rows,        tc_long_wait_rows,    tc_event_clock_rows, tc_two_waits_rows,
    tc_many_streams_rows, tc_capture_race_rows, tc_memory_size_rows, tc_capture_meet_rows,
    tc_host_thread_rows,  tc_kernel_large_rows, tc_one_command_rows,
};
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* ---- what cases use ---------------------------------------------------------------------- */

bool tc_must(tc_contract *k, tn_requirement requirement, tn_status status, const char *what) {
    char reason[TC_MESSAGE];
    if (status != TN_OK && !tc_excuses(k->out, requirement, status, what))
        TC_BROKEN(k, requirement, "%s failed: %s", what, tc_reason(status, reason));
    return status == TN_OK;
}

bool tc_must_run(tc_contract *k, tn_requirement requirement, tn_status status, const char *what) {
    return status == TN_ERR_UNSUPPORTED
               ? TC_NOT_OFFERED(k, "%s: prepare or run of every record declines it", what)
               : tc_must(k, requirement, status, what);
}

bool tc_must_fail(tc_contract *k, tn_requirement requirement, tn_status status, tn_status expected,
                  const char *what) {
    char reason[TC_MESSAGE];
    if (status < 0 || status >= TN_STATUS_COUNT)
        TC_BROKEN(k, TNP_STATUS_CODES, "%s returned %d, which is no status", what, (int)status);
    else if (status != expected)
        TC_BROKEN(k, requirement, "%s should fail with %s, and gave %s", what,
                  tc_tn_status_name(expected), tc_reason(status, reason));
    else if (!*tc_host_message() || tc_host_message_status() != status)
        TC_BROKEN(k, TNP_FAIL_MESSAGE,
                  "%s failed with %s, without a host->fail of that status and a message", what,
                  tc_tn_status_name(status));
    return status == expected;
}

int64_t tc_contract_int(tc_contract *k, const char *name) {
    char why[TC_MESSAGE];
    int64_t value = 0;
    const char *text = tc_case_get(k->c, name);
    if (!text)
        TC_CASE_ERROR(k->out, "%s/%s needs %s=N", k->c->class, k->c->subject, name);
    else if (!tc_read_int(text, &value, why))
        TC_CASE_ERROR(k->out, "%s=: %s", name, why);
    return value;
}

const char *tc_contract_word(tc_contract *k, const char *name) {
    const char *text = tc_case_get(k->c, name);
    return text ? text : "";
}

/* ---- the classes ------------------------------------------------------------------------- */

static const tc_contract_row *find(const tc_contract_row *const *tables, size_t n,
                                   const char *name) {
    for (size_t t = 0; t < n; t++)
        for (const tc_contract_row *row = tables[t]; row->name; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

/* Has one of the rows of this name, which `row` is the first of, `name=value` among its parameters? */
static bool has_word(const tc_contract_row *row, const char *name, const char *value) {
    char word[96];
    int n = snprintf(word, sizeof word, " %s=%s ", name, value);
    for (const tc_contract_row *r = row; r->name && n < (int)sizeof word; r++) {
        char params[256];
        snprintf(params, sizeof params, " %s ", r->params);
        if (strcmp(r->name, row->name) == 0 && strstr(params, word))
            return true;
    }
    return false;
}

/* A line has the parameters that the row has: any number, a word that a row of this name has. */
static bool is_complete(const tc_contract_row *row, tc_contract *k) {
    for (const char *at = row->params; *at; at += strspn(at, " ")) {
        char name[32], why[TC_MESSAGE];
        int64_t number;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "="), at);
        const char *value = tc_case_get(k->c, name);
        if (!value)
            return TC_CASE_ERROR(k->out, "%s/%s needs %s=, as in '%s/%s %s'", k->c->class,
                                 row->name, name, k->c->class, row->name, row->params);
        if (!tc_read_int(value, &number, why) && !has_word(row, name, value))
            return TC_CASE_ERROR(k->out, "%s/%s knows no %s=%s; it is as in '%s/%s %s'",
                                 k->c->class, row->name, name, value, k->c->class, row->name,
                                 row->params);
        at += strcspn(at, " ");
    }
    return true;
}

static void run_row(const tc_contract_row *row, tc_contract *k) {
    tn_requirement requirement;
    const char *text;
    if (!row) {
        TC_CASE_ERROR(k->out, "there is no case %s/%s", k->c->class, k->c->subject);
        return;
    }
    if (!is_complete(row, k))
        return;
    tc_host_forget();
    row->run(k);
    tc_release(k, NULL);
    if (tc_host_misuse(&requirement, &text))
        TC_BROKEN(k, requirement, "%s", text);
    tc_host_clear();
}

static void run_contract(const tc_case *c, const tc_options *options, tc_verdict *out) {
    tc_contract k = {.c = c, .options = options, .out = out, .random = {c->seed}};
    k.subject = tc_subject_shared(options, out);
    if (k.subject) {
        uint64_t before = tc_properties_sum(k.subject, options->device);
        run_row(find(contract_tables, LENGTH(contract_tables), c->subject), &k);
        if (!tc_failed(&k) && tc_properties_sum(k.subject, options->device) != before)
            TC_BROKEN(&k, TNP_PROPERTY_STABLE,
                      "a property of the device is answered otherwise than before");
    }
    tc_arena_finish(&k.arena);
}

/* ---- what cases leave behind ------------------------------------------------------------- */

/* One case of contract/ in a life of its own, after which nothing of the host's may be left: what it
 * refuses, and what there is nothing to do for, included. The host's memory is fenced meanwhile. True:
 * more threads run than `before`. */
static bool live(tc_contract *k, const tc_contract_row *row, bool is_again, tc_census *before) {
    char line[TC_MAX_LINE], when[TC_MAX_LINE + 32], why[TC_MESSAGE];
    tc_case c;
    tc_subject s;
    tc_verdict v = {.status = TC_PASS};
    snprintf(line, sizeof line, "contract/%s%s%s", row->name, *row->params ? " " : "", row->params);
    snprintf(when, sizeof when, "after a life with `%.900s`", line);
    if (!tc_case_parse(line, &c, why))
        return false;
    tc_fence_set(TC_FENCE_BEHIND);
    if (!tc_lifecycle_open(k, &s, tc_host_table(), TNP_INIT_AGAIN, when)) {
        tc_fence_set(TC_FENCE_NONE);
        return false;
    }
    bool unloadable = s.plugin->flags & TN_PLUGIN_UNLOADABLE;
    tc_contract inner = {
        .c = &c, .options = k->options, .subject = &s, .out = &v, .random = {c.seed}};
    run_row(row, &inner);
    tc_arena_finish(&inner.arena);
    tc_subject_close(&s);
    if (v.status == TC_FAIL || v.status == TC_ERROR)
        tc_verdict_set(k->out, v.status, v.requirement, "`%.300s`: %s", line, v.message);
    tc_fence_set(TC_FENCE_NONE);
    tc_lifecycle_balanced(k, TNP_HOST_ALLOC_RETURNED, when);
    int64_t had = before->threads;
    *before = tc_census_take(had);
    if (before->threads > had && (unloadable || is_again))
        TC_BROKEN(k, TNP_SHUTDOWN_NO_THREADS, "%s: %lld threads run, and %lld did before", when,
                  (long long)before->threads, (long long)had);
    return before->threads > had;
}

/* The cases of a subject, one after the other. The first life may start what belongs to the process,
 * and so may the first that comes to a library that the plugin itself stands on, unless it may be
 * unloaded: such a thread is there once, and is not left again by a second life of the same kind. */
static void leaves_nothing(tc_contract *k) {
    const char *of = tc_contract_word(k, "of");
    tc_census before = {0};
    bool first = true;
    for (size_t t = 0; t < LENGTH(contract_tables); t++)
        for (const tc_contract_row *row = contract_tables[t]; row->name; row++) {
            bool asked = strncmp(row->name, of, strlen(of)) == 0 && row->set == TC_SMOKE;
            if (asked && first)
                live(k, row, false, &(tc_census){.threads = INT64_MAX});
            if (asked && first)
                before = tc_census_take(0);
            first = first && !asked;
            if (asked && !tc_failed(k) && live(k, row, false, &before) && !tc_failed(k))
                live(k, row, true, &before);
        }
}

/* By the beginning of their names. Those that wait long are of the exhaustive set. */
static const tc_contract_row leaving_rows[] = {
    {"life-leaves-nothing", "of=alloc", TC_SMOKE, leaves_nothing},
    {"life-leaves-nothing", "of=capture", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=device-count", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=device-elapsed", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=device-i", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=device-pinned", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=error", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=event-chain", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=event-destroyed", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=event-elapsed", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=event-flags", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=event-outlives", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=event-query", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=event-unrecorded", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=kernel", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=memory-account", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=memory-again", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=memory-distinct", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=memory-host", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=memory-huge", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=memory-info", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=native", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=property", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=queue", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=record", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=space", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=stream-destroy", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=stream-many", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=stream-priority", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=stream-query", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=transfer", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=workload", TC_STANDARD, leaves_nothing},
    {"life-leaves-nothing", "of=device", TC_EXHAUSTIVE, leaves_nothing},
    {"life-leaves-nothing", "of=event", TC_EXHAUSTIVE, leaves_nothing},
    {"life-leaves-nothing", "of=memory", TC_EXHAUSTIVE, leaves_nothing},
    {"life-leaves-nothing", "of=stream", TC_EXHAUSTIVE, leaves_nothing},
    {"life-leaves-nothing", "of=thread", TC_EXHAUSTIVE, leaves_nothing},
    {0},
};

static const tc_contract_row *const process_tables[] = {
    tc_load_rows,
    tc_table_rows,
    tc_life_rows,
    tc_open_rows,
    tc_fork_rows,
    tc_two_hosts_rows,
    tc_two_options_rows,
    tc_host_memory_rows,
    tc_host_memory_among_rows,
    tc_host_compatibility_rows,
    tc_environment_rows,
    tc_exhaustion_rows,
    tc_lost_rows,
    tc_order_rows,
    tc_pair_host_rows,
    leaving_rows,
    tc_release_rows,
    tc_total_rows,
    tc_first_call_rows,

};

static void run_process(const tc_case *c, const tc_options *options, tc_verdict *out) {
    tc_contract k = {.c = c, .options = options, .out = out, .random = {c->seed}};
    run_row(find(process_tables, LENGTH(process_tables), c->subject), &k);
    tc_arena_finish(&k.arena);
}

/* ---- lines ------------------------------------------------------------------------------- */

static void list(const char *class, const tc_contract_row *const *tables, size_t n, tc_set set,
                 tc_sink *sink) {
    char line[TC_MAX_LINE];
    for (size_t t = 0; t < n; t++)
        for (const tc_contract_row *row = tables[t]; row->name; row++) {
            if (row->set > set)
                continue;
            snprintf(line, sizeof line, "%s/%s%s%s", class, row->name, *row->params ? " " : "",
                     row->params);
            sink->line(sink, line);
        }
}

static void list_contract(tc_set set, tc_sink *sink) {
    list("contract", contract_tables, LENGTH(contract_tables), set, sink);
}

static void list_process(tc_set set, tc_sink *sink) {
    list("process", process_tables, LENGTH(process_tables), set, sink);
}

const tc_class tc_class_contract = {.name = "contract", .list = list_contract, .run = run_contract};
const tc_class tc_class_process = {.name = "process", .list = list_process, .run = run_process};
