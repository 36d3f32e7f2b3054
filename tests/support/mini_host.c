/* A host of a few hundred lines, so that a plugin's tests depend on its ABI and on nothing else. */
#include "tests/support/mini_host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the host table ---------------------------------------------------------------------- */

enum { MAX_OPTIONS = 16, LOG_BYTES = 1 << 16 };

static struct { const char *name, *value; } options[MAX_OPTIONS];
static _Thread_local char message[1024];
static char log_text[LOG_BYTES];
static size_t log_used;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int_fast64_t outstanding;
static atomic_int_fast64_t allocs_left = -1;

static void *host_alloc(const tn_host *host, uint64_t bytes, uint64_t alignment) {
    if (atomic_load(&allocs_left) >= 0 && atomic_fetch_sub(&allocs_left, 1) == 0) {
        atomic_store(&allocs_left, -1);
        return NULL;
    }
    void *p;
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    if (posix_memalign(&p, alignment, bytes ? bytes : 1) != 0)
        return NULL;
    atomic_fetch_add(&outstanding, 1);
    return p;
}

static void host_dealloc(const tn_host *host, void *p) {
    if (p)
        atomic_fetch_sub(&outstanding, 1);
    free(p);
}

static void host_log_message(const tn_host *host, int32_t level, const char *text) {
    pthread_mutex_lock(&log_lock);
    int n = snprintf(log_text + log_used, LOG_BYTES - log_used, "%d: %s\n", (int)level, text);
    log_used = log_used + (size_t)n < LOG_BYTES ? log_used + (size_t)n : LOG_BYTES - 1;
    pthread_mutex_unlock(&log_lock);
}

static tn_status host_fail(const tn_host *host, tn_status status, const char *text) {
    snprintf(message, sizeof message, "%s", text);
    return status;
}

static const char *host_option(const tn_host *host, const char *name) {
    for (int i = 0; i < MAX_OPTIONS; i++)
        if (options[i].name && strcmp(options[i].name, name) == 0)
            return options[i].value;
    return NULL;
}

static const void *host_extension(const tn_host *host, const char *id) {
    (void)id;
    return NULL;
}

static const tn_host host_table = {
    .struct_size = sizeof host_table,
    .abi_version = TN_ABI_VERSION,
    .alloc = host_alloc,
    .dealloc = host_dealloc,
    .log_message = host_log_message,
    .fail = host_fail,
    .option = host_option,
    .extension = host_extension,
};

const tn_host *mini_host_table(void) {
    return &host_table;
}

void mini_option(const char *name, const char *value) {
    int at = -1;
    for (int i = MAX_OPTIONS - 1; i >= 0; i--)
        if (!options[i].name && at < 0)
            at = i;
    for (int i = 0; i < MAX_OPTIONS; i++)
        if (options[i].name && strcmp(options[i].name, name) == 0)
            at = i;
    if (at < 0)
        abort(); /* more options than any test needs */
    options[at].name = value ? name : NULL;
    options[at].value = value;
}

const char *mini_error(void) {
    return message;
}

const char *mini_log(void) {
    return log_text;
}

int64_t mini_outstanding(void) {
    return atomic_load(&outstanding);
}

void mini_fail_alloc_after(int64_t n) {
    atomic_store(&allocs_left, n);
}

