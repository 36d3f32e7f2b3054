/* The table of kernels of each open device.
 *
 * A table holds chains of nodes, one chain for each (operator, first dtype). Tables and nodes are
 * immutable and interned by content, since calls read them without a lock, and since a program that
 * adds and removes a kernel in a loop must not grow. Removing must not need memory: adding a record
 * sets aside what removing all records, in the worst order, would need.
 */
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fork.h"
#include "core/device/kernel_table.h"

#include <stdio.h>
#include <string.h>

enum { N_BUCKETS = 128 };

typedef struct node {
    tni_kernel kernel; /* next points to the kernel of another node */
    struct node *next; /* in the bucket, or in the reserve */
} node;

typedef struct table {
    struct table *next;
    uint64_t hash; /* of the rows */
    tni_kernel_table table;
} table;

typedef struct record {
    struct record *next; /* weakest first: the plugin's from last to first, then those added */
    uint64_t id;         /* 0: the plugin's, never removed */
    uint32_t op;
    tni_kernel kernel; /* next unused */
} record;

typedef struct origin {
    struct origin *next;
    char text[];
} origin;

typedef struct state {
    record *records;
    origin *origins;
    node *nodes[N_BUCKETS];
    table *tables;
    uint64_t last_id;
    uint32_t n_rows; /* of tables made from now on */
    /* The reserve; its tables have n_rows rows. */
    node *spare_nodes;
    table *spare_tables;
    size_t n_spare_nodes, n_spare_tables;
} state;

