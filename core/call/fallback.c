/* The fallback policy: run on the CPU what a device cannot, visibly.
 *
 * Every distinct storage is staged once, whole, and each argument becomes the same view of its
 * copy, so that aliases stay aliases. Written arguments' storages are copied back. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/fork.h"
#include "base/log.h"
#include "core/call/call.h"
#include "core/call/counters.h"
#include "core/graph/graph.h"

#include <string.h>
#include <tenon/fallback.h>

/* ---- counters ---------------------------------------------------------------------------- */

typedef struct counter {
    struct counter *next;
    const char *device_type;
    uint64_t count;
    char name[];
} counter;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static counter *counters;
static _Atomic int policy = -1; /* -1: TENON_FALLBACK */

TNI_FORK_MUTEX(FALLBACK, lock, tni_fork_no_mend)

static counter *counter_new(const char *name, const char *device_type, uint64_t count,
                            counter *next) {
    size_t n = strlen(name) + 1, m = strlen(device_type) + 1;
    counter *c = tni_alloc(sizeof *c + n + m);
    if (!c)
        return NULL;
    *c = (counter){.next = next, .count = count};
    memcpy(c->name, name, n);
    c->device_type = memcpy(c->name + n, device_type, m);
    return c;
}

static void free_list(counter *list) {
    for (counter *next; list; list = next) {
        next = list->next;
        tni_free(list);
    }
}

void tni_count_fallback(const char *operator_name, const tni_device *device) {
    const char *type = tni_backend_name(device->backend);
    pthread_mutex_lock(&lock);
    counter *c = counters;
    while (c && (strcmp(c->name, operator_name) != 0 || strcmp(c->device_type, type) != 0))
        c = c->next;
    if (c)
        c->count++;
    else if ((c = counter_new(operator_name, type, 1, counters)))
        counters = c;
    pthread_mutex_unlock(&lock);
}

void tn_fallback_report(void (*fn)(const char *, const char *, uint64_t, void *), void *user) {
    if (!fn) {
        tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_fallback_report: fn is NULL");
        return;
    }
    counter *copies = NULL, *copy = NULL;
    pthread_mutex_lock(&lock);
    const counter *c = counters;
    for (; c && (copy = counter_new(c->name, c->device_type, c->count, copies)); c = c->next)
        copies = copy;
    pthread_mutex_unlock(&lock);
    if (c)
        tni_fail_memory("the list of fallbacks");
    for (copy = c ? NULL : copies; copy; copy = copy->next)
        fn(copy->name, copy->device_type, copy->count, user);
    free_list(copies);
}

uint64_t tn_fallback_count(void) {
    uint64_t n = 0;
    pthread_mutex_lock(&lock);
    for (counter *c = counters; c; c = c->next)
        n += c->count;
    pthread_mutex_unlock(&lock);
    return n;
}

void tn_fallback_reset(void) {
    pthread_mutex_lock(&lock);
    counter *all = counters;
    counters = NULL;
    pthread_mutex_unlock(&lock);
    free_list(all);
}

void tni_counters_finish(void) {
    tn_fallback_reset();
}

/* ---- policy ------------------------------------------------------------------------------ */

void tn_fallback_set_policy(tn_fallback_policy p) {
    if ((uint32_t)p > TN_FALLBACK_CPU) {
        tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_fallback_set_policy: %d is no policy", (int)p);
        return;
    }
    atomic_store(&policy, (int)p);
}

tn_fallback_policy tn_fallback_get_policy(void) {
    int p = atomic_load(&policy);
    if (p >= 0)
        return (tn_fallback_policy)p;
    const char *value = tni_env(TNI_ENV_FALLBACK);
    if (strcmp(value, "cpu") == 0)
        return TN_FALLBACK_CPU;
    return strcmp(value, "warn") == 0 ? TN_FALLBACK_WARN : TN_FALLBACK_ERROR;
}

/* ---- staging ----------------------------------------------------------------------------- */

enum { MAX_STAGED = 64 };

typedef struct staging {
    tni_device *cpu;
    uint32_t n;
    struct {
        tn_storage *from;
        tn_tensor *original; /* a tensor over all of `from`; owned */
        tn_tensor *copy;     /* the same on the CPU; owned */
        bool written;
    } storages[MAX_STAGED];
    uint32_t n_views;
    tn_tensor *views[MAX_STAGED]; /* owned */
} staging;

/* The CPU's copy of t's storage as a flat tensor of t's dtype. */
static tn_tensor *stage_storage(staging *s, tn_tensor *t, bool written) {
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->storages[i].from == t->storage) {
            s->storages[i].written |= written;
            return s->storages[i].copy;
        }
    }
    if (s->n == MAX_STAGED)
        return tni_fail_null(TN_ERR_UNSUPPORTED, "a fallback stages at most %d tensors",
                             MAX_STAGED);
    int64_t n = (int64_t)(t->storage->bytes / (uint64_t)tni_dtype_size(t->view.dtype)), one = 1;
    tn_tensor *original = tni_tensor_view(t, 1, &n, &one, 0);
    tn_tensor *copy = original ? tni_tensor_new(s->cpu, t->view.dtype, 1, &n) : NULL;
    if (!copy || tni_copy_data(copy, original) != TN_OK) {
        tni_drop(original);
        tni_drop(copy);
        return NULL;
    }
    s->storages[s->n].from = t->storage;
    s->storages[s->n].original = original;
    s->storages[s->n].copy = copy;
    s->storages[s->n].written = written;
    s->n++;
    return copy;
}

