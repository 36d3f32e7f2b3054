/* A device that takes subnormal numbers for zero, for the tests of what the suite asks of such: it opens the plugin that
 * FLUSHING_OF names, whose memory is the host's, and puts zero in place of subnormal numbers before its kernels run and
 * after. FLUSHES says of which dtypes, as a mask, and DECLARES what it says of itself (TN_PROP_FLUSHES_SUBNORMALS).
 */
#include "tests/conformance/wrapped.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, MOST_ARGS = 32, MOST_VIEWS = 64 };

static const tn_plugin *whole;
static tn_plugin flushing;
static tn_device_ops devices;
static tn_kernel kernels[MOST];
static const tn_kernel *list[MOST];
static uint64_t flushes, declares;

static const uint64_t sizes[] = {
#define SIZE(NAME, value, name, bytes, category) [value] = bytes,
    TN_DTYPE_MAP(SIZE)
#undef SIZE
};

static tn_status property(tn_instance *self, uint32_t index, int32_t which, tn_cell *out_value) {
    if (which != TN_PROP_FLUSHES_SUBNORMALS)
        return whole->devices->property(self, index, which, out_value);
    *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)declares};
    return TN_OK;
}

/* ---- elements ---------------------------------------------------------------------------- */

/* Those with an exponent of zero; the sign goes too. */
static void flush_element(tn_dtype dtype, void *element) {
    int digits = dtype == TN_F64 ? 52 : dtype == TN_F32 ? 23 : dtype == TN_F16 ? 10 : 7;
    uint64_t bits = 0, sign = UINT64_C(1) << (8 * sizes[dtype] - 1);
    memcpy(&bits, element, sizes[dtype]);
    if ((bits & (sign - 1)) >> digits == 0 && (bits & (sign - 1)) != 0)
        memset(element, 0, sizes[dtype]);
}

static bool is_flushed(const tn_tensor_view *v) {
    return flushes & TN_DTYPES_FLOAT & TN_DTYPE_BIT(v->dtype);
}

static char *address_of(const tn_tensor_view *v) {
    return (char *)(uintptr_t)(v->memory + v->offset);
}

static void flush_elements(const tn_tensor_view *v) {
    for (int64_t i = 0; is_flushed(v) && i < v->numel; i++) {
        int64_t at = 0, rest = i;
        for (int32_t d = v->rank - 1; d >= 0; d--) {
            at += rest % v->sizes[d] * v->strides[d];
            rest /= v->sizes[d];
        }
        flush_element(v->dtype, address_of(v) + (uint64_t)at * sizes[v->dtype]);
    }
}

/* ---- calls ------------------------------------------------------------------------------- */

/* A call whose inputs are copies: what only is read stays as it is. */
typedef struct flushed {
    tn_call call;
    tn_cell args[MOST_ARGS];
    const tn_tensor_view *lists[MOST_VIEWS];
    tn_tensor_view views[MOST_VIEWS];
    void *copies[MOST_VIEWS]; /* what these look at */
    uint32_t n_views, n_lists;
} flushed;

static const tn_tensor_view *copy_of(flushed *f, const tn_tensor_view *v) {
    if (!v || v->numel == 0 || !is_flushed(v) || f->n_views == MOST_VIEWS)
        return v;
    uint64_t extent = 1;
    for (int32_t d = 0; d < v->rank; d++)
        extent += (uint64_t)((v->sizes[d] - 1) * v->strides[d]);
    void *copy = malloc(extent * sizes[v->dtype]);
    if (!copy)
        return v;
    memcpy(copy, address_of(v), extent * sizes[v->dtype]);
    tn_tensor_view *to = &f->views[f->n_views];
    f->copies[f->n_views++] = copy;
    memcpy(to, v, sizeof *to);
    to->memory = (tn_memory)(uintptr_t)copy;
    to->offset = 0;
    flush_elements(to);
    return to;
}

/* What is computed in: not the condition's. */
static tn_dtype dtype_of(const tn_call *call) {
    for (uint32_t a = 0; a < call->n_args; a++)
        if (call->args[a].tag == TN_CELL_TENSOR && call->args[a].v.view &&
            (TN_DTYPE_BIT(call->args[a].v.view->dtype) & TN_DTYPES_FLOAT))
            return call->args[a].v.view->dtype;
    return call->outs[0]->dtype;
}

static void flush_cell(flushed *f, tn_cell *cell) {
    if (cell->tag == TN_CELL_TENSOR)
        cell->v.view = copy_of(f, cell->v.view);
    if (cell->tag == TN_CELL_TENSORS) {
        const tn_tensor_view **views = &f->lists[f->n_lists];
        for (uint32_t i = 0; i < cell->n; i++)
            f->lists[f->n_lists++] = copy_of(f, cell->v.views[i]);
        cell->v.views = views;
    }
    tn_dtype computed = dtype_of(&f->call) == TN_F64 ? TN_F64 : TN_F32;
    double least = computed == TN_F64 ? 0x1p-1022 : 0x1p-126;
    bool is_small = cell->tag == TN_CELL_F64 && cell->v.f64 != 0 && fabs(cell->v.f64) < least;
    if (is_small && (flushes & TN_DTYPE_BIT(computed)))
        cell->v.f64 = 0;
}

static tn_status run(const tn_call *call) {
    flushed f = {.n_views = 0};
    const tn_kernel *record = wrapped_call(call, &f.call);
    memcpy(f.args, call->args, call->n_args * sizeof *f.args);
    for (uint32_t a = 0; a < call->n_args; a++)
        flush_cell(&f, &f.args[a]);
    f.call.args = f.args;
    tn_status status = record->run(&f.call);
    for (uint32_t k = 0; status == TN_OK && k < call->n_outs; k++)
        if (call->outs[k])
            flush_elements(call->outs[k]);
    for (uint32_t i = 0; i < f.n_views; i++)
        free(f.copies[i]);
    return status;
}

/* ---- the plugin -------------------------------------------------------------------------- */

static tn_plugin_query_fn query;
static pthread_once_t once = PTHREAD_ONCE_INIT;

__attribute__((constructor)) static void open_whole(void) {
    query = wrapped_open("FLUSHING_OF");
}

static uint64_t mask_of(const char *variable) {
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 0) : 0;
}

static void make(void) {
    flushes = mask_of("FLUSHES");
    declares = mask_of("DECLARES");
    memcpy(&flushing, whole, sizeof flushing);
    devices = *whole->devices;
    devices.property = property;
    for (uint64_t i = 0; i < whole->n_kernels && i < MOST; i++) {
        memcpy(&kernels[i], whole->kernels[i], sizeof kernels[i]);
        wrapped_kernel(&kernels[i], whole->kernels[i]);
        kernels[i].run = run;
        list[i] = &kernels[i];
    }
    flushing.devices = &devices;
    flushing.kernels = list;
}

TN_PLUGIN_EXPORT const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    const tn_plugin *plugin = query ? query(host) : NULL;
    if (!plugin)
        return NULL;
    whole = plugin;
    pthread_once(&once, make);
    return &flushing;
}
