/* The kernel operators: those of tenon/kernels.h, found by a table made once, and those that
 * programs add. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "dispatcher/kernel_ops.h"

#include <string.h>

static const tni_kernel_op built_in[TNI_KERNEL_COUNT] = {
#define X(name, hash, small, kind, schema) {#name, schema, hash, TNI_KERNEL_##name, small},
    TN_KERNEL_TABLE(X)
#undef X
};

#define COUNT(type, ...) (sizeof((const type[])__VA_ARGS__) / sizeof(type))
const tni_kernel_types tni_kernel_types_of[TNI_KERNEL_COUNT] = {
#define X(name, hash, small, kind, schema) \
    {COUNT(int8_t, TN_KERNEL_ARG_TYPES_##name), \
     COUNT(int8_t, TN_KERNEL_OUT_TYPES_##name), \
     COUNT(uint64_t, TN_KERNEL_DTYPES_##name), \
     TN_KERNEL_ARG_TYPES_##name, \
     TN_KERNEL_OUT_TYPES_##name, \
     TN_KERNEL_DTYPES_##name},
    TN_KERNEL_TABLE(X)
#undef X
};
#undef COUNT

/* One that a program added. */
typedef struct added_op {
    tni_kernel_op op;
    struct added_op *next;
    tni_schema *schema; /* owns op's strings */
} added_op;

enum { N_BUCKETS = 128 };

static uint16_t first_in_bucket[N_BUCKETS]; /* index of a built-in operator plus one */
static uint16_t next_in_bucket[TNI_KERNEL_COUNT];
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

static pthread_mutex_t ops_lock = PTHREAD_MUTEX_INITIALIZER;
static added_op *added; /* newest first */
static uint32_t n_added;

TNI_FORK_MUTEX(KERNEL_OPS, ops_lock, tni_fork_no_mend)

static void hash_names(void) {
    for (int i = TNI_KERNEL_COUNT - 1; i >= 0; i--) {
        uint16_t *bucket = &first_in_bucket[tni_schema_hash(built_in[i].name) % N_BUCKETS];
        next_in_bucket[i] = *bucket;
        *bucket = (uint16_t)(i + 1);
    }
}

static const tni_kernel_op *find_built_in(const char *name) {
    pthread_once(&names_once, hash_names);
    uint16_t i = first_in_bucket[tni_schema_hash(name) % N_BUCKETS];
    while (i && strcmp(built_in[i - 1].name, name) != 0)
        i = next_in_bucket[i - 1];
    return i ? &built_in[i - 1] : NULL;
}

/* With `schema` NULL the newest of that name. */
static const tni_kernel_op *find_added(const char *name, const char *schema) {
    const added_op *a = added;
    while (a && (strcmp(a->op.name, name) != 0 || (schema && strcmp(a->op.schema, schema) != 0)))
        a = a->next;
    return a ? &a->op : NULL;
}

const tni_kernel_op *tni_kernel_op_added(const char *name, const char *schema) {
    pthread_mutex_lock(&ops_lock);
    const tni_kernel_op *op = find_added(tni_plain_name(name), schema);
    pthread_mutex_unlock(&ops_lock);
    return op;
}

const tni_kernel_op *tni_kernel_op_find(const char *name) {
    name = tni_plain_name(name);
    const tni_kernel_op *op = find_built_in(name);
    if (op)
        return op;
    pthread_mutex_lock(&ops_lock);
    op = find_added(name, NULL);
    pthread_mutex_unlock(&ops_lock);
    return op;
}

const tni_kernel_op *tni_kernel_op_at(uint32_t index) {
    if (index < TNI_KERNEL_COUNT)
        return &built_in[index];
    pthread_mutex_lock(&ops_lock);
    const added_op *a = added;
    while (a && a->op.index != index)
        a = a->next;
    pthread_mutex_unlock(&ops_lock);
    return a ? &a->op : NULL;
}

uint32_t tni_kernel_op_count(void) {
    pthread_mutex_lock(&ops_lock);
    uint32_t n = TNI_KERNEL_COUNT + n_added;
    pthread_mutex_unlock(&ops_lock);
    return n;
}

const tni_kernel_op *tni_kernel_op_define(const char *name, const char *schema_text) {
    tni_schema *schema = NULL;
    if (tni_schema_parse(schema_text, &schema) != TN_OK)
        return NULL;
    added_op *made = tni_alloc(sizeof *made);
    const tni_kernel_op *op = NULL;
    name = tni_plain_name(name);
    pthread_mutex_lock(&ops_lock);
    const tni_kernel_op *old = find_built_in(name);
    if (!old)
        old = find_added(name, schema->text);
    if (!made) {
        tni_fail_memory("a kernel operator");
    } else if (strcmp(tni_plain_name(schema->name), name) != 0) {
        tn_fail(TN_ERR_INVALID_ARGUMENT, "kernel operator %s: the schema is of '%s': %s", name,
                schema->name, schema->text);
    } else if (old && strcmp(old->schema, schema->text) != 0) {
        tn_fail(TN_ERR_INVALID_ARGUMENT, "kernel operator %s exists with the schema %s, not %s",
                name, old->schema, schema->text);
    } else if (old) {
        op = old;
    } else {
        *made = (added_op){.op = {.name = tni_plain_name(schema->name),
                                  .schema = schema->text,
                                  .hash = tni_schema_hash(schema->text),
                                  .index = TNI_KERNEL_COUNT + n_added++},
                           .next = added,
                           .schema = schema};
        added = made;
        op = &made->op;
        made = NULL;
        schema = NULL;
    }
    pthread_mutex_unlock(&ops_lock);
    tni_free(made);
    tni_schema_destroy(schema);
    return op;
}

void tni_kernel_ops_finish(void) {
    pthread_mutex_lock(&ops_lock);
    for (added_op *next; added; added = next) {
        next = added->next;
        tni_schema_destroy(added->schema);
        tni_free(added);
    }
    n_added = 0;
    pthread_mutex_unlock(&ops_lock);
}
