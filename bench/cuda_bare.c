/* See cuda_bare.h. */
#include "bench/cuda_bare.h"

#include <dlfcn.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bare_driver bare;
const char *bare_image;
static char reason[512];

const char *bare_why(void) {
    return reason;
}

bool bare_fail(const char *what, const char *why) {
    snprintf(reason, sizeof reason, "%s: %s", what, why ? why : "failed");
    return false;
}

bool bare_ok(CUresult error, const char *what) {
    const char *name = NULL;
    if (error == CUDA_SUCCESS)
        return true;
    if (bare.cuGetErrorName)
        bare.cuGetErrorName(error, &name);
    return bare_fail(what, name);
}

void *bare_library(const char *variable, const char *const *names) {
    const char *path = getenv(variable);
    void *library = path && *path ? dlopen(path, RTLD_NOW) : NULL;
    for (; !library && !(path && *path) && *names; names++)
        library = dlopen(*names, RTLD_NOW);
    if (!library)
        bare_fail(variable, dlerror());
    return library;
}

/* ---- the driver -------------------------------------------------------------------------- */

static bool find_driver(void) {
    static const char *const names[] = {"libcuda.so.1", NULL};
    void *library = bare_library("TENON_CUDA_DRIVER", names);
    if (!library)
        return false;
#define FIND(function) \
    *(void **)&bare.function = dlsym(library, #function); \
    if (!bare.function) \
        return bare_fail("the driver", "it lacks " #function);
    BARE_DRIVER_FUNCTIONS(FIND)
#undef FIND
    return true;
}

static bool enter(void) {
    return bare_ok(bare.cuCtxPushCurrent_v2(bare.context), "a context");
}

static void leave(void) {
    CUcontext popped;
    bare.cuCtxPopCurrent_v2(&popped);
}

bool bare_open(int index) {
    CUdevice device;
    int major = 0, minor = 0;
    if (!find_driver() || !bare_ok(bare.cuInit(0), "cuInit") ||
        !bare_ok(bare.cuDriverGetVersion(&bare.version), "the driver's version") ||
        !bare_ok(bare.cuDeviceGet(&device, index), "the device") ||
        !bare_ok(
            bare.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
            "its capability") ||
        !bare_ok(
            bare.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
            "its capability") ||
        !bare_ok(bare.cuDevicePrimaryCtxRetain(&bare.context, device), "a context") || !enter())
        return false;
    bare.architecture = 10 * major + minor;
    bool ok = bare_ok(bare.cuStreamCreateWithPriority(&bare.stream, CU_STREAM_NON_BLOCKING, 0),
                      "a stream");
    leave();
    return ok;
}

/* ---- device code ------------------------------------------------------------------------- */

static const char source[] =
    "extern \"C\" __global__ void add(float *c, const float *a, const float *b, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) c[i] = a[i] + b[i];\n"
    "}\n"
    "extern \"C\" __global__ void fill(unsigned *p, unsigned n, unsigned mask, unsigned bits) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i * 2654435761u + 1;\n"
    "    x ^= x >> 16; x *= 0x85ebca6bu; x ^= x >> 13; x *= 0xc2b2ae35u; x ^= x >> 16;\n"
    "    if (i < n) p[i] = (x & mask) | bits;\n"
    "}\n";

#define NVRTC_FUNCTIONS(X) \
    X(nvrtcGetNumSupportedArchs) \
    X(nvrtcGetSupportedArchs) \
    X(nvrtcCreateProgram) \
    X(nvrtcCompileProgram) \
    X(nvrtcGetCUBINSize) \
    X(nvrtcGetCUBIN) \
    X(nvrtcGetPTXSize) \
    X(nvrtcGetPTX)

static struct {
#define MEMBER(function) __typeof__(&function) function;
    NVRTC_FUNCTIONS(MEMBER)
#undef MEMBER
} nvrtc;

static bool find_nvrtc(void) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so", NULL};
    void *library = bare_library("TENON_CUDA_NVRTC", names);
    if (!library)
        return false;
#define FIND(function) \
    *(void **)&nvrtc.function = dlsym(library, #function); \
    if (!nvrtc.function) \
        return bare_fail("NVRTC", "it lacks " #function);
    NVRTC_FUNCTIONS(FIND)
#undef FIND
    return true;
}

/* What `bare_image` holds; NULL: nothing. The caller's to free. */
static char *read_image(void) {
    FILE *file = bare_image ? fopen(bare_image, "rb") : NULL;
    long bytes = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    char *image = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (image && (fseek(file, 0, SEEK_SET) || fread(image, (size_t)bytes, 1, file) != 1)) {
        free(image);
        image = NULL;
    }
    if (file)
        fclose(file);
    return image;
}

static void write_image(const char *image, size_t bytes) {
    FILE *file = bare_image ? fopen(bare_image, "wb") : NULL;
    if (file && (fwrite(image, bytes, 1, file) != 1) | (fclose(file) != 0))
        remove(bare_image);
}

/* Machine code, or PTX where NVRTC is older than the device; the caller's to free. */
static char *compile(void) {
    int known[256], count = 0;
    nvrtcProgram program;
    char option[64], *image = NULL;
    size_t bytes = 0;
    if (nvrtc.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count < 1 || count > 256 ||
        nvrtc.nvrtcGetSupportedArchs(known) != NVRTC_SUCCESS) {
        bare_fail("NVRTC", "it names no architectures");
        return NULL;
    }
    bool is_known = known[count - 1] >= bare.architecture;
    snprintf(option, sizeof option, "--gpu-architecture=%s_%d", is_known ? "sm" : "compute",
             is_known ? bare.architecture : known[count - 1]);
    const char *options[] = {option};
    if (nvrtc.nvrtcCreateProgram(&program, source, "bare.cu", 0, NULL, NULL) == NVRTC_SUCCESS &&
        nvrtc.nvrtcCompileProgram(program, 1, options) == NVRTC_SUCCESS &&
        (is_known ? nvrtc.nvrtcGetCUBINSize : nvrtc.nvrtcGetPTXSize)(program, &bytes) ==
            NVRTC_SUCCESS)
        image = malloc(bytes);
    if (!image ||
        (is_known ? nvrtc.nvrtcGetCUBIN : nvrtc.nvrtcGetPTX)(program, image) != NVRTC_SUCCESS)
        bare_fail("NVRTC", "a program did not compile");
    else
        write_image(image, bytes);
    return image;
}

/* In the context. */
static CUfunction function_of(const char *name) {
    static CUmodule module;
    CUfunction function = NULL;
    if (!module) {
        char *image = read_image();
        if (!image && find_nvrtc())
            image = compile();
        if (!image ||
            !bare_ok(bare.cuModuleLoadDataEx(&module, image, 0, NULL, NULL), "loading a module"))
            module = NULL;
        free(image);
    }
    return module && bare_ok(bare.cuModuleGetFunction(&function, module, name), name) ? function
                                                                                      : NULL;
}

/* ---- work -------------------------------------------------------------------------------- */

CUdeviceptr bare_randn(const char *dtype, uint64_t elements) {
    static CUfunction fill;
    CUdeviceptr p = 0;
    /* Signs and digits are random, exponents two: multiplying zeros takes less power, and so time. */
    bool is_f32 = !strcmp(dtype, "f32"), is_f16 = !strcmp(dtype, "f16");
    unsigned mask = is_f32   ? 0x80ffffff
                    : is_f16 ? 0x87ff87ff
                             : 0x80ff80ff,
             bits = is_f32   ? 0x3f000000
                    : is_f16 ? 0x38003800
                             : 0x3f003f00,
             words = (unsigned)((elements * (is_f32 ? 4 : 2) + 3) / 4);
    void *arguments[] = {&p, &words, &mask, &bits};
    if (!fill)
        fill = function_of("fill");
    if (!fill || !bare_ok(bare.cuMemAlloc_v2(&p, words * (size_t)4), "memory") ||
        !bare_ok(bare.cuLaunchKernel(fill, (words + 255) / 256, 1, 1, 256, 1, 1, 0, bare.stream,
                                     arguments, NULL),
                 "filling memory"))
        return 0;
    return p;
}

CUdeviceptr bare_workspace(uint64_t bytes) {
    static CUdeviceptr p;
    static uint64_t there;
    if (bytes > there) {
        if (p)
            bare.cuMemFree_v2(p);
        there = bare_ok(bare.cuMemAlloc_v2(&p, bytes), "a workspace") ? bytes : 0;
    }
    return there ? p : 0;
}

double bare_timed(uint64_t n, uint64_t launches, bool (*once)(void *user), void *user) {
    uint64_t group = launches ? BENCH_LAUNCHES / launches : n;
    double took = 0;
    bool ok = enter();
    if (!ok)
        return -1;
    ok = bare_ok(bare.cuStreamSynchronize(bare.stream), "waiting");
    for (uint64_t done = 0; ok && done < n;) {
        uint64_t end = n - done < group ? n : done + group;
        double start = bench_now();
        for (; ok && done < end; done++)
            ok = once(user);
        double called = bench_now();
        ok &= bare_ok(bare.cuStreamSynchronize(bare.stream), "waiting");
        took += (launches ? called : bench_now()) - start;
    }
    leave();
    return ok ? took : -1;
}

typedef struct sum {
    CUfunction function;
    CUdeviceptr a, b, c;
} sum;

/* Made when a row first asks; NULL when that failed. */
static sum *small_sum(void) {
    static sum s;
    if (!s.function && enter()) {
        s.a = bare_randn("f32", BENCH_ELEMENTS);
        s.b = bare_randn("f32", BENCH_ELEMENTS);
        s.c = bare_randn("f32", BENCH_ELEMENTS);
        s.function = s.a && s.b && s.c ? function_of("add") : NULL;
        leave();
    }
    return s.function ? &s : NULL;
}

static bool launch_add(void *user) {
    sum *s = user;
    int elements = BENCH_ELEMENTS;
    void *arguments[] = {&s->c, &s->a, &s->b, &elements};
    return bare_ok(bare.cuLaunchKernel(s->function, 1, 1, 1, BENCH_ELEMENTS, 1, 1, 0, bare.stream,
                                       arguments, NULL),
                   "a launch");
}

double bare_launch_add(uint64_t n) {
    sum *s = small_sum();
    return s ? bare_timed(n, 1, launch_add, s) : -1;
}

static bool launch_some(sum *s, int launches) {
    bool ok = true;
    for (int i = 0; ok && i < launches; i++)
        ok = launch_add(s);
    return ok;
}

static bool launch_chain(void *user) {
    return launch_some(user, BENCH_CHAIN);
}

static bool launch_backward(void *user) {
    return launch_some(user, BENCH_BACKWARD);
}

double bare_launch_chain(uint64_t n) {
    sum *s = small_sum();
    return s ? bare_timed(n, BENCH_CHAIN, launch_chain, s) : -1;
}

double bare_launch_backward(uint64_t n) {
    sum *s = small_sum();
    return s ? bare_timed(n, BENCH_BACKWARD, launch_backward, s) : -1;
}

static bool replay(void *user) {
    return bare_ok(bare.cuGraphLaunch(*(CUgraphExec *)user, bare.stream), "a graph's launch");
}

double bare_launch_replay(uint64_t n) {
    static CUgraphExec made;
    sum *s = small_sum();
    CUgraph graph;
    if (s && !made && enter()) {
        if (bare_ok(bare.cuStreamBeginCapture_v2(bare.stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                    "a capture") &&
            launch_chain(s) && bare_ok(bare.cuStreamEndCapture(bare.stream, &graph), "a capture"))
            bare_ok(bare.cuGraphInstantiateWithFlags(&made, graph, 0), "a graph");
        leave();
    }
    return made ? bare_timed(n, BENCH_CHAIN, replay, &made) : -1;
}

typedef struct transfer {
    CUdeviceptr from, to;
    size_t bytes;
} transfer;

static bool copy_once(void *user) {
    transfer *t = user;
    return bare_ok(bare.cuMemcpyDtoDAsync_v2(t->to, t->from, t->bytes, bare.stream), "a copy");
}

static double copies(transfer *t, uint64_t elements, uint64_t launches, uint64_t n) {
    t->bytes = elements * 4;
    if (!t->to && enter()) {
        t->from = bare_randn("f32", elements);
        t->to = t->from ? bare_randn("f32", elements) : 0;
        leave();
    }
    return t->to ? bare_timed(n, launches, copy_once, t) : -1;
}

double bare_launch_copy(uint64_t n) {
    static transfer t;
    return copies(&t, BENCH_ELEMENTS, 1, n);
}

double bare_copy(uint64_t n) {
    static transfer t;
    return copies(&t, (uint64_t)(bench_side() * bench_side()), 0, n);
}

bool bare_first_result(void) {
    sum *s = bare_open(0) ? small_sum() : NULL;
    float value = 0;
    if (!s || bare_timed(1, 1, launch_add, s) < 0 || !enter())
        return false;
    bool ok = bare_ok(bare.cuMemcpyDtoHAsync_v2(&value, s->c, 4, bare.stream), "a copy") &&
              bare_ok(bare.cuStreamSynchronize(bare.stream), "waiting");
    leave();
    return ok;
}
