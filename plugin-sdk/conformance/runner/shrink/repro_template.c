#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>
#include <tenon/kernels.h>
#include <tenon/plugin.h>

typedef struct tensor {
    const char *name;
    tn_dtype dtype;
    int32_t rank;
    int64_t sizes[TN_MAX_RANK], strides[TN_MAX_RANK], numel;
    uint64_t offset, bytes;     /* of the first element; of the allocation */
    const unsigned char *image; /* the allocation's bytes, with what lies round the elements */
    const double *low, *high;   /* of an output: what an element may be; NaN: must be NaN */
    const int64_t *whole;       /* the same of an integer output */
} tensor;

/* A cell, or a tensor where there is one. */
typedef struct argument {
    const tensor *tensor;
    tn_cell cell;
    int owner; /* the argument whose view it is, mostly itself */
} argument;

typedef struct one_call {
    const argument *args;
    const tensor *outs;
    int in_place;     /* the argument whose view is the output, or -1 */
    uint64_t flags;   /* that a record needs to take the call as it is */
    tn_status status; /* what it must end with */
    bool checked; /* the outputs' values are known; else only what differs between calls counts */
} one_call;

/* DATA */

/* ---- the host ---------------------------------------------------------------------------- */

static char device_type[32], message[1024];

static void *host_alloc(const tn_host *host, uint64_t bytes, uint64_t alignment) {
    (void)host;
    void *p = NULL;
    return posix_memalign(&p, alignment < 16 ? 16 : alignment, bytes ? bytes : 1) ? NULL : p;
}

static void host_dealloc(const tn_host *host, void *p) {
    (void)host;
    free(p);
}

static void host_log_message(const tn_host *host, int32_t level, const char *text) {
    (void)host, (void)level;
    fprintf(stderr, "plugin: %s\n", text);
}

static tn_status host_fail(const tn_host *host, tn_status status, const char *text) {
    (void)host;
    snprintf(message, sizeof message, "%s", text ? text : "");
    return status;
}

static const char *host_option(const tn_host *host, const char *name) {
    (void)host;
    char variable[128];
    snprintf(variable, sizeof variable, "TENON_%s_%s", device_type, name);
    for (char *c = variable; *c; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    return getenv(variable);
}

static const tn_host host_table = {
    .struct_size = sizeof host_table,
    .abi_version = TN_ABI_VERSION,
    .alloc = host_alloc,
    .dealloc = host_dealloc,
    .log_message = host_log_message,
    .fail = host_fail,
    .option = host_option,
};

/* ---- the device -------------------------------------------------------------------------- */

static const tn_plugin *plugin;
static tn_instance *self;
static const tn_device_ops *ops;
static tn_device_impl *device;
static tn_stream_impl *stream;

static void demand(bool good, const char *what) {
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, *message ? message : "failed");
    exit(2);
}

static int64_t property(int32_t which, int64_t otherwise) {
    tn_cell value = {.tag = TN_CELL_NONE};
    return ops->property(self, DEVICE, which, &value) == TN_OK && value.tag == TN_CELL_I64
               ? value.v.i64
               : otherwise;
}

