/* The table of operators: defined by schema, found by name, dropped and defined again.
 *
 * A tn_op stays where it is until finish, because callers keep pointers. A dropped one answers with
 * an error; defining the same schema again revives it, so that a loop of the two does not grow. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/fork.h"
#include "dispatcher/kernel_ops.h"
#include "dispatcher/internal.h"

#include <string.h>

enum { N_BUCKETS = 1024 };

pthread_mutex_t tni_registry_lock = PTHREAD_MUTEX_INITIALIZER;

static tni_operator *buckets[N_BUCKETS];
static tni_operator *first, **last = &first;
static uint32_t n_operators;

TNI_FORK_MUTEX(REGISTRY, tni_registry_lock, tni_fork_no_mend)

tni_operator *tni_operators_first(void) {
    return first;
}

static tni_operator **bucket_of(const char *name) {
    return &buckets[tni_schema_hash(name) % N_BUCKETS];
}

static tni_operator *find(const char *name) {
    tni_operator *o = *bucket_of(name);
    while (o && (!o->alive || strcmp(o->op.name, name) != 0))
        o = o->same_hash;
    return o;
}

/* A dropped operator that is just what is to be defined, and that nothing hangs on. */
static tni_operator *find_dropped(const char *name, const tni_schema *schema, const void *info) {
    tni_operator *o = *bucket_of(name);
    while (o && (o->alive || o->registrations || o->op.info != info ||
                 strcmp(o->op.schema->text, schema->text) != 0))
        o = o->same_hash;
    return o;
}

static void fill_op(tn_op *op, const tni_schema *schema, const void *info) {
    op->name = tni_plain_name(schema->name);
    op->schema = schema;
    op->device_arg = -1;
    op->info = info;
    for (uint32_t i = 0; i < schema->n_args; i++) {
        if (schema->args[i].type == TNI_TYPE_TENSOR)
            op->tensor_args[op->n_tensor_args++] = (uint8_t)i;
        else if (schema->args[i].type == TNI_TYPE_DEVICE && op->device_arg < 0)
            op->device_arg = (int8_t)i;
    }
    for (uint32_t i = 0; i < schema->n_args; i++) {
        if (schema->args[i].type == TNI_TYPE_TENSORS)
            op->tensor_args[op->n_tensor_args + op->n_list_args++] = (uint8_t)i;
    }
}

static void destroy(tni_operator *o) {
    tni_schema_destroy((tni_schema *)(uintptr_t)o->op.schema);
    tni_free(o->origin);
    tni_free(o);
}

/* Adds `o`, or revives the dropped operator that equals it; `o` belongs to the table or is
 * destroyed. NULL when the name is taken. */
static tni_operator *add(tni_operator *o) {
    tni_operator *other = find(o->op.name);
    if (other) {
        tn_fail(TN_ERR_INVALID_ARGUMENT, "operator %s is already defined, by %s: %s", o->op.name,
                other->origin, other->op.schema->text);
        destroy(o);
        return NULL;
    }
    tni_operator *dropped = find_dropped(o->op.name, o->op.schema, o->op.info);
    if (dropped) {
        char *origin = dropped->origin;
        dropped->origin = o->origin;
        o->origin = origin;
        destroy(o);
        o = dropped;
    } else {
        o->op.index = n_operators++;
        tni_operator **bucket = bucket_of(o->op.name);
        o->same_hash = *bucket;
        *bucket = o;
        *last = o;
        last = &o->next;
    }
    o->alive = true;
    atomic_store_explicit(&o->op.row, tni_default_row(), memory_order_release);
    return o;
}

static tn_op *define(const char *schema_text, const char *origin, const void *info,
                     tn_registration **out) {
    tni_schema *schema = NULL;
    if (tni_schema_parse(schema_text, &schema) != TN_OK)
        return NULL;
    tni_operator *o = tni_calloc(1, sizeof *o);
    char *origin_copy = tni_strdup(origin ? origin : "unnamed");
    tn_registration *definition = out ? tni_alloc(sizeof *definition) : NULL;
    if (!o || !origin_copy || (out && !definition)) {
        tni_schema_destroy(schema);
        tni_free(o);
        tni_free(origin_copy);
        tni_free(definition);
        return tni_fail_memory_null("an operator");
    }
    o->origin = origin_copy;
    fill_op(&o->op, schema, info);
    atomic_init(&o->op.row, &tni_row_empty);

    pthread_mutex_lock(&tni_registry_lock);
    o = add(o);
    if (o)
        o->definition = definition;
    pthread_mutex_unlock(&tni_registry_lock);
    if (!o) {
        tni_free(definition);
        return NULL;
    }
    if (out) {
        *definition = (tn_registration){.op = o, .is_definition = true};
        *out = definition;
    }
    return &o->op;
}

