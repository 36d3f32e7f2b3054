/* A device that offers less than the one it is made of, for the tests of what a level asks: it
 * opens the plugin that LESSER_OF names and leaves records out, or a promise. LESSER says which stay:
 *
 *     native  what a chip of f32, bf16 and i32 has: kernels in these; `copy` between these, and
 *             i64 and bool, in which indices and conditions lie; nothing is stored in another dtype
 *     f32     kernels in f32, and `copy` from f32 to f32
 *     none    no kernel at all
 *     loose   all kernels, of which none promises the same bits twice (TN_KERNEL_DETERMINISTIC)
 *     declines-prepare, declines-run
 *             all kernels, of which each passes over every other call, as it may "now or always"
 *     small   all kernels, and TN_PROP_MAX_ALLOCATION is 1 MiB; broken-small has half of it
 *
 * LESSER_ALSO adds to that, as `tenon-conform needs` prints it, an item a line: "amax bool",
 * "copy f32 -> i64", "tensors of f64".
 */
#include "tests/conformance/wrapped.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

#define NATIVE (TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_BF16) | TN_DTYPE_BIT(TN_I32))

static const tn_plugin *whole;
static tn_plugin lesser;
static tn_device_ops devices;
static tn_memory_ops memory;
static tn_kernel kernels[MOST];
static const tn_kernel *list[MOST];
static uint64_t stored; /* dtypes */

static uint64_t largest, granted; /* in one allocation: said, and so; 0: not said */

static tn_status property(tn_instance *self, uint32_t index, int32_t which, tn_cell *out_value) {
    uint64_t value = which == TN_PROP_DTYPES           ? stored
                     : which == TN_PROP_MAX_ALLOCATION ? largest
                                                       : 0;
    if (!value)
        return whole->devices->property(self, index, which, out_value);
    *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)value};
    return TN_OK;
}

static const char *const names[] = {
#define NAME(NAME, value, name, bytes, category) name,
    TN_DTYPE_MAP(NAME)
#undef NAME
};

/* Is it a line of LESSER_ALSO? */
static bool is_added(const char *format, ...) {
    const char *also = getenv("LESSER_ALSO");
    char item[128];
    va_list args;
    va_start(args, format);
    size_t n = (size_t)vsnprintf(item, sizeof item, format, args);
    va_end(args);
    for (const char *at = also ? also : ""; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strcspn(at, "\n") == n && memcmp(at, item, n) == 0)
            return true;
    return false;
}

static void keep(const tn_kernel *record, uint64_t from, uint64_t to) {
    if (!(record->dtypes[0] & from) || lesser.n_kernels == MOST)
        return;
    tn_kernel *kernel = &kernels[lesser.n_kernels];
    memcpy(kernel, record, sizeof *kernel);
    kernel->dtypes[0] &= from;
    kernel->dtypes[1] &= to;
    wrapped_kernel(kernel, record);
    list[lesser.n_kernels++] = kernel;
}

static void keep_all(void) {
    stored = TN_DTYPES_ALL;
    for (uint64_t i = 0; i < whole->n_kernels; i++)
        keep(whole->kernels[i], UINT64_MAX, UINT64_MAX);
}

static void take_a_promise_back(void) {
    for (uint64_t i = 0; i < lesser.n_kernels; i++)
        kernels[i].flags &= ~TN_KERNEL_DETERMINISTIC;
}

/* ---- kernels that decline ---------------------------------------------------------------- */

static atomic_uint n_calls;

static tn_status prepare_at_times(const tn_call *call, tn_plan *out) {
    tn_call own;
    const tn_kernel *kernel = wrapped_call(call, &own);
    if (atomic_fetch_add(&n_calls, 1) % 2)
        return TN_ERR_UNSUPPORTED;
    return kernel->prepare ? kernel->prepare(&own, out) : TN_OK;
}

static tn_status run_at_times(const tn_call *call) {
    tn_call own;
    const tn_kernel *kernel = wrapped_call(call, &own);
    if (atomic_fetch_add(&n_calls, 1) % 2 == 0)
        return kernel->run(&own);
    if (kernel->abandon)
        kernel->abandon(&own); /* `run` uses the cookie up, whatever it answers */
    return TN_ERR_UNSUPPORTED;
}