static void open_device(const char *path) {
    char absolute[4096];
    demand(realpath(path, absolute) != NULL, path);
    void *object = dlopen(absolute, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        snprintf(message, sizeof message, "%s", dlerror());
    demand(object != NULL, "dlopen");
    tn_plugin_query_fn query;
    *(void **)&query = dlsym(object, TN_PLUGIN_QUERY_NAME);
    demand(query && (plugin = query(&host_table)) != NULL, TN_PLUGIN_QUERY_NAME);
    snprintf(device_type, sizeof device_type, "%s", plugin->device_type);
    ops = plugin->devices;
    demand(plugin->init(&host_table, absolute, &self) == TN_OK, "init");
    uint32_t n;
    demand(ops->count(self, &n) == TN_OK && n > DEVICE, "count");
    demand(ops->open(self, DEVICE, &device) == TN_OK, "open");
    if (ops->streams)
        demand(ops->streams->create(device, 0, &stream) == TN_OK, "stream create");
}

static void close_device(void) {
    if (stream)
        ops->streams->destroy(stream);
    ops->close(device);
    plugin->shutdown(self);
}

/* The next record from *at on whose dtypes and flags fit: they are asked in their order. */
static const tn_kernel *next_kernel(uint64_t flags, uint64_t *at) {
    uint64_t stored = (uint64_t)property(TN_PROP_DTYPES, (int64_t)TN_DTYPES_ALL);
    while (*at < plugin->n_kernels) {
        const tn_kernel *k = plugin->kernels[(*at)++];
        bool fits = strcmp(k->op, OP) == 0 && (k->flags & flags) == flags;
        for (int t = 0; fits && t < N_TYPES; t++)
            fits = (k->dtypes[t] & stored & TN_DTYPE_BIT(types[t])) != 0;
        if (fits && (!ops->accepts || ops->accepts(device, k) == TN_OK))
            return k;
    }
    demand(false, "no kernel of the plugin takes this call");
    return NULL;
}

/* ---- one call ---------------------------------------------------------------------------- */

enum { MOST = 32 };

typedef struct placed {
    const tensor *tensor;
    tn_tensor_view view;
    unsigned char *after;
} placed;

static tn_memory allocate(uint64_t bytes) {
    tn_allocation a = {.struct_size = sizeof a,
                       .bytes = bytes,
                       .alignment = (uint64_t)property(TN_PROP_ALIGNMENT, 64),
                       .space = TN_SPACE_DEVICE};
    demand(ops->memory->alloc(device, &a) == TN_OK, "alloc");
    return a.memory;
}

static void place(placed *p, const tensor *t) {
    p->tensor = t;
    p->view = (tn_tensor_view){.struct_size = sizeof p->view,
                               .offset = t->offset,
                               .numel = t->numel,
                               .dtype = t->dtype,
                               .rank = t->rank,
                               .sizes = t->sizes,
                               .strides = t->strides};
    p->view.memory = allocate(t->bytes);
    demand(ops->memory->copy_from_host(device, stream, p->view.memory, 0, t->image, 0, t->bytes) ==
               TN_OK,
           "write");
}

static uint64_t size_of(tn_dtype dtype) {
    static const uint64_t sizes[] = {
#define SIZE(NAME, value, name, bytes, category) [value] = bytes,
        TN_DTYPE_MAP(SIZE)
#undef SIZE
    };
    return sizes[dtype];
}

/* Byte of the allocation where row-major element i lies. */
static uint64_t place_of(const tensor *t, int64_t i) {
    int64_t at = 0;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        at += i % t->sizes[d] * t->strides[d];
        i /= t->sizes[d];
    }
    return t->offset + (uint64_t)at * size_of(t->dtype);
}

static double half(uint32_t bits) {
    double sign = bits >> 15 ? -1 : 1;
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    if (exponent == 31)
        return fraction > 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1 + fraction / 1024, exponent - 15) : ldexp(fraction, -24));
}

static double load_float(tn_dtype dtype, const unsigned char *p) {
    uint16_t h;
    uint32_t w;
    float f;
    double d;
    memcpy(&h, p, sizeof h);
    if (dtype == TN_F16)
        return half(h);
    if (dtype == TN_F64) {
        memcpy(&d, p, sizeof d);
        return d;
    }
    if (dtype == TN_BF16)
        w = (uint32_t)h << 16;
    else
        memcpy(&w, p, sizeof w);
    memcpy(&f, &w, sizeof f);
    return f;
}

static int64_t load_int(tn_dtype dtype, const unsigned char *p) {
    uint64_t bits = 0;
    uint64_t size = size_of(dtype); /* little-endian */
    memcpy(&bits, p, size);
    unsigned shift = (unsigned)(64 - 8 * size);
    return dtype == TN_U8 || dtype == TN_BOOL ? (int64_t)bits : (int64_t)(bits << shift) >> shift;
}

static bool is_float(tn_dtype dtype) {
    return (TN_DTYPES_FLOAT & TN_DTYPE_BIT(dtype)) != 0;
}

static double smallest_normal(tn_dtype dtype) {
    return ldexp(1, dtype == TN_F64 ? -1022 : dtype == TN_F16 ? -14 : -126);
}

static bool accepts(const tensor *t, int64_t i, double got) {
    double low = t->low[i], high = t->high[i];
    if (isinf(low) && low < 0 && isinf(high) && high > 0)
        return true; /* unspecified */
    if (isnan(low) || isnan(got))
        return isnan(low) && isnan(got);
    if (ZERO_SIGNED && low == 0 && high == 0 && got == 0 && !signbit(low) == !signbit(high))
        return !signbit(got) == !signbit(low);
    return (got >= low && got <= high) ||
           (got == 0 &&
            (property(TN_PROP_FLUSHES_SUBNORMALS, 0) & (int64_t)TN_DTYPE_BIT(t->dtype)) &&
            fmin(fabs(low), fabs(high)) <= smallest_normal(t->dtype));
}

