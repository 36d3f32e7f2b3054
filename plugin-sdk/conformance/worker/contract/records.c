/* Kernel records: each one's fields, overlap between two of one operator, and `supports`. */
#include "plugin-sdk/conformance/worker/kernel/record.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"
#include "plugin-sdk/conformance/worker/contract/reach.h"
#include "plugin-sdk/conformance/worker/suite.h"

#include <pthread.h>
#include <tenon/ext/threads.h>

#include <stdio.h>
#include <string.h>

static const uint64_t ALL_FLAGS = TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST | TN_KERNEL_IN_PLACE |
                                  TN_KERNEL_INDEX64 | TN_KERNEL_SCALARS | TN_KERNEL_DETERMINISTIC;

static void check_record(tc_contract *k, uint64_t i, const tn_kernel *kernel) {
    const tc_record *record = kernel->op ? tc_record_find(kernel->op) : NULL;
    const char *op = kernel->op ? kernel->op : "NULL";
    unsigned long long at = (unsigned long long)i;
    if (!kernel->op || !*kernel->op)
        TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, "record %llu names no operator", at);
    if (!kernel->run)
        TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, "record %llu (%s): run is NULL", at, op);
    if (k->subject->plugin->abi_version <= TN_ABI_VERSION && (kernel->flags & ~ALL_FLAGS))
        TC_BROKEN(k, TNP_TABLE_RESERVED_ZERO,
                  "record %llu (%s): flags are 0x%llx; 0x%llx are none of TN_KERNEL_*", at, op,
                  (unsigned long long)kernel->flags,
                  (unsigned long long)(kernel->flags & ~ALL_FLAGS));
    bool newer = tc_is_newer(k->subject->plugin);
    if (!record || (newer && kernel->schema_hash != record->hash))
        return; /* the host skips and counts operators that it does not know */
    if (kernel->schema_hash != record->hash)
        TC_BROKEN(k, TNP_RECORD_SCHEMA_HASH,
                  "record %llu (%s): schema_hash is 0x%016llx, and that of %s is 0x%016llx; use "
                  "TN_KERNEL_HASH_... of this kernels.h",
                  at, op, (unsigned long long)kernel->schema_hash, record->schema,
                  (unsigned long long)record->hash);
    for (uint32_t t = 0; t < TN_KERNEL_MAX_TYPES; t++) {
        uint64_t mask = kernel->dtypes[t];
        uint64_t allowed = t < record->n_types ? record->dtypes[t] : 0;
        if (t >= record->n_types && mask)
            TC_BROKEN(k, TNP_RECORD_DTYPES,
                      "record %llu (%s): dtypes[%u] is 0x%llx, but the operator has %u type "
                      "variables",
                      at, op, t, (unsigned long long)mask, record->n_types);
        else if (t < record->n_types && !mask)
            TC_BROKEN(k, TNP_RECORD_DTYPES, "record %llu (%s): dtypes[%u], of %s, is empty", at, op,
                      t, record->type_names[t]);
        else if ((mask & ~allowed) && !newer)
            TC_BROKEN(k, TNP_RECORD_DTYPES,
                      "record %llu (%s): dtypes[%u] has 0x%llx, which the operator does not "
                      "take",
                      at, op, t, (unsigned long long)(mask & ~allowed));
    }
    if (kernel->schema_hash == TN_KERNEL_HASH_copy && !(kernel->flags & TN_KERNEL_STRIDED))
        TC_BROKEN(k, TNP_COPY_STRIDED,
                  "record %llu: a copy without TN_KERNEL_STRIDED; the core needs it to bring "
                  "tensors into shape",
                  at);
}

static void each(tc_contract *k) {
    const tn_plugin *p = k->subject->plugin;
    for (uint64_t i = 0; i < p->n_kernels; i++)
        if (p->kernels[i])
            check_record(k, i, p->kernels[i]);
        else
            TC_BROKEN(k, TNP_TABLE_REQUIRED_MEMBERS, "kernels[%llu] is NULL",
                      (unsigned long long)i);
}

/* ---- records that no call reaches -------------------------------------------------------- */

/* What the calls that a record takes may need of it, at most. */
static uint64_t widest(const tn_kernel *kernel, const tc_record *record) {
    uint64_t flags = TN_KERNEL_STRIDED | TN_KERNEL_INDEX64;
    if (record->n_args > 0 && record->args[0].kind == TC_ARG_TENSOR)
        flags |= TN_KERNEL_BROADCAST | TN_KERNEL_IN_PLACE;
    return kernel->flags & (record->pointwise ? flags | TN_KERNEL_SCALARS : flags);
}

/* An earlier record that takes the widest call of `kernel` for these dtypes as it is, and has no way
 * to decline before it runs. */
