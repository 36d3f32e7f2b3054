/* Modules: PTX, or what stands for a cubin, if the device can run it; their functions, and what those
 * take of a device. */
#include "tests/cuda/double/inside.h"
#include "tests/cuda/double/cubin.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- images ------------------------------------------------------------------------------ */

/* Does code that was made for `made_for` run here? PTX does on all that came later. */
static bool fits(architecture made_for, bool ptx) {
    int here = 10 * driver.settings.major + driver.settings.minor;
    if (made_for.letter == 'a')
        return made_for.number == here;
    return made_for.number <= here &&
           ((ptx && !made_for.letter) || made_for.number / 10 == driver.settings.major);
}

/* The version of PTX that came with the driver's CUDA: 7.8 with 11.8, 8.0 with 12.0, 9.0 with 13.0. */
static bool knows_version(const char *ptx) {
    int major = 0, minor = 0;
    const char *at = strstr(ptx, ".version");
    if (!at || sscanf(at, ".version %d.%d", &major, &minor) != 2)
        return true; /* the reader of PTX says what is wrong */
    int cuda_major = driver.settings.version / 1000,
        cuda_minor = driver.settings.version % 1000 / 10;
    int known_major = cuda_major - 4;
    /* No 12.7 was made. */
    int known_minor = cuda_minor > 7 && cuda_major == 12 ? cuda_minor - 1 : cuda_minor;
    return major < known_major || (major == known_major && minor <= known_minor);
}