/* The same view of the copy; borrowed. Tensors already on the CPU are themselves. */
static tn_tensor *stage(staging *s, tn_tensor *t, bool written) {
    if (!t || t->device == s->cpu)
        return t;
    tn_tensor *base = stage_storage(s, t, written);
    if (!base || s->n_views == MAX_STAGED)
        return NULL;
    tn_tensor *view =
        tni_tensor_view(base, t->view.rank, t->sizes, t->strides, tni_offset_elements(t));
    if (view)
        s->views[s->n_views++] = view;
    return view;
}

static tn_status copy_back(staging *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        if (!s->storages[i].written)
            continue;
        tn_status status = tni_copy_data(s->storages[i].original, s->storages[i].copy);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* A result on the CPU to the device. A staged argument stands for the argument itself. */
static tn_tensor *bring(staging *s, const tn_op *op, const tn_cell *args, tn_cell *cpu_args,
                        tni_device *device, tn_tensor *result) {
    for (uint32_t i = 0; i < op->schema->n_args; i++)
        if (cpu_args[i].tag == TN_CELL_TENSOR && cpu_args[i].v.pointer == result)
            return tni_keep(args[i].v.pointer);
    tn_tensor *t = tni_tensor_new(device, result->view.dtype, result->view.rank, result->sizes);
    if (t && tni_copy_data(t, result) != TN_OK) {
        tni_drop(t);
        return NULL;
    }
    return t;
}

static tn_status run_staged(staging *s, const tn_op *op, tni_device *device, const tn_cell *args,
                            tn_cell *rets) {
    tn_cell cpu_args[TNI_MAX_ARGS];
    tn_tensor *lists[TNI_MAX_ARGS][16];
    for (uint32_t i = 0; i < op->schema->n_args; i++) {
        cpu_args[i] = args[i];
        bool written = op->schema->args[i].is_written;
        if (args[i].tag == TN_CELL_TENSOR) {
            cpu_args[i].v.pointer = stage(s, args[i].v.pointer, written);
            if (!cpu_args[i].v.pointer)
                return tni_failed();
        } else if (args[i].tag == TN_CELL_TENSORS) {
            if (args[i].n > 16)
                return tni_fail(TN_ERR_UNSUPPORTED, "a fallback takes lists of at most 16 tensors");
            for (uint32_t j = 0; j < args[i].n; j++) {
                lists[i][j] = stage(s, ((tn_tensor *const *)args[i].v.pointer)[j], written);
                if (!lists[i][j])
                    return tni_failed();
            }
            cpu_args[i].v.pointer = lists[i];
        } else if (op->device_arg == (int)i) {
            cpu_args[i] = tni_cell_device(s->cpu->id);
        }
    }
    tn_cell cpu_rets[TNI_MAX_RETS];
    tn_status status = tni_call(op, cpu_args, cpu_rets);
    if (status != TN_OK)
        return status;
    status = copy_back(s);
    for (uint32_t i = 0; i < op->schema->n_rets; i++) {
        tn_tensor **results = cpu_rets[i].tag == TN_CELL_TENSORS
                                  ? cpu_rets[i].v.pointer
                                  : (tn_tensor **)&cpu_rets[i].v.pointer;
        uint32_t n =
            cpu_rets[i].tag == TN_CELL_TENSORS ? cpu_rets[i].n : cpu_rets[i].tag == TN_CELL_TENSOR;
        for (uint32_t j = 0; j < n; j++) {
            tn_tensor *cpu = results[j];
            results[j] = status == TN_OK ? bring(s, op, args, cpu_args, device, cpu) : NULL;
            if (!results[j] && status == TN_OK)
                status = tni_failed();
            tni_drop(cpu);
        }
        rets[i] = cpu_rets[i];
    }
    if (status == TN_OK)
        return TN_OK;
    for (uint32_t i = 0; i < op->schema->n_rets; i++) {
        if (rets[i].tag == TN_CELL_TENSORS)
            tni_drop_list(rets[i].v.pointer, rets[i].n);
        else
            tni_drop(rets[i].v.pointer);
        rets[i] = (tn_cell){0};
    }
    return status;
}

tn_status tni_fallback(const tn_op *op, tni_device *device, tn_dtype dtype, const tn_cell *args,
                       tn_cell *rets) {
    tn_fallback_policy p = tn_fallback_get_policy();
    const char *type = tn_dtype_name(dtype);
    if (device->is_cpu)
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "%s: %s has no kernel for %s, and the operator has no "
                        "decomposition",
                        op->name, device->name, type);
    if (p == TN_FALLBACK_ERROR)
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "%s: %s has no kernel for %s, and the operator has no decomposition; set "
                        "TENON_FALLBACK=cpu to run such operators on the CPU, or ask the vendor of "
                        "the plugin for the kernel",
                        op->name, device->name, type);
    if (tni_capturing && tni_capturing->device == device)
        return tni_capture_refuse("it runs on the CPU for want of a kernel",
                                  "leave it out of the capture, or ask the vendor of the plugin "
                                  "for the kernel");
    tn_device cpu = tn_device_parse("cpu:0");
    if (cpu.type == 0)
        return tni_failed();
    tni_log_once(p == TN_FALLBACK_WARN ? TN_LOG_WARN : TN_LOG_DEBUG, "fallback",
                 "%s of %s on %s runs on the CPU", op->name, type, device->name);
    tni_count_fallback(op->name, device);
    staging s = {.cpu = tni_device_get(cpu)};
    tn_thread_keys before = tni_thread_keys;
    tni_thread_keys.excluded |= TNI_KEYS_BELOW_AUTOGRAD;
    tn_status status = run_staged(&s, op, device, args, rets);
    tni_thread_keys = before;
    for (uint32_t i = 0; i < s.n_views; i++)
        tni_drop(s.views[i]);
    for (uint32_t i = 0; i < s.n; i++) {
        tni_drop(s.storages[i].original);
        tni_drop(s.storages[i].copy);
    }
    return status;
}