static int check_values(const placed *p) {
    const tensor *t = p->tensor;
    int n_wrong = 0;
    for (int64_t i = 0; i < t->numel; i++) {
        const unsigned char *at = p->after + place_of(t, i);
        if (is_float(t->dtype)) {
            double got = load_float(t->dtype, at);
            if (accepts(t, i, got))
                continue;
            printf("%s, element %lld: expected %.17g to %.17g, got %.17g\n", t->name, (long long)i,
                   t->low[i], t->high[i], got);
        } else {
            int64_t got = load_int(t->dtype, at);
            if (got == t->whole[i] || t->low[i] < 0)
                continue;
            printf("%s, element %lld: expected %lld, got %lld\n", t->name, (long long)i,
                   (long long)t->whole[i], (long long)got);
        }
        n_wrong++;
    }
    return n_wrong;
}

/* Bytes that nobody may write; those of elements are left out where `written`. */
static int check_bytes(const placed *p, bool written) {
    const tensor *t = p->tensor;
    uint64_t size = size_of(t->dtype);
    for (int64_t i = 0; i < t->numel && written; i++)
        memcpy(p->after + place_of(t, i), t->image + place_of(t, i), size);
    for (uint64_t i = 0; i < t->bytes; i++)
        if (p->after[i] != t->image[i]) {
            printf("%s: byte %llu of its allocation was written: 0x%02x, now 0x%02x\n", t->name,
                   (unsigned long long)i, t->image[i], p->after[i]);
            return 1;
        }
    return 0;
}

/* The elements of call 0, that others are compared with. */
static unsigned char *first_elements[MOST];

static int check_same(const placed *p, int k) {
    const tensor *t = p->tensor;
    uint64_t size = size_of(t->dtype);
    unsigned char *elements = malloc((size_t)t->numel * size);
    demand(elements != NULL, "malloc");
    for (int64_t i = 0; i < t->numel; i++)
        memcpy(elements + (uint64_t)i * size, p->after + place_of(t, i), size);
    if (!first_elements[k]) {
        first_elements[k] = elements;
        return 0;
    }
    int n_wrong = 0;
    for (int64_t i = 0; i < t->numel; i++) {
        const unsigned char *a = first_elements[k] + (uint64_t)i * size,
                            *b = elements + (uint64_t)i * size;
        bool floating = is_float(t->dtype);
        if (memcmp(a, b, size) == 0 ||
            (floating && isnan(load_float(t->dtype, a)) && isnan(load_float(t->dtype, b))))
            continue;
        n_wrong++;
        if (floating)
            printf("%s, element %lld: %.17g in one call, %.17g in the other\n", t->name,
                   (long long)i, load_float(t->dtype, a), load_float(t->dtype, b));
        else
            printf("%s, element %lld: %lld in one call, %lld in the other\n", t->name, (long long)i,
                   (long long)load_int(t->dtype, a), (long long)load_int(t->dtype, b));
    }
    free(elements);
    return n_wrong;
}

static int check(const one_call *c, placed *args, placed *outs, tn_status status, bool twice) {
    int n_wrong = 0;
    if (status != c->status || twice) {
        printf("the call ended with status %d%s, expected %d%s%s\n", (int)status,
               twice ? ", reported twice" : "", (int)c->status, *message ? ": " : "", message);
        return 1;
    }
    for (int k = 0; k < N_OUTS && status == TN_OK; k++)
        n_wrong += c->checked ? check_values(&outs[k]) : check_same(&outs[k], k);
    for (int a = 0; a < N_ARGS; a++)
        if (args[a].tensor)
            n_wrong += check_bytes(&args[a], c->in_place >= 0 &&
                                                 c->args[a].owner == c->args[c->in_place].owner);
    for (int k = 0; k < N_OUTS; k++)
        if (k > 0 || c->in_place < 0)
            n_wrong += check_bytes(&outs[k], true);
    return n_wrong;
}

/* What a call points to, as copies: once `run` has returned a plugin may need none of it. */
typedef struct lent {
    tn_cell cells[MOST];
    const tn_tensor_view *outs[MOST];
    tn_tensor_view views[2 * MOST];
    int64_t numbers[4 * MOST][TN_MAX_RANK];
} lent;

static const tn_tensor_view *lend(lent *l, int at, const tn_tensor_view *view) {
    size_t bytes = (size_t)view->rank * sizeof(int64_t);
    l->views[at] = *view;
    l->views[at].sizes = memcpy(l->numbers[2 * at], view->sizes, bytes);
    l->views[at].strides = memcpy(l->numbers[2 * at + 1], view->strides, bytes);
    return &l->views[at];
}