/* ---- plugin and device ------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static bool refuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return false;
}

static bool check_status(const char *what, tn_status status) {
    if (status == TN_OK)
        return true;
    char reason[512];
    snprintf(reason, sizeof reason, "%.511s", message);
    return refuse("%s failed with status %d: %s", what, (int)status, reason);
}

static bool start(mini *m, const char *path, uint32_t index) {
    char *real = realpath(path, NULL);
    m->object = real ? dlopen(real, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!m->object) {
        free(real);
        return refuse("cannot load '%s': %s", path, real ? dlerror() : "no such file");
    }
    tn_plugin_query_fn query;
    *(void **)&query = dlsym(m->object, TN_PLUGIN_QUERY_NAME);
    m->plugin = query ? query(&host_table) : NULL;
    tn_status status = TN_ERR_ABI;
    if (m->plugin && TN_HAS(m->plugin, tn_plugin, n_kernels) && m->plugin->init &&
        m->plugin->shutdown && m->plugin->devices)
        status = m->plugin->init(&host_table, real, &m->self);
    free(real);
    if (!check_status("init", status))
        return false;

    m->ops = m->plugin->devices;
    uint32_t count = 0;
    if (!check_status("count", m->ops->count(m->self, &count)))
        return false;
    if (index >= count) {
        char why[512];
        snprintf(why, sizeof why, "%.511s", message);
        return refuse("no device %u: the plugin has %u%s%s", (unsigned)index, (unsigned)count,
                      why[0] ? ": " : "", why);
    }
    if (!check_status("open", m->ops->open(m->self, index, &m->device)))
        return false;
    if (m->ops->streams)
        return check_status("stream create", m->ops->streams->create(m->device, 0, &m->stream));
    return true;
}

bool mini_open(mini *m, const char *path, uint32_t index) {
    *m = (mini){0};
    message[0] = 0;
    if (start(m, path, index))
        return true;
    char reason[sizeof message];
    memcpy(reason, message, sizeof message);
    mini_close(m);
    memcpy(message, reason, sizeof message);
    return false;
}

bool mini_close(mini *m) {
    if (m->device) {
        mini_synchronize(m);
        mini_tensors_free(m);
        if (m->stream)
            m->ops->streams->destroy(m->stream);
        m->ops->close(m->device);
    }
    if (m->self)
        m->plugin->shutdown(m->self);
    *m = (mini){0};
    return mini_outstanding() == 0;
}

tn_status mini_synchronize(mini *m) {
    return m->stream ? m->ops->streams->synchronize(m->stream) : TN_OK;
}

/* ---- memory ------------------------------------------------------------------------------ */

tn_status mini_alloc(const tn_memory_ops *memory, tn_device_impl *device, int32_t space,
                     uint64_t bytes, tn_memory *out_memory, void **out_host) {
    tn_allocation a = {.struct_size = sizeof a, .bytes = bytes, .alignment = 1, .space = space};
    tn_status status = memory->alloc(device, &a);
    *out_memory = a.memory;
    *out_host = a.host;
    return status;
}

/* ---- tensors ----------------------------------------------------------------------------- */

uint64_t mini_dtype_bytes(tn_dtype dtype) {
#define BYTES(NAME, value, name, bytes, category) bytes,
    static const uint8_t size[] = {TN_DTYPE_MAP(BYTES)};
#undef BYTES
    return size[dtype];
}

static mini_tensor *tensor_new(mini *m, tn_dtype dtype, int32_t rank, const int64_t *sizes,
                               const int64_t *strides, int64_t offset) {
    mini_tensor *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    int64_t numel = 1, last = offset;
    for (int32_t d = rank - 1; d >= 0; d--) {
        t->sizes[d] = sizes[d];
        t->strides[d] = strides ? strides[d] : numel;
        numel *= sizes[d];
        last += (sizes[d] - 1) * t->strides[d];
    }
    uint64_t itemsize = mini_dtype_bytes(dtype);
    t->bytes = (uint64_t)(last + 1) * itemsize;
    t->view = (tn_tensor_view){
        .struct_size = sizeof(tn_tensor_view),
        .offset = (uint64_t)offset * itemsize,
        .numel = numel,
        .dtype = dtype,
        .rank = rank,
        .sizes = t->sizes,
        .strides = t->strides,
    };
    t->next = m->tensors;
    m->tensors = t;
    return t;
}

mini_tensor *mini_tensor_create(mini *m, tn_dtype dtype, int32_t rank, const int64_t *sizes,
                                const int64_t *strides, int64_t offset) {
    mini_tensor *t = tensor_new(m, dtype, rank, sizes, strides, offset);
    if (!t)
        return NULL;
    if (mini_alloc(m->ops->memory, m->device, TN_SPACE_DEVICE, t->bytes, &t->view.memory,
                   &t->host)) {
        m->tensors = t->next;
        free(t);
        return NULL;
    }
    return t;
}

mini_tensor *mini_tensor_alias(mini *m, const mini_tensor *base, int32_t rank, const int64_t *sizes,
                               const int64_t *strides, int64_t offset) {
    mini_tensor *t = tensor_new(m, base->view.dtype, rank, sizes, strides, offset);
    if (!t)
        return NULL;
    t->view.memory = base->view.memory;
    t->bytes = 0; /* owns no memory */
    t->host = base->host;
    return t;
}