tn_status (*tni_registry_prepare)(void);

bool tni_registry_ready(void) {
    return !tni_registry_prepare || tni_registry_prepare() == TN_OK;
}

tn_op *tn_op_define(const char *schema, const char *origin, tn_registration **out) {
    if (out)
        *out = NULL;
    return tni_registry_ready() ? define(schema, origin, NULL, out) : NULL;
}

tn_op *tni_op_define(const char *schema, const char *origin, const void *info) {
    return define(schema, origin, info, NULL);
}

void tni_operator_drop(tni_operator *o) {
    o->definition = NULL;
    o->alive = false;
    atomic_store_explicit(&o->op.row, &tni_row_dropped, memory_order_release);
}

tn_op *tni_op_lookup(const char *name) {
    pthread_mutex_lock(&tni_registry_lock);
    tni_operator *o = find(tni_plain_name(name));
    pthread_mutex_unlock(&tni_registry_lock);
    return o ? &o->op : NULL;
}

/* ", there is add.Tensor, add.out": the overloads of a name that alone names no operator. */
static void list_overloads(const char *name, char *out, size_t size) {
    size_t n = strlen(name), used = 0;
    out[0] = 0;
    for (const tni_operator *o = first; o && used + 1 < size; o = o->next) {
        if (!o->alive || strncmp(o->op.name, name, n) != 0 || o->op.name[n] != '.')
            continue;
        const char *before = used ? ", " : "; there is ";
        if (used + strlen(before) + strlen(o->op.name) >= size)
            break;
        used += (size_t)strlen(strcat(strcpy(out + used, before), o->op.name));
    }
}

const tn_op *tn_op_find(const char *name) {
    if (!name) {
        tn_fail(TN_ERR_INVALID_ARGUMENT, "tn_op_find: the name is NULL");
        return NULL;
    }
    if (!tni_registry_ready())
        return NULL;
    char overloads[256];
    name = tni_plain_name(name);
    pthread_mutex_lock(&tni_registry_lock);
    tni_operator *o = find(name);
    if (!o)
        list_overloads(name, overloads, sizeof overloads);
    pthread_mutex_unlock(&tni_registry_lock);
    if (!o)
        tn_fail(TN_ERR_NOT_FOUND, "there is no operator '%s'%s", name, overloads);
    return o ? &o->op : NULL;
}

/* False with an error. */
static bool is_operator(const tn_op *op, const char *call) {
    if (!op)
        tn_fail(TN_ERR_INVALID_ARGUMENT, "%s: the operator is NULL", call);
    return op != NULL;
}

const char *tn_op_name(const tn_op *op) {
    return is_operator(op, "tn_op_name") ? op->name : "";
}

const char *tn_op_schema(const tn_op *op) {
    return is_operator(op, "tn_op_schema") ? op->schema->text : "";
}

const char *tni_op_origin(const tn_op *op) {
    return tni_operator_of(op)->origin;
}

uint32_t tn_op_n_args(const tn_op *op) {
    return is_operator(op, "tn_op_n_args") ? op->schema->n_args : 0;
}

uint32_t tn_op_n_rets(const tn_op *op) {
    return is_operator(op, "tn_op_n_rets") ? op->schema->n_rets : 0;
}

void tni_op_for_each(void (*fn)(const tn_op *op, void *user), void *user) {
    pthread_mutex_lock(&tni_registry_lock);
    for (tni_operator *o = first; o; o = o->next) {
        if (o->alive)
            fn(&o->op, user);
    }
    pthread_mutex_unlock(&tni_registry_lock);
}

uint32_t tni_op_count(void) {
    pthread_mutex_lock(&tni_registry_lock);
    uint32_t n = n_operators;
    pthread_mutex_unlock(&tni_registry_lock);
    return n;
}

void tni_registry_clear(void) {
    pthread_mutex_lock(&tni_registry_lock);
    for (tni_operator *next; first; first = next) {
        next = first->next;
        for (tn_registration *r = first->registrations, *after; r; r = after) {
            after = r->next;
            tni_free(r);
        }
        tni_free(first->definition);
        destroy(first);
    }
    last = &first;
    n_operators = 0;
    memset(buckets, 0, sizeof buckets);
    tni_handlers_finish();
    tni_rows_finish();
    pthread_mutex_unlock(&tni_registry_lock);
    tni_kernel_ops_finish();
}

void tni_registry_finish(void) {
    tni_registry_clear();
    pthread_mutex_lock(&tni_registry_lock);
    tni_backends_finish();
    pthread_mutex_unlock(&tni_registry_lock);
}