/* Guards what kernels are added and removed: of all sets, since it is rare. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

TNI_FORK_MUTEX(KERNELS, lock, tni_fork_no_mend)

static void free_nodes(node *n) {
    for (node *next; n; n = next) {
        next = n->next;
        tni_free(n);
    }
}

static void free_tables(table *t) {
    for (table *next; t; t = next) {
        next = t->next;
        tni_free(t);
    }
}

/* Makes sure that so many nodes and tables of n_rows can be made without asking for memory. */
static bool reserve(state *s, size_t n_nodes, size_t n_tables, uint32_t n_rows) {
    size_t have = n_rows > s->n_rows ? 0 : s->n_spare_tables;
    node *nodes = NULL;
    table *tables = NULL, **end = &tables;
    size_t more_nodes = 0;
    if (n_rows < s->n_rows)
        n_rows = s->n_rows;
    for (; s->n_spare_nodes + more_nodes < n_nodes; more_nodes++) {
        node *n = tni_alloc(sizeof *n);
        if (!n)
            goto failed;
        n->next = nodes;
        nodes = n;
    }
    for (size_t i = have; i < n_tables; i++) {
        *end = tni_alloc(sizeof **end + n_rows * sizeof(tni_kernel_row));
        if (!*end)
            goto failed;
        (*end)->next = NULL;
        end = &(*end)->next;
    }
    if (n_rows > s->n_rows) {
        free_tables(s->spare_tables);
        s->spare_tables = NULL;
        s->n_rows = n_rows;
    }
    *end = s->spare_tables;
    s->spare_tables = tables;
    s->n_spare_tables = have > n_tables ? have : n_tables;
    for (node *n = nodes, *next; n; n = next) {
        next = n->next;
        n->next = s->spare_nodes;
        s->spare_nodes = n;
    }
    s->n_spare_nodes += more_nodes;
    return true;
failed:
    free_nodes(nodes);
    free_tables(tables);
    return false;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_rows(const tni_kernel_row *rows, uint32_t n_rows) {
    uint64_t hash = n_rows;
    for (uint32_t i = 0; i < n_rows; i++) {
        for (int dtype = 0; dtype < TN_DTYPE_COUNT; dtype++)
            hash = mix(hash, (uint64_t)(uintptr_t)rows[i].by_dtype[dtype]);
    }
    return hash;
}

static uint64_t hash_kernel(const tni_kernel *k) {
    const uint64_t words[] = {(uint64_t)(uintptr_t)k->run,
                              (uint64_t)(uintptr_t)k->user,
                              (uint64_t)(uintptr_t)k->next,
                              (uint64_t)(uintptr_t)k->origin,
                              (uint64_t)(uintptr_t)k->outputs,
                              k->flags,
                              k->dtypes[0],
                              k->dtypes[1]};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = mix(hash, words[i]);
    return hash;
}

static bool same_kernel(const tni_kernel *a, const tni_kernel *b) {
    return a->run == b->run && a->user == b->user && a->flags == b->flags &&
           a->supports == b->supports && a->prepare == b->prepare && a->abandon == b->abandon &&
           a->outputs == b->outputs && a->origin == b->origin && a->next == b->next &&
           memcmp(a->dtypes, b->dtypes, sizeof a->dtypes) == 0;
}

/* The node of this content, from the reserve if it is new. */
static const tni_kernel *intern(state *s, const tni_kernel *content, const tni_kernel *next) {
    tni_kernel kernel = *content;
    kernel.next = next;
    node **bucket = &s->nodes[hash_kernel(&kernel) % N_BUCKETS];
    for (node *n = *bucket; n; n = n->next) {
        if (same_kernel(&n->kernel, &kernel))
            return &n->kernel;
    }
    node *n = s->spare_nodes;
    s->spare_nodes = n->next;
    s->n_spare_nodes--;
    n->kernel = kernel;
    n->next = *bucket;
    *bucket = n;
    return &n->kernel;
}

/* The table for the present records, from the reserve if it is new. Never fails. */
static const tni_kernel_table *build(state *s) {
    table *made = s->spare_tables;
    size_t bytes = s->n_rows * sizeof(tni_kernel_row);
    made->table.n_rows = s->n_rows;
    made->table.reserved = 0;
    memset(made->table.rows, 0, bytes);
    for (const record *r = s->records; r; r = r->next) {
        tni_kernel_row *row = &made->table.rows[r->op];
        for (int dtype = 0; dtype < TN_DTYPE_COUNT; dtype++) {
            if (r->kernel.dtypes[0] & TN_DTYPE_BIT(dtype))
                row->by_dtype[dtype] = intern(s, &r->kernel, row->by_dtype[dtype]);
        }
    }
    made->hash = hash_rows(made->table.rows, s->n_rows);
    for (table *old = s->tables; old; old = old->next) {
        if (old->hash == made->hash && old->table.n_rows == s->n_rows &&
            memcmp(old->table.rows, made->table.rows, bytes) == 0)
            return &old->table;
    }
    s->spare_tables = made->next;
    s->n_spare_tables--;
    made->next = s->tables;
    s->tables = made;
    return &made->table;
}

static size_t n_dtypes(uint64_t mask) {
    return (size_t)__builtin_popcountll(mask);
}

/* What removing all added records, and `more` (NULL: nothing) as the newest, can need: a table
 * each, and for each removed record a node for every newer one of its row and each dtype of both.
 */
static void count_removals(const state *s, const record *more, size_t *out_nodes,
                           size_t *out_tables) {
    *out_nodes = *out_tables = 0;
    for (const record *r = s->records; r; r = r->next) {
        if (!r->id)
            continue;
        ++*out_tables;
        for (const record *newer = r->next; newer; newer = newer->next) {
            if (newer->op == r->op)
                *out_nodes += n_dtypes(newer->kernel.dtypes[0] & r->kernel.dtypes[0]);
        }
        if (more && more->op == r->op)
            *out_nodes += n_dtypes(more->kernel.dtypes[0] & r->kernel.dtypes[0]);
    }
    *out_tables += more != NULL;
}

static const char *keep_origin(state *s, const char *text) {
    for (origin *o = s->origins; o; o = o->next) {
        if (strcmp(o->text, text) == 0)
            return o->text;
    }
    size_t n = strlen(text) + 1;
    origin *o = tni_alloc(sizeof *o + n);
    if (!o)
        return NULL;
    memcpy(o->text, text, n);
    o->next = s->origins;
    s->origins = o;
    return o->text;
}

/* The record as a table keeps it; nothing past its struct_size is read. */
static tni_kernel read_record(const tn_kernel *r, const char *origin_text) {
    tni_kernel k = {
        .run = TNI_SLOT(r, tn_kernel, run),
        .user = TNI_SLOT(r, tn_kernel, user),
        .flags = TN_HAS(r, tn_kernel, flags) ? r->flags : 0,
        .supports = TNI_SLOT(r, tn_kernel, supports),
        .prepare = TNI_SLOT(r, tn_kernel, prepare),
        .abandon = TNI_SLOT(r, tn_kernel, abandon),
        .origin = origin_text,
    };
    k.is_plain = !k.supports && !k.prepare;
    if (TN_HAS(r, tn_kernel, dtypes)) {
        for (int i = 0; i < TN_KERNEL_MAX_TYPES; i++)
            k.dtypes[i] = r->dtypes[i] & TNI_DTYPES_KNOWN;
    }
    return k;
}

/* Does the device take the record? `*out` says so, unless asking failed. */
static tn_status ask(const tni_plugin *plugin, tn_device_impl *device, const tn_kernel *r,
                     bool *out) {
    const tn_device_ops *ops = plugin->devices;
    tn_status (*supports)(tn_device_impl *, const tn_kernel *) =
        ops ? TNI_SLOT(ops, tn_device_ops, accepts) : NULL;
    tn_status status = supports ? supports(device, r) : TN_OK;
    *out = status == TN_OK;
    if (status == TN_OK || status == TN_ERR_UNSUPPORTED)
        return TN_OK;
    char context[160];
    snprintf(context, sizeof context, "plugin %s, device_ops.accepts for kernel %s",
             plugin->table->id, r->op);
    return tni_error_take_plugin(status, context);
}

/* Is the plugin's kernel left out by TENON_KERNELS_DISABLE? Those of the small set stay: what is
 * left out is done by operators that are made of them. */
static bool is_disabled(const char *plugin_id, const tni_kernel_op *op) {
    if (op->small || !tni_env_is_set(TNI_ENV_KERNELS_DISABLE))
        return false;
    char name[256];
    snprintf(name, sizeof name, "%s/%s", plugin_id, op->name);
    return tni_env_lists(TNI_ENV_KERNELS_DISABLE, name);
}

tn_status tni_kernel_set_init(tni_kernel_set *set, const tni_plugin *plugin,
                              tn_device_impl *device) {
    *set = (tni_kernel_set){.state = NULL};
    state *s = tni_calloc(1, sizeof *s);
    if (!s)
        return tni_fail_memory("a device's kernels");
    set->state = s;

    const tn_plugin *tables = plugin->table;
    uint64_t n_records = TN_HAS(tables, tn_plugin, n_kernels) ? tables->n_kernels : 0;
    size_t n_nodes = 0;
    tn_status status = TN_OK;
    const char *id = keep_origin(s, tables->id);
    if (!id)
        status = tni_fail_memory("a device's kernels");
    for (uint64_t i = 0; i < n_records && status == TN_OK; i++) {
        const tn_kernel *r = tables->kernels[i];
        const tni_kernel_op *op = r && r->op ? tni_kernel_op_find(r->op) : NULL;
        if (!op || r->schema_hash != op->hash)
            continue;
        tni_kernel kernel = read_record(r, id);
        bool is_taken = false;
        if (!kernel.run || !kernel.dtypes[0] || is_disabled(id, op))
            continue;
        status = ask(plugin, device, r, &is_taken);
        if (!is_taken)
            continue;
        record *made = tni_alloc(sizeof *made);
        if (!made) {
            status = tni_fail_memory("a device's kernels");
            break;
        }
        *made = (record){.next = s->records, .op = op->index, .kernel = kernel};
        s->records = made;
        n_nodes += n_dtypes(kernel.dtypes[0]);
    }
    if (status == TN_OK && !reserve(s, n_nodes, 1, tni_kernel_op_count()))
        status = tni_fail_memory("a device's kernels");
    if (status != TN_OK) {
        tni_kernel_set_finish(set);
        return status;
    }
    atomic_store_explicit(&set->table, build(s), memory_order_release);
    /* Dtypes that share a chain left nodes over. */
    free_nodes(s->spare_nodes);
    s->spare_nodes = NULL;
    s->n_spare_nodes = 0;
    return TN_OK;
}

tn_status tni_kernel_check(const tni_kernel_op *op, const tn_kernel *r) {
    const char *name = op->name;
    if (!TN_HAS(r, tn_kernel, run) || !r->run)
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "kernel %s: run is NULL", name);
    if (r->schema_hash != op->hash)
        return tn_fail(
            TN_ERR_ABI,
            "kernel %s: schema_hash is 0x%llx, but that of its schema here, %s, is 0x%llx", name,
            (unsigned long long)r->schema_hash, op->schema, (unsigned long long)op->hash);
    if (!(r->dtypes[0] & TNI_DTYPES_KNOWN))
        return tn_fail(TN_ERR_INVALID_ARGUMENT, "kernel %s: dtypes[0] names no dtype", name);
    return TN_OK;
}

