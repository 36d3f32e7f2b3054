/* Kernel records: each one's fields, overlap between two of one operator, and `supports`. */
#include "plugin-sdk/conformance/worker/kernel/record.h"
#include "plugin-sdk/conformance/worker/contract/lifecycle.h"

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
    if (!record)
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
        else if (mask & ~allowed)
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

static bool disjoint(const tn_kernel *a, const tn_kernel *b) {
    for (uint32_t t = 0; t < TN_KERNEL_MAX_TYPES; t++)
        if ((a->dtypes[t] || b->dtypes[t]) && !(a->dtypes[t] & b->dtypes[t]))
            return true;
    return false;
}

static void pairs(tc_contract *k) {
    const tn_plugin *p = k->subject->plugin;
    for (uint64_t i = 0; i < p->n_kernels; i++)
        for (uint64_t j = 0; j < i; j++) {
            const tn_kernel *a = p->kernels[j], *b = p->kernels[i];
            if (a == b)
                TC_BROKEN(k, TNP_RECORD_DISJOINT, "kernels[%llu] and [%llu] are one record (%s)",
                          (unsigned long long)j, (unsigned long long)i, a->op);
            else if (strcmp(a->op, b->op) == 0 && a->flags == b->flags && !disjoint(a, b))
                TC_BROKEN(k, TNP_RECORD_DISJOINT,
                          "records %llu and %llu of %s have the same flags (0x%llx) and share "
                          "dtypes: the second is never reached",
                          (unsigned long long)j, (unsigned long long)i, a->op,
                          (unsigned long long)a->flags);
        }
}

/* ---- what the device answers ------------------------------------------------------------- */

static tn_status ask(tc_contract *k, uint64_t i) {
    const tc_subject *s = k->subject;
    tn_status status = s->ops->accepts(s->device, s->plugin->kernels[i]);
    if (status != TN_OK && status != TN_ERR_UNSUPPORTED)
        TC_BROKEN(k, TNP_DEVICE_SUPPORTS,
                  "supports of the device answered %s to record %llu (%s); it is TN_OK or "
                  "TN_ERR_UNSUPPORTED",
                  tc_tn_status_name(status), (unsigned long long)i, s->plugin->kernels[i]->op);
    return status;
}

static void supports(tc_contract *k) {
    const tc_subject *s = k->subject;
    uint64_t n = s->plugin->n_kernels;
    if (!s->ops->accepts) {
        TC_NOT_OFFERED(k, "the device has no supports: it runs every record");
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
                      "supports of the device answered differently when asked again for "
                      "record %llu (%s)",
                      (unsigned long long)i, s->plugin->kernels[i]->op);
    }
    for (uint64_t i = n; i-- > 0;)
        if (ask(k, i) != answers[i])
            TC_BROKEN(k, TNP_DEVICE_SUPPORTS,
                      "supports of the device answered differently in another order for "
                      "record %llu (%s)",
                      (unsigned long long)i, s->plugin->kernels[i]->op);
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
    {"record-supports", "", TC_SMOKE, supports},
    {"record-tables", "when=again", TC_SMOKE, unchanged},
    {0},
};
