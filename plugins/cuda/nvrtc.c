/* Device code becomes machine code, or PTX for a device that NVRTC is too old for. */
#include "plugins/cuda/nvrtc.h"

#include "plugins/cuda/cuda.h"
#include "plugins/shared/gpu/signals.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- the library ------------------------------------------------------------------------- */

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                    "/usr/local/cuda/lib64/libnvrtc.so", NULL};

static bool find_functions(cuda_nvrtc *n, char *reason, size_t room) {
#define FIND(function) \
    *(void **)&n->function = dlsym(n->library, #function); \
    if (!n->function) { \
        snprintf(reason, room, "it has no %s; version 12 or later is needed", #function); \
        return false; \
    }
    CUDA_NVRTC_FUNCTIONS(FIND)
#undef FIND
    return true;
}

/* The architectures that it knows, in rising order; at most `room`. */
static int list_architectures(const cuda_nvrtc *n, int *out, int room) {
    int known[256], count = 0;
    if (n->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count < 0 ||
        count > (int)(sizeof known / sizeof known[0]) ||
        n->nvrtcGetSupportedArchs(known) != NVRTC_SUCCESS)
        return 0;
    if (count > room)
        count = room;
    memcpy(out, known, (size_t)count * sizeof *out);
    return count;
}

const cuda_nvrtc *cuda_nvrtc_open(tn_instance *self) {
    char reason[CUDA_MESSAGE / 2] = "";
    pthread_mutex_lock(&self->nvrtc_lock);
    cuda_nvrtc *n = &self->nvrtc;
    if (!n->library) {
        n->library = cuda_library_open(self, "nvrtc", names, reason, sizeof reason);
        if (n->library && !find_functions(n, reason, sizeof reason)) {
            cuda_library_close(n->library);
            n->library = NULL;
        }
    }
    pthread_mutex_unlock(&self->nvrtc_lock);
    if (n->library)
        return n;
    cuda_fail(self, TN_ERR_NOT_FOUND,
              "kernels are compiled by NVRTC, which cannot be used: %s. It is part of the CUDA "
              "Toolkit, and a package of its own (nvidia-cuda-nvrtc)",
              reason);
    return NULL;
}

/* ---- compiling --------------------------------------------------------------------------- */

/* The architecture to compile for, and whether that is machine code; 0: none fits. Machine code runs
 * on devices of its major version that are not older. */
static int choose_architecture(const cuda_nvrtc *n, int major, int minor, bool *out_is_code) {
    int known[256], best = 0, count = list_architectures(n, known, 256);
    *out_is_code = false;
    for (int i = 0; i < count; i++)
        if (known[i] <= major * 10 + minor && known[i] > best)
            best = known[i];
    *out_is_code = best / 10 == major;
    return best;
}

/* The macros of `options`, and `text` behind them. */
static char *join(tn_instance *self, const char *options, const char *text) {
    uint64_t bytes = gpu_macros(options, NULL, 0);
    char *all = cuda_host_alloc(self, bytes + strlen(text), "a program's text");
    if (!all)
        return NULL;
    gpu_macros(options, all, bytes);
    memcpy(all + bytes - 1, text, strlen(text) + 1);
    return all;
}

/* The first line of the log that says what is wrong; all of it goes to the host's log. */
static void find_error(tn_instance *self, nvrtcProgram program, char out[200]) {
    const cuda_nvrtc *n = &self->nvrtc;
    size_t bytes = 0;
    out[0] = '\0';
    if (n->nvrtcGetProgramLogSize(program, &bytes) != NVRTC_SUCCESS || bytes < 2)
        return;
    char *log = self->host->alloc(self->host, bytes, 16);
    if (log && n->nvrtcGetProgramLog(program, log) == NVRTC_SUCCESS) {
        self->host->log_message(self->host, TN_LOG_DEBUG, log);
        const char *line = strstr(log, "error");
        while (line && line > log && line[-1] != '\n')
            line--;
        line = line ? line : log;
        snprintf(out, 200, "%.*s", (int)strcspn(line, "\n"), line);
    }
    self->host->dealloc(self->host, log);
}

static nvrtcResult take_image(tn_instance *self, nvrtcProgram program, bool is_code,
                              cuda_image *out) {
    const cuda_nvrtc *n = &self->nvrtc;
    size_t bytes = 0;
    nvrtcResult result =
        is_code ? n->nvrtcGetCUBINSize(program, &bytes) : n->nvrtcGetPTXSize(program, &bytes);
    if (result != NVRTC_SUCCESS)
        return result;
    char *data = bytes ? self->host->alloc(self->host, bytes, 64) : NULL;
    if (!data)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    result = is_code ? n->nvrtcGetCUBIN(program, data) : n->nvrtcGetPTX(program, data);
    if (result != NVRTC_SUCCESS) {
        self->host->dealloc(self->host, data);
        return result;
    }
    *out = (cuda_image){(unsigned char *)data, bytes};
    return NVRTC_SUCCESS;
}

tn_status cuda_nvrtc_compile(tn_instance *self, const char *name, const char *text,
                             const char *options, int major, int minor, cuda_image *out) {
    const cuda_nvrtc *n = cuda_nvrtc_open(self);
    char architecture[48], line[200] = "";
    bool is_code;
    *out = (cuda_image){0};
    if (!n)
        return TN_ERR_NOT_FOUND;
    int best = choose_architecture(n, major, minor, &is_code);
    if (best == 0)
        return cuda_fail(self, TN_ERR_UNSUPPORTED,
                         "this NVRTC compiles for no device of compute capability %d.%d; an older "
                         "one does (TENON_CUDA_NVRTC names it)",
                         major, minor);
    snprintf(architecture, sizeof architecture, "--gpu-architecture=%s_%d",
             is_code ? "sm" : "compute", best);
    /* Contraction only where FMA says so; what rounds correctly by default is said all the same. */
    const char *const list[] = {architecture,  "--std=c++17",     "--fmad=false",
                                "--ftz=false", "--prec-div=true", "--prec-sqrt=true"};
    char *all = join(self, options, text);
    if (!all)
        return TN_ERR_OUT_OF_MEMORY;
    nvrtcProgram program = NULL;
    gpu_signals_keep();
    nvrtcResult result = n->nvrtcCreateProgram(&program, all, name, 0, NULL, NULL);
    self->host->dealloc(self->host, all);
    if (result == NVRTC_SUCCESS)
        result = n->nvrtcCompileProgram(program, sizeof list / sizeof list[0], list);
    if (result == NVRTC_ERROR_COMPILATION)
        find_error(self, program, line);
    if (result == NVRTC_SUCCESS)
        result = take_image(self, program, is_code, out);
    if (program)
        n->nvrtcDestroyProgram(&program);
    gpu_signals_restore();
    if (result == NVRTC_SUCCESS)
        return TN_OK;
    return cuda_fail(
        self, result == NVRTC_ERROR_OUT_OF_MEMORY ? TN_ERR_OUT_OF_MEMORY : TN_ERR_INTERNAL,
        "NVRTC does not compile %s for %s: %s%s%s; with %.200s; TENON_LOG=debug shows its log",
        name, architecture + strlen("--gpu-architecture="), n->nvrtcGetErrorString(result),
        line[0] ? ": " : "", line, options);
}
