/* See rig.h. */
#include "tests/cuda/rig.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <tenon/kernels.h>
#include <unistd.h>

enum { SKIPPED = 77, N = 1000, WORDS = 512 };

const char *rig_plugin, *rig_driver, *rig_nvrtc, *rig_cache;

static char said[WORDS];
static uint64_t alive[DOUBLE_KINDS], abandoned[DOUBLE_KINDS];
static int64_t outstanding;

static const char *const kinds[DOUBLE_KINDS] = {
    [DOUBLE_CONTEXT] = "contexts",
    [DOUBLE_STREAM] = "streams",
    [DOUBLE_EVENT] = "events",
    [DOUBLE_MODULE] = "modules",
    [DOUBLE_GRAPH] = "graphs",
    [DOUBLE_GRAPH_EXEC] = "executable graphs",
    [DOUBLE_DEVICE_MEMORY] = "pieces of device memory",
    [DOUBLE_PINNED_MEMORY] = "pieces of pinned memory",
};

void rig_say(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(said, sizeof said, format, list);
    va_end(list);
    if (!double_configure(said))
        fail_msg("the double does not understand '%s'", said);
}

/* ---- what is left ------------------------------------------------------------------------ */

void rig_forget(void) {
    for (int i = 0; i < DOUBLE_KINDS; i++) {
        alive[i] = double_alive((double_kind)i);
        abandoned[i] = double_abandoned((double_kind)i);
    }
    outstanding = mini_outstanding();
}

int rig_setup(void **state) {
    rig_say("fail= fault= lose= delay=0ns");
    rig_forget();
    return 0;
}

int rig_teardown(void **state) {
    int n_left = 0, depth;
    double_let_go();
    rig_say("fail= fault= lose= delay=0ns");
    for (int i = 0; i < DOUBLE_KINDS; i++) {
        uint64_t left = double_alive((double_kind)i) - alive[i],
                 lost = double_abandoned((double_kind)i) - abandoned[i];
        if (left || lost)
            print_error("%lld %s are left, and %lld were when their context went\n",
                        (long long)left, kinds[i], (long long)lost);
        n_left += left || lost;
    }
    if (mini_outstanding() != outstanding)
        print_error("%lld pieces of host memory are left\n",
                    (long long)(mini_outstanding() - outstanding));
    n_left += mini_outstanding() != outstanding;
    if (double_current(&depth) || depth) {
        print_error("the thread is left with a current context\n");
        n_left++;
    }
    return n_left ? -1 : 0;
}

/* ---- time -------------------------------------------------------------------------------- */