static tn_status run_lent(const tn_kernel *kernel, tn_call call) {
    lent l;
    for (uint32_t a = 0; a < call.n_args; a++) {
        l.cells[a] = call.args[a];
        if (l.cells[a].tag == TN_CELL_TENSOR)
            l.cells[a].v.view = lend(&l, (int)a, l.cells[a].v.view);
        if (l.cells[a].tag == TN_CELL_INTS && l.cells[a].n > 0)
            l.cells[a].v.ints =
                memcpy(l.numbers[2 * a], l.cells[a].v.ints, l.cells[a].n * sizeof(int64_t));
    }
    for (uint32_t k = 0; k < call.n_outs; k++)
        l.outs[k] = lend(&l, MOST + (int)k, call.outs[k]);
    call.args = l.cells;
    call.outs = l.outs;
    tn_status status = kernel->run(&call);
    volatile unsigned char *bytes = (volatile unsigned char *)&l;
    for (size_t i = 0; i < sizeof l; i++)
        bytes[i] = 0xa5;
    return status;
}

/* The first record that takes the call runs it; TN_ERR_UNSUPPORTED of `supports`, `prepare` or `run`
 * passes one over. */
static tn_status run_first(uint64_t flags, tn_call *call) {
    for (uint64_t at = 0;;) {
        const tn_kernel *kernel = next_kernel(flags, &at);
        tn_plan plan = {.struct_size = sizeof plan};
        call->user = kernel->user;
        if (kernel->supports && kernel->supports(call) == TN_ERR_UNSUPPORTED)
            continue;
        tn_status status = kernel->prepare ? kernel->prepare(call, &plan) : TN_OK;
        if (status == TN_OK) {
            call->cookie = plan.cookie;
            call->workspace_bytes = plan.workspace_bytes;
            if (call->workspace)
                ops->memory->dealloc(device, TN_SPACE_DEVICE, call->workspace);
            call->workspace = plan.workspace_bytes ? allocate(plan.workspace_bytes) : 0;
            status = run_lent(kernel, *call);
        }
        if (status != TN_ERR_UNSUPPORTED)
            return status;
    }
}

static int run(const one_call *c) {
    placed args[MOST] = {{0}}, outs[MOST] = {{0}};
    tn_cell cells[MOST];
    const tn_tensor_view *views[MOST];
    for (int a = 0; a < N_ARGS; a++) {
        cells[a] = c->args[a].cell;
        if (!c->args[a].tensor)
            continue;
        if (c->args[a].owner == a)
            place(&args[a], c->args[a].tensor);
        cells[a] = (tn_cell){.tag = TN_CELL_TENSOR, .v.view = &args[a].view};
    }
    for (int a = 0; a < N_ARGS; a++)
        if (c->args[a].owner != a)
            args[a] = args[c->args[a].owner];
    for (int k = 0; k < N_OUTS; k++) {
        if (k > 0 || c->in_place < 0)
            place(&outs[k], &c->outs[k]);
        else
            outs[k] = (placed){.tensor = &c->outs[k], .view = args[c->in_place].view};
        views[k] = &outs[k].view;
    }
    tn_call call = {.struct_size = sizeof call,
                    .device = device,
                    .stream = stream,
                    .args = cells,
                    .outs = views,
                    .n_args = N_ARGS,
                    .n_outs = N_OUTS};
    message[0] = '\0';
    tn_status status = run_first(c->flags, &call);
    tn_status later = stream ? ops->streams->synchronize(stream) : TN_OK;
    bool twice = status != TN_OK && later != TN_OK;
    if (status == TN_OK)
        status = later;
    for (int i = 0; i < N_ARGS + N_OUTS; i++) {
        placed *p = i < N_ARGS ? &args[i] : &outs[i - N_ARGS];
        if (!p->tensor)
            continue;
        p->after = malloc(p->tensor->bytes);
        demand(p->after && ops->memory->copy_to_host(device, stream, p->after, 0, p->view.memory, 0,
                                                     p->tensor->bytes) == TN_OK,
               "read");
    }
    int n_wrong = check(c, args, outs, status, twice);
    for (int i = 0; i < N_ARGS + N_OUTS; i++) {
        placed *p = i < N_ARGS ? &args[i] : &outs[i - N_ARGS];
        free(p->after);
        if (p->tensor && !(i == N_ARGS && c->in_place >= 0) &&
            !(i < N_ARGS && c->args[i].owner != i))
            ops->memory->dealloc(device, TN_SPACE_DEVICE, p->view.memory);
    }
    if (call.workspace)
        ops->memory->dealloc(device, TN_SPACE_DEVICE, call.workspace);
    return n_wrong;
}

int main(int argc, char **argv) {
    int n_wrong = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: %s PLUGIN.so\n", argv[0]);
        return 2;
    }
    open_device(argv[1]);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        n_wrong += run(&calls[i]);
    for (int k = 0; k < MOST; k++)
        free(first_elements[k]);
    close_device();
    puts(n_wrong ? "wrong" : "right");
    return n_wrong != 0;
}