static void decline(bool in_run) {
    for (uint64_t i = 0; i < lesser.n_kernels; i++)
        if (in_run)
            kernels[i].run = run_at_times;
        else
            kernels[i].prepare = prepare_at_times;
}

/* ---- small memory ------------------------------------------------------------------------ */

/* Refused in the words of the device itself. */
static tn_status alloc(tn_device_impl *device, tn_allocation *a) {
    uint64_t bytes = a->bytes;
    if (a->space == TN_SPACE_DEVICE && bytes > granted)
        a->bytes = UINT64_C(1) << 60;
    tn_status status = whole->devices->memory->alloc(device, a);
    a->bytes = bytes;
    return status;
}

/* A workspace of more than there is in one is declined. */
static tn_status prepare_within(const tn_call *call, tn_plan *out) {
    tn_call own;
    const tn_kernel *kernel = wrapped_call(call, &own);
    tn_status status = kernel->prepare(&own, out);
    if (status != TN_OK || out->workspace_bytes <= largest)
        return status;
    own.cookie = out->cookie;
    if (kernel->abandon)
        kernel->abandon(&own);
    return TN_ERR_UNSUPPORTED;
}

static void shrink(bool broken) {
    largest = 1 << 20;
    granted = broken ? largest / 2 : largest;
    memory = *whole->devices->memory;
    memory.alloc = alloc;
    devices.memory = &memory;
    for (uint64_t i = 0; i < lesser.n_kernels; i++)
        if (kernels[i].prepare)
            kernels[i].prepare = prepare_within;
}

/* ---- what stays -------------------------------------------------------------------------- */

static void leave_out(const char *variant) {
    bool native = strcmp(variant, "native") == 0, none = strcmp(variant, "none") == 0;
    uint64_t computed = none ? 0 : native ? NATIVE : TN_DTYPE_BIT(TN_F32);
    uint64_t moved = native ? NATIVE | TN_DTYPE_BIT(TN_I64) | TN_DTYPE_BIT(TN_BOOL) : computed;
    stored = native ? moved : TN_DTYPES_ALL;
    for (tn_dtype d = 0; d < TN_DTYPE_COUNT; d++)
        stored |= is_added("tensors of %s", names[d]) ? TN_DTYPE_BIT(d) : 0;
    for (uint64_t i = 0; i < whole->n_kernels; i++) {
        const tn_kernel *record = whole->kernels[i];
        bool is_copy = strcmp(record->op, "copy") == 0;
        for (tn_dtype d = 0; d < TN_DTYPE_COUNT; d++) {
            uint64_t bit = TN_DTYPE_BIT(d), to = moved & bit ? moved : 0;
            for (tn_dtype e = 0; is_copy && e < TN_DTYPE_COUNT; e++)
                to |= is_added("copy %s -> %s", names[d], names[e]) ? TN_DTYPE_BIT(e) : 0;
            if (is_copy && to)
                keep(record, bit, to);
            if (!is_copy && ((computed & bit) || is_added("%s %s", record->op, names[d])))
                keep(record, bit, UINT64_MAX);
        }
    }
}

static tn_plugin_query_fn query;
static pthread_once_t once = PTHREAD_ONCE_INIT;

__attribute__((constructor)) static void open_whole(void) {
    query = wrapped_open("LESSER_OF");
}

static void make(void) {
    const char *variant = getenv("LESSER");
    memcpy(&lesser, whole, sizeof lesser);
    devices = *whole->devices;
    devices.property = property;
    lesser.n_kernels = 0;
    bool loose = variant && strcmp(variant, "loose") == 0;
    bool declines = variant && strncmp(variant, "declines-", strlen("declines-")) == 0;
    bool broken = variant && strcmp(variant, "broken-small") == 0;
    bool small = broken || (variant && strcmp(variant, "small") == 0);
    if (loose || declines || small)
        keep_all();
    else
        leave_out(variant ? variant : "none");
    if (loose)
        take_a_promise_back();
    if (declines)
        decline(strcmp(variant, "declines-run") == 0);
    if (small)
        shrink(broken);
    lesser.devices = &devices;
    lesser.kernels = list;
}

TN_PLUGIN_EXPORT const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    const tn_plugin *plugin = query ? query(host) : NULL;
    if (!plugin)
        return NULL;
    whole = plugin;
    pthread_once(&once, make);
    return &lesser;
}