static void on_alarm(int number) {
    static const char text[] = "nothing happens any more; said to the double: ";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0 ||
        write(STDERR_FILENO, said, strlen(said)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        _exit(3);
    abort();
}

void rig_watch(unsigned seconds) {
    signal(SIGALRM, on_alarm);
    alarm(seconds);
}

void rig_rest(void) {
    alarm(0);
}

/* ---- work -------------------------------------------------------------------------------- */

void rig_open(mini *m) {
    if (!mini_open(m, rig_plugin, 0))
        fail_msg("%s", mini_error());
}

CUcontext rig_context(CUdevice device) {
    CUcontext context = NULL;
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
#if CUDA_VERSION >= 13000
    assert_int_equal(cuCtxCreate(&context, NULL, 0, device), CUDA_SUCCESS);
#else
    assert_int_equal(cuCtxCreate(&context, 0, device), CUDA_SUCCESS);
#endif
    return context;
}

tn_memory rig_alloc(mini *m, uint64_t bytes) {
    tn_memory memory;
    void *host;
    assert_ok(mini_alloc(m->ops->memory, m->device, TN_SPACE_DEVICE, bytes, &memory, &host));
    return memory;
}

void rig_free(mini *m, tn_memory memory) {
    m->ops->memory->dealloc(m->device, TN_SPACE_DEVICE, memory);
}

static tn_tensor_view view_of(tn_memory memory, tn_dtype dtype, const int64_t *n) {
    static const int64_t one = 1;
    return (tn_tensor_view){.struct_size = sizeof(tn_tensor_view),
                            .memory = memory,
                            .numel = *n,
                            .dtype = dtype,
                            .rank = 1,
                            .sizes = n,
                            .strides = &one};
}

static tn_status call(mini *m, const char *op, tn_stream_impl *stream, const tn_cell *args,
                      uint32_t n_args, const tn_tensor_view *out) {
    const tn_kernel *kernel = mini_find(m, op, TN_F32, TN_DTYPE_NONE);
    tn_call c = {.struct_size = sizeof c,
                 .device = m->device,
                 .stream = stream,
                 .args = args,
                 .outs = &out,
                 .n_args = n_args,
                 .n_outs = 1};
    if (!kernel)
        return TN_ERR_NOT_FOUND;
    c.user = kernel->user;
    return kernel->run(&c);
}

tn_status rig_negate(mini *m, tn_stream_impl *stream, tn_memory in, tn_memory out, int64_t n) {
    tn_tensor_view self = view_of(in, TN_F32, &n), result = view_of(out, TN_F32, &n);
    const tn_cell args[] = {{.tag = TN_CELL_TENSOR, .v.view = &self}};
    return call(m, "neg", stream, args, 1, &result);
}

tn_status rig_select(mini *m, tn_stream_impl *stream, tn_memory in, tn_memory index, tn_memory out,
                     int64_t n) {
    tn_tensor_view self = view_of(in, TN_F32, &n), which = view_of(index, TN_I64, &n),
                   result = view_of(out, TN_F32, &n);
    const tn_cell args[] = {
        [TN_ARG_index_select_self] = {.tag = TN_CELL_TENSOR, .v.view = &self},
        [TN_ARG_index_select_dim] = {.tag = TN_CELL_I64},
        [TN_ARG_index_select_index] = {.tag = TN_CELL_TENSOR, .v.view = &which},
    };
    return call(m, "index_select", stream, args, 3, &result);
}

static tn_status work(mini *m, mini_tensor *in, mini_tensor *out) {
    static float numbers[N], results[N];
    for (int i = 0; i < N; i++)
        numbers[i] = (float)i;
    tn_status status = mini_tensor_write(m, in, numbers);
    if (status == TN_OK)
        status = rig_negate(m, m->stream, in->view.memory, out->view.memory, N);
    if (status == TN_OK)
        status = mini_tensor_read(m, out, results);
    if (status == TN_OK)
        status = mini_synchronize(m);
    for (int i = 0; status == TN_OK && i < N; i++)
        assert_true(results[i] == -(float)i);
    return status;
}

tn_status rig_work(mini *m) {
    int64_t size = N;
    mini_tensor *in = mini_tensor_create(m, TN_F32, 1, &size, NULL, 0);
    mini_tensor *out = mini_tensor_create(m, TN_F32, 1, &size, NULL, 0);
    return in && out ? work(m, in, out) : TN_ERR_OUT_OF_MEMORY;
}

/* ---- the program ------------------------------------------------------------------------- */

static bool has_compiler(const char *path) {
    int (*version)(int *, int *), major, minor;
    void *nvrtc = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!nvrtc)
        return false;
    *(void **)&version = dlsym(nvrtc, "nvrtcVersion");
    return version && version(&major, &minor) == 0;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        print_error("usage: %s PLUGIN DRIVER NVRTC CACHE\n", argv[0]);
        return 2;
    }
    if (!has_compiler(argv[3])) {
        printf("skipped: there is no NVRTC; it is a part of the CUDA Toolkit\n");
        return SKIPPED;
    }
    rig_plugin = argv[1];
    rig_driver = argv[2];
    rig_nvrtc = argv[3];
    rig_cache = argv[4];
    mini_option("driver", rig_driver);
    mini_option("nvrtc", rig_nvrtc);
    mini_option("cache", rig_cache);
    mini_option("cublaslt", "off");
    mini_option("cudnn", "off");
    return all_tests();
}