static CUresult read_text(const char *ptx, bool from_cubin, ptx_module **out, char *message) {
    architecture made_for;
    if (!strstr(ptx, ".version")) {
        snprintf(message, MAX_TEXT, "neither PTX nor a cubin that the double knows");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (!from_cubin && !knows_version(ptx)) {
        snprintf(message, MAX_TEXT, "PTX of a version that a driver %d does not know",
                 driver.settings.version);
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    if (!from_cubin && architecture_of(ptx, &made_for) && !fits(made_for, true)) {
        snprintf(message, MAX_TEXT, "PTX for sm_%d, on a device of %d.%d", made_for.number,
                 driver.settings.major, driver.settings.minor);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    *out = ptx_module_create(ptx, message, MAX_TEXT);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

/* Leaves *out NULL for what is not read. */
static CUresult read_image(const void *image, ptx_module **out, char *message) {
    *out = NULL;
    if (driver.settings.no_kernels && memcmp(image, ELFMAG, SELFMAG) == 0)
        return CUDA_SUCCESS;
    if (!cubin_is(image))
        return read_text(image, false, out, message);
    architecture made_for;
    char *text = cubin_read(image, &made_for);
    if (!text) {
        snprintf(message, MAX_TEXT, "a damaged cubin");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    CUresult error = CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (fits(made_for, false))
        error = read_text(text, true, out, message);
    else
        snprintf(message, MAX_TEXT, "a cubin for sm_%d, on a device of %d.%d", made_for.number,
                 driver.settings.major, driver.settings.minor);
    free(text);
    return error;
}

/* ---- modules ----------------------------------------------------------------------------- */

void module_drop(module *m) {
    if (--m->references)
        return;
    ptx_module_destroy(m->code);
    free(m);
}

void module_unload(module *m) {
    m->unloaded = true;
    for (entry *f = m->functions; f;) {
        entry *next = f->next;
        object_finish(&f->head);
        free(f->name);
        free(f);
        f = next;
    }
    m->functions = NULL;
    object_finish(&m->head);
    module_drop(m);
}

/* Writes what went wrong where the options want it. */
static void write_log(unsigned n, CUjit_option *options, void **values, const char *message) {
    char *buffer = NULL;
    size_t room = 0;
    int size_at = -1;
    for (unsigned i = 0; i < n; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            buffer = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            room = (unsigned)(uintptr_t)values[i];
            size_at = (int)i;
        }
    }
    if (!buffer || !room)
        return;
    snprintf(buffer, room, "%s", message);
    values[size_at] = (void *)(uintptr_t)strlen(buffer); // NOLINT(performance-no-int-to-ptr)
}

static CUresult load(function_name function, CUmodule *out, const void *image, unsigned n,
                     CUjit_option *options, void **values) {
    context *c;
    CUresult error = enter(function, NEEDS_ALL | UNSAFE, &c);
    if (error)
        return error;
    if (!out || !image || (n && (!options || !values)))
        return leave(CUDA_ERROR_INVALID_VALUE);
    ptx_module *code = NULL;
    char message[MAX_TEXT] = "";
    error = read_image(image, &code, message);
    write_log(n, options, values, message);
    if (error) {
        talk("a module: %s", message);
        return leave(error);
    }
    module *m = take(1, sizeof(*m));
    object_init(&m->head, DOUBLE_MODULE, c);
    m->references = 1;
    m->code = code;
    *out = object_handle(&m->head);
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *out, const void *image) {
    return load(CALL_cuModuleLoadData, out, image, 0, NULL, NULL);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n,
                                    CUjit_option *options, void **values) {
    return load(CALL_cuModuleLoadDataEx, out, image, n, options, values);
}

CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
    context *c;
    CUresult error = enter(CALL_cuModuleUnload, NEEDS_INIT | NEEDS_CONTEXT | UNSAFE, &c);
    if (error)
        return error;
    module *m = object_find(handle, DOUBLE_MODULE);
    if (!m)
        return leave(c->error ? c->error : CUDA_ERROR_INVALID_HANDLE);
    driver.n_waits++;
    context_wait(m->head.context);
    if (object_find(handle, DOUBLE_MODULE) != m) /* another thread was faster */
        return leave(CUDA_ERROR_INVALID_HANDLE);
    error = m->head.context->error;
    module_unload(m);
    return leave(error);
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
    context *c;
    CUresult error = enter(CALL_cuModuleGetFunction, NEEDS_ALL, &c);
    if (error)
        return error;
    module *m = object_find(handle, DOUBLE_MODULE);
    if (!m)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!out || !name)
        return leave(CUDA_ERROR_INVALID_VALUE);
    entry *f = m->functions;
    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    const ptx_kernel *kernel = f ? f->kernel : m->code ? ptx_module_kernel(m->code, name) : NULL;
    if (!kernel && m->code)
        return leave(CUDA_ERROR_NOT_FOUND);
    if (!f) {
        f = take(1, sizeof(*f));
        object_init(&f->head, OBJECT_FUNCTION, m->head.context);
        f->module = m;
        f->kernel = kernel;
        f->facts = kernel ? ptx_kernel_facts(kernel) : (ptx_facts){.max_threads = 1024};
        uint32_t plain = (uint32_t)device_limits().shared_per_block;
        f->max_dynamic_shared = plain > f->facts.shared_bytes ? plain - f->facts.shared_bytes : 0;
        f->name = take(strlen(name) + 1, 1);
        strcpy(f->name, name);
        f->next = m->functions;
        m->functions = f;
    }
    *out = object_handle(&f->head);
    return leave(CUDA_SUCCESS);
}

/* ---- functions --------------------------------------------------------------------------- */

enum { REGISTERS = 32 }; /* of a thread, which PTX does not tell */

CUresult CUDAAPI cuFuncGetAttribute(int *out, CUfunction_attribute asked, CUfunction handle) {
    context *c;
    CUresult error = enter(CALL_cuFuncGetAttribute, NEEDS_ALL, &c);
    if (error)
        return error;
    entry *f = object_find(handle, OBJECT_FUNCTION);
    if (!f)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!out)
        return leave(CUDA_ERROR_INVALID_VALUE);
    switch ((int)asked) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *out = (int)f->facts.max_threads;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *out = (int)f->facts.shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *out = (int)f->facts.local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *out = REGISTERS;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *out = 10 * driver.settings.major + driver.settings.minor;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out = (int)f->max_dynamic_shared;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        *out = 0;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *out = -1;
        break;
    default:
        return leave(CUDA_ERROR_INVALID_VALUE);
    }
    return leave(CUDA_SUCCESS);
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute asked, int value) {
    context *c;
    CUresult error = enter(CALL_cuFuncSetAttribute, NEEDS_ALL, &c);
    if (error)
        return error;
    entry *f = object_find(handle, OBJECT_FUNCTION);
    if (!f)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (asked == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return leave(value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    if (asked != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > device_limits().shared_optin - (int)f->facts.shared_bytes)
        return leave(CUDA_ERROR_INVALID_VALUE);
    f->max_dynamic_shared = (uint32_t)value;
    return leave(CUDA_SUCCESS);
}

static int least(int a, int b) {
    return a < b ? a : b;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction handle,
                                                             int threads, size_t dynamic) {
    context *c;
    CUresult error = enter(CALL_cuOccupancyMaxActiveBlocksPerMultiprocessor, NEEDS_ALL, &c);
    if (error)
        return error;
    entry *f = object_find(handle, OBJECT_FUNCTION);
    if (!f)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!out || threads < 1)
        return leave(CUDA_ERROR_INVALID_VALUE);
    limits l = device_limits();
    *out = 0;
    if (threads > (int)f->facts.max_threads || dynamic > f->max_dynamic_shared)
        return leave(CUDA_SUCCESS);
    int rounded = (threads + 31) / 32 * 32;
    int n = least(l.blocks_per_sm, l.threads_per_sm / rounded);
    n = least(n, 65536 / (rounded * REGISTERS));
    int shared = (int)(f->facts.shared_bytes + dynamic) + l.shared_reserved;
    *out = shared ? least(n, l.shared_per_sm / shared) : n;
    return leave(CUDA_SUCCESS);
}