static bool is_taken(const tc_subject *s, uint64_t i, const tc_record *record,
                     const tn_dtype *types, uint64_t *out_by) {
    const tn_kernel *kernel = s->plugin->kernels[i];
    uint64_t needed = widest(kernel, record);
    for (uint64_t j = 0; j < i; j++) {
        const tn_kernel *earlier = s->plugin->kernels[j];
        bool takes = strcmp(earlier->op, kernel->op) == 0 && !earlier->supports &&
                     !earlier->prepare && (earlier->flags & needed) == needed &&
                     tc_record_counts(s, earlier);
        for (uint32_t t = 0; t < record->n_types && takes; t++)
            takes = (earlier->dtypes[t] & TN_DTYPE_BIT(types[t])) != 0;
        if (takes) {
            *out_by = j;
            return true;
        }
    }
    return false;
}

/* Is every choice of dtypes taken, from type variable `type` on? */
static bool is_hidden(const tc_subject *s, uint64_t i, const tc_record *record, uint32_t type,
                      tn_dtype *types, uint64_t *out_by) {
    if (type == record->n_types)
        return is_taken(s, i, record, types, out_by);
    for (types[type] = 0; types[type] < TN_DTYPE_COUNT; types[type]++)
        if ((s->plugin->kernels[i]->dtypes[type] & TN_DTYPE_BIT(types[type])) &&
            !is_hidden(s, i, record, type + 1, types, out_by))
            return false;
    return true;
}

static void pairs(tc_contract *k) {
    const tc_subject *s = k->subject;
    const tn_plugin *p = s->plugin;
    tn_dtype types[TN_KERNEL_MAX_TYPES];
    uint64_t by = 0;
    for (uint64_t i = 0; i < p->n_kernels; i++) {
        const tn_kernel *kernel = p->kernels[i];
        for (uint64_t j = 0; j < i; j++)
            if (p->kernels[j] == kernel)
                TC_BROKEN(k, TNP_RECORD_DISJOINT, "kernels[%llu] and [%llu] are one record (%s)",
                          (unsigned long long)j, (unsigned long long)i, kernel->op);
        if (tc_record_counts(s, kernel) && (kernel->dtypes[0] & TC_DTYPES_KNOWN) &&
            is_hidden(s, i, tc_record_find(kernel->op), 0, types, &by))
            TC_BROKEN(k, TNP_RECORD_DISJOINT,
                      "record %llu of %s is never reached: each call that it takes as it is an "
                      "earlier one takes, such as record %llu; put it before that, let "
                      "`accepts` choose between them, or decline by `supports` or "
                      "`prepare` there",
                      (unsigned long long)i, kernel->op, (unsigned long long)by);
    }
}

/* By the calls of the standard set, whose results are checked. One for the sizes of INDEX64 alone is
 * among those that none reaches. */
static void reached(tc_contract *k) {
    const tc_subject *s = k->subject;
    tc_reached *found = tc_reach_records(k, TC_STANDARD, NULL);
    uint64_t n = 0, first = 0;
    for (uint64_t i = s->plugin->n_kernels; found && i-- > 0;)
        if (!found[i].lines[0] && tc_record_counts(s, s->plugin->kernels[i])) {
            n++;
            first = i;
        }
    if (n)
        TC_NOT_OFFERED(k,
                       "%llu records are reached by no call of the suite and were not tested, "
                       "the first of them record %llu (%s)",
                       (unsigned long long)n, (unsigned long long)first,
                       s->plugin->kernels[first]->op);
}

/* ---- what the device answers ------------------------------------------------------------- */

static tn_status ask(tc_contract *k, uint64_t i) {
    const tc_subject *s = k->subject;
    tn_status status = s->ops->accepts(s->device, s->plugin->kernels[i]);
    if (status != TN_OK && status != TN_ERR_UNSUPPORTED)
        TC_BROKEN(k, TNP_DEVICE_SUPPORTS,
                  "accepts of the device answered %s to record %llu (%s); it is TN_OK or "
                  "TN_ERR_UNSUPPORTED",
                  tc_tn_status_name(status), (unsigned long long)i, s->plugin->kernels[i]->op);
    return status;
}

static void supports(tc_contract *k) {
    const tc_subject *s = k->subject;
    uint64_t n = s->plugin->n_kernels;
    if (!s->ops->accepts) {
        TC_NOT_OFFERED(k, "the device has no accepts: it runs every record");
        return;
    }
    tn_status *answers = tc_arena_array(&k->arena, n, sizeof *answers);
    if (!answers) {
        TC_CASE_ERROR(k->out, "the host has no memory for %llu answers", (unsigned long long)n);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        answers[i] = ask(k, i);
        if (ask(k, i) != answers[i])
            TC_BROKEN(k, TNP_DEVICE_SUPPORTS,
                      "accepts of the device answered differently when asked again for "
                      "record %llu (%s)",
                      (unsigned long long)i, s->plugin->kernels[i]->op);
    }
    for (uint64_t i = n; i-- > 0;)
        if (ask(k, i) != answers[i])
            TC_BROKEN(k, TNP_DEVICE_SUPPORTS,
                      "accepts of the device answered differently in another order for "
                      "record %llu (%s)",
                      (unsigned long long)i, s->plugin->kernels[i]->op);
}

