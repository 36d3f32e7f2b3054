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
    tn_fallback_info info; /* its operator_name is `name`, and device_type stands behind that */
    char name[];
} counter;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static counter *counters;
static _Atomic int policy = -1; /* -1: TENON_FALLBACK */

TNI_FORK_MUTEX(FALLBACK, lock, tni_fork_no_mend)

/* A copy of `info`, texts included. */
static counter *counter_new(const tn_fallback_info *info, counter *next) {
    size_t n = strlen(info->operator_name) + 1, m = strlen(info->device_type) + 1;
    counter *c = tni_alloc(sizeof *c + n + m);
    if (!c)
        return NULL;
    *c = (counter){.next = next, .info = *info};
    c->info.operator_name = memcpy(c->name, info->operator_name, n);
    c->info.device_type = memcpy(c->name + n, info->device_type, m);
    return c;
}

static void free_list(counter *list) {
    for (counter *next; list; list = next) {
        next = list->next;
        tni_free(list);
    }
}

static bool is_of(const counter *c, const tn_fallback_info *info) {
    return strcmp(c->name, info->operator_name) == 0 &&
           strcmp(c->info.device_type, info->device_type) == 0;
}

void tni_count_fallback(const char *operator_name, const char *kernel, const tni_device *device,
                        tn_dtype dtype, tn_dtype to) {
    tn_fallback_info info = {.struct_size = sizeof info,
                             .dtype = dtype,
                             .to = to,
                             .operator_name = operator_name,
                             .kernel = kernel,
                             .device_type = tni_backend_name(device->backend),
                             .count = 1};
    pthread_mutex_lock(&lock);
    counter *c = counters;
    while (c && !(is_of(c, &info) && c->info.dtype == dtype && c->info.to == to))
        c = c->next;
    if (c)
        c->info.count++;
    else if ((c = counter_new(&info, counters)))
        counters = c;
    pthread_mutex_unlock(&lock);
}

/* What there is now, for callbacks to be called on without the lock. NULL also with an error. */
static counter *copy_counters(void) {
    counter *copies = NULL, *copy = NULL;
    pthread_mutex_lock(&lock);
    const counter *c = counters;
    for (; c && (copy = counter_new(&c->info, copies)); c = c->next)
        copies = copy;
    pthread_mutex_unlock(&lock);
    if (!c)
        return copies;
    free_list(copies);
    tni_fail_memory("the list of fallbacks");
    return NULL;
}

void tn_fallback_list(void (*fn)(const tn_fallback_info *info, void *user), void *user) {
    if (!fn) {
        tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_fallback_list: fn is NULL");
        return;
    }
    counter *copies = copy_counters();
    for (const counter *c = copies; c; c = c->next)
        fn(&c->info, user);
    free_list(copies);
}

void tn_fallback_report(void (*fn)(const char *, const char *, uint64_t, void *), void *user) {
    if (!fn) {
        tni_fail(TN_ERR_INVALID_ARGUMENT, "tn_fallback_report: fn is NULL");
        return;
    }
    counter *copies = copy_counters();
    for (const counter *c = copies; c; c = c->next) {
        const counter *first = copies; /* of its name: that one tells for all dtypes */
        while (!is_of(first, &c->info))
            first = first->next;
        uint64_t count = 0;
        for (const counter *k = c; k && first == c; k = k->next)
            count += is_of(k, &c->info) ? k->info.count : 0;
        if (first == c)
            fn(c->name, c->info.device_type, count, user);
    }
    free_list(copies);
}

uint64_t tn_fallback_count(void) {
    uint64_t n = 0;
    pthread_mutex_lock(&lock);
    for (counter *c = counters; c; c = c->next)
        n += c->info.count;
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
        TNI_TRY(tni_copy_data(s->storages[i].original, s->storages[i].copy));
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
                tn_tensor *t = ((tn_tensor *const *)args[i].v.pointer)[j];
                lists[i][j] = t ? stage(s, t, written) : NULL;
                if (t && !lists[i][j])
                    return tni_failed();
            }
            cpu_args[i].v.pointer = lists[i];
        } else if (op->device_arg == (int)i) {
            cpu_args[i] = tni_cell_device(s->cpu->id);
        }
    }
    tn_cell cpu_rets[TNI_MAX_RETS];
    TNI_TRY(tni_call(op, cpu_args, cpu_rets));
    tn_status status = copy_back(s);
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
    const tni_op_info *info = tni_info(op); /* NULL: of a program's own operator */
    bool has_row = info && info->kernel >= 0;
    const char *kernel = has_row ? tni_kernel_op_at((uint32_t)info->kernel)->name : op->name;
    if (device->is_cpu)
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "%s: %s has no kernel for %s, and the operator has no "
                        "decomposition",
                        op->name, device->name, type);
    if (p == TN_FALLBACK_ERROR)
        return tni_fail(TN_ERR_UNSUPPORTED,
                        "%s: %s has no kernel for %s, and the operator has no decomposition; set "
                        "TENON_FALLBACK=cpu to run such operators on the CPU, or ask the vendor of "
                        "the plugin for the kernel '%s'",
                        op->name, device->name, type, kernel);
    if (tni_capturing && tni_capturing->device == device)
        return tni_capture_refuse("it runs on the CPU for want of a kernel",
                                  "leave it out of the capture, or ask the vendor of the plugin "
                                  "for the kernel");
    tn_device cpu = tn_device_parse("cpu:0");
    if (cpu.type == 0)
        return tni_failed();
    tni_log_once(p == TN_FALLBACK_WARN ? TN_LOG_WARN : TN_LOG_DEBUG, "fallback",
                 "%s of %s on %s runs on the CPU", op->name, type, device->name);
    tni_count_fallback(op->name, has_row ? kernel : "", device, dtype, TN_DTYPE_NONE);
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