tn_status mini_tensor_write(mini *m, mini_tensor *t, const void *src) {
    return m->ops->memory->copy_from_host(m->device, m->stream, t->view.memory, 0, src, 0,
                                          t->bytes);
}

tn_status mini_tensor_read(mini *m, const mini_tensor *t, void *dst) {
    return m->ops->memory->copy_to_host(m->device, m->stream, dst, 0, t->view.memory, 0, t->bytes);
}

void mini_tensors_free(mini *m) {
    mini_tensor *next;
    for (mini_tensor *t = m->tensors; t; t = next) {
        next = t->next;
        if (t->bytes)
            m->ops->memory->dealloc(m->device, TN_SPACE_DEVICE, t->view.memory);
        free(t);
    }
    m->tensors = NULL;
}

/* ---- calls ------------------------------------------------------------------------------- */

static bool takes(uint64_t mask, tn_dtype dtype) {
    return dtype == TN_DTYPE_NONE || (mask & TN_DTYPE_BIT(dtype));
}

const tn_kernel *mini_find(const mini *m, const char *op, tn_dtype t0, tn_dtype t1) {
    for (uint64_t i = 0; i < m->plugin->n_kernels; i++) {
        const tn_kernel *k = m->plugin->kernels[i];
        if (strcmp(k->op, op) == 0 && takes(k->dtypes[0], t0) && takes(k->dtypes[1], t1) &&
            (!m->ops->accepts || m->ops->accepts(m->device, k) == TN_OK))
            return k;
    }
    return NULL;
}

tn_status mini_run(mini *m, const tn_kernel *kernel, uint32_t n_args, const tn_cell *args,
                   uint32_t n_outs, mini_tensor *const *outs) {
    const tn_tensor_view *out_views[8];
    if (n_outs > 8)
        return host_fail(&host_table, TN_ERR_INVALID_ARGUMENT, "mini_run: more than 8 outputs");
    for (uint32_t i = 0; i < n_outs; i++)
        out_views[i] = &outs[i]->view;
    tn_call call = {
        .struct_size = sizeof call,
        .device = m->device,
        .stream = m->stream,
        .user = kernel->user,
        .args = args,
        .outs = out_views,
        .n_args = n_args,
        .n_outs = n_outs,
    };
    tn_status status = kernel->supports ? kernel->supports(&call) : TN_OK;
    tn_plan plan = {.struct_size = sizeof plan};
    if (status == TN_OK && kernel->prepare)
        status = kernel->prepare(&call, &plan);
    if (status != TN_OK)
        return status;
    void *ignored;
    call.workspace_bytes = plan.workspace_bytes;
    call.cookie = plan.cookie;
    if (call.workspace_bytes > 0)
        status = mini_alloc(m->ops->memory, m->device, TN_SPACE_DEVICE, call.workspace_bytes,
                            &call.workspace, &ignored);
    if (status == TN_OK && call.workspace)
        status = m->ops->memory->fill(m->device, m->stream, call.workspace, 0, 0xff,
                                      call.workspace_bytes);
    if (status == TN_OK) {
        status = kernel->run(&call);
        tn_status later = mini_synchronize(m);
        if (status == TN_OK)
            status = later;
    } else if (kernel->abandon) {
        kernel->abandon(&call);
    }
    if (call.workspace)
        m->ops->memory->dealloc(m->device, TN_SPACE_DEVICE, call.workspace);
    return status;
}

tn_cell mini_view(const mini_tensor *t) {
    return t ? (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &t->view} : mini_none();
}

tn_cell mini_i64(int64_t value) {
    return (tn_cell){.tag = TN_CELL_I64, .v.i64 = value};
}

tn_cell mini_f64(double value) {
    return (tn_cell){.tag = TN_CELL_F64, .v.f64 = value};
}

tn_cell mini_bool(bool value) {
    return (tn_cell){.tag = TN_CELL_BOOL, .v.boolean = value};
}

tn_cell mini_ints(const int64_t *values, uint32_t n) {
    return (tn_cell){.tag = TN_CELL_INTS, .n = n, .v.ints = values};
}

tn_cell mini_string(const char *value) {
    return (tn_cell){.tag = TN_CELL_STRING, .v.string = value};
}

tn_cell mini_none(void) {
    return (tn_cell){.tag = TN_CELL_NONE};
}