typedef struct chooser {
    tc_sink sink;
    tc_contract *k;
    const tn_ext_threads *threads; /* NULL: there is no such number to set */
    tc_arena arena;
    uint64_t n; /* lines so far */
} chooser;

typedef struct question {
    const tc_subject *s;
    const tc_invocation *call;
    const tn_kernel *answer; /* NULL: no record takes it */
} question;

static void *answer(void *context) {
    question *q = context;
    if (tc_find_kernel(q->s, q->call, NULL, &q->answer) != TC_CLAIMED)
        q->answer = NULL;
    return NULL;
}

static const tn_kernel *chosen(const chooser *w, const tc_invocation *call) {
    question q = {w->k->subject, call, NULL};
    answer(&q);
    return q.answer;
}

static const tn_kernel *chosen_elsewhere(const chooser *w, const tc_invocation *call) {
    question q = {w->k->subject, call, NULL};
    pthread_t thread;
    if (pthread_create(&thread, NULL, answer, &q) != 0)
        return chosen(w, call);
    pthread_join(thread, NULL);
    return q.answer;
}

/* By one host thread and by several, and now and then by another caller. */
static void choose_again(tc_sink *sink, const char *line) {
    static const uint32_t counts[] = {2, 3, 4, 8, 16, 64, 5};
    enum { N_COUNTS = sizeof counts / sizeof *counts, ELSEWHERE = 32 };
    chooser *w = (chooser *)sink;
    char why[TC_MESSAGE];
    tc_case c;
    tc_invocation call;
    uint64_t n = w->n++;
    if (!tc_failed(w->k) && tc_case_parse(line, &c, why) &&
        tc_invocation_parse(&c, &w->arena, &call, why)) {
        const tn_kernel *first;
        if (w->threads)
            w->threads->set_num_threads(w->k->subject->self, 1);
        first = chosen(w, &call);
        if (n % ELSEWHERE == 0 && chosen_elsewhere(w, &call) != first)
            TC_BROKEN(w->k, TNP_SUPPORTS_ANSWER,
                      "supports answers another thread otherwise: `%.400s`", line);
        if (w->threads)
            w->threads->set_num_threads(w->k->subject->self, counts[n % N_COUNTS]);
        if (w->threads && chosen(w, &call) != first)
            TC_BROKEN(w->k, TNP_SUPPORTS_ANSWER,
                      "supports answers otherwise for 1 host thread than for %u, which "
                      "set_num_threads sets: `%.400s`",
                      counts[n % N_COUNTS], line);
    }
    tc_arena_finish(&w->arena);
}

/* What a device runs hangs neither on how many threads it has at the moment nor on who asks. */
static void supports_threads(tc_contract *k) {
    const tc_subject *s = k->subject;
    chooser w = {
        .sink = {choose_again}, .k = k, .threads = tc_subject_extension(s, TN_EXT_THREADS)};
    uint32_t before = w.threads ? w.threads->get_num_threads(s->self) : 0;
    tc_class_kernel.list(TC_STANDARD, &w.sink);
    if (w.threads)
        w.threads->set_num_threads(s->self, before);
}

/* The sum at the first case and at each later one in the same worker. */
static void unchanged(tc_contract *k) {
    static uint64_t first;
    static const tn_plugin *of;
    const tn_plugin *p = k->subject->plugin;
    if (of != p) {
        of = p;
        first = tc_tables_sum(p);
    }
    tc_lifecycle_probe(k, k->subject, TC_WORK_SMALL, TNP_NONE,
                       "a call between two looks at the tables", NULL);
    if (tc_tables_sum(p) != first)
        TC_BROKEN(k, TNP_TABLE_CONSTANT,
                  "the plugin's tables, or strings in them, changed while it ran");
}

const tc_contract_row tc_record_rows[] = {
    {"record-tables", "when=first", TC_SMOKE, unchanged},
    {"record-each", "", TC_SMOKE, each},
    {"record-pairs", "", TC_SMOKE, pairs},
    {"record-reached", "", TC_STANDARD, reached},
    {"record-supports", "", TC_SMOKE, supports},
    {"record-supports-threads", "", TC_STANDARD, supports_threads},
    {"record-newer", "", TC_STANDARD, tc_record_newer},
    {"record-queues", "", TC_STANDARD, tc_record_queues},
    {"record-packed", "", TC_STANDARD, tc_record_packed},
    {"record-arguments", "", TC_STANDARD, tc_record_arguments},
    {"record-lists", "", TC_STANDARD, tc_record_lists},
    {"capture-arguments", "", TC_STANDARD, tc_capture_arguments},
    {"capture-lists", "", TC_STANDARD, tc_capture_lists},
    {"record-tables", "when=again", TC_SMOKE, unchanged},
    {0},
};