tn_status tni_kernel_set_add(tni_kernel_set *set, const tni_kernel_op *op, const tn_kernel *r,
                             tni_outputs_fn outputs, const char *origin_text, uint64_t *out_id) {
    state *s = set->state;
    *out_id = 0;
    tn_status status = tni_kernel_check(op, r);
    if (status != TN_OK)
        return status;

    record *made = tni_alloc(sizeof *made);
    pthread_mutex_lock(&lock);
    const char *kept = made ? keep_origin(s, origin_text ? origin_text : "unnamed") : NULL;
    if (kept) {
        *made = (record){.op = op->index, .kernel = read_record(r, kept)};
        made->kernel.outputs = outputs;
        made->kernel.is_own = true;
        made->kernel.is_plain = false;
        size_t n_nodes, n_tables;
        count_removals(s, made, &n_nodes, &n_tables);
        n_nodes += n_dtypes(made->kernel.dtypes[0]);
        if (!reserve(s, n_nodes, n_tables + 1, tni_kernel_op_count()))
            kept = NULL;
    }
    if (kept) {
        made->id = *out_id = ++s->last_id;
        record **end = &s->records;
        while (*end)
            end = &(*end)->next;
        *end = made;
        atomic_store_explicit(&set->table, build(s), memory_order_release);
    } else {
        tni_free(made);
        status = tni_fail_memory("a device's kernels");
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void tni_kernel_set_remove(tni_kernel_set *set, uint64_t id) {
    state *s = set->state;
    if (!s || !id)
        return;
    pthread_mutex_lock(&lock);
    record **link = &s->records;
    while (*link && (*link)->id != id)
        link = &(*link)->next;
    record *removed = *link;
    if (removed) {
        *link = removed->next;
        atomic_store_explicit(&set->table, build(s), memory_order_release);
        tni_free(removed);
    }
    pthread_mutex_unlock(&lock);
}

void tni_kernel_set_finish(tni_kernel_set *set) {
    state *s = set->state;
    atomic_store(&set->table, NULL);
    set->state = NULL;
    if (!s)
        return;
    for (record *r = s->records, *next; r; r = next) {
        next = r->next;
        tni_free(r);
    }
    for (origin *o = s->origins, *next; o; o = next) {
        next = o->next;
        tni_free(o);
    }
    for (int i = 0; i < N_BUCKETS; i++)
        free_nodes(s->nodes[i]);
    free_nodes(s->spare_nodes);
    free_tables(s->tables);
    free_tables(s->spare_tables);
    tni_free(s);
}
