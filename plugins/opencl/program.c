/* program.c: device code, built for a device when a call first needs it, and launched. */
#include "program.h"

#include <stdio.h>
#include <string.h>

/* ---- what was built ---- */

enum { TABLE = 4096 }; /* variants of a device; more than there are operators, dtypes and forms */

struct gpu_kernel {
    _Atomic uint64_t key; /* 0: free */
    pthread_mutex_t lock; /* arguments belong to the kernel object, not to a launch */
    cl_program program;
    cl_kernel kernel;
};

struct ocl_programs {
    pthread_mutex_t lock; /* taken to build */
    gpu_kernel entries[TABLE];
};

tn_status ocl_programs_create(tn_pdevice *device) {
    struct ocl_programs *p = ocl_host_alloc(device->self, sizeof *p, "the table of programs");
    if (!p)
        return TN_OUT_OF_MEMORY;
    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    device->programs = p;
    return TN_OK;
}

void ocl_programs_destroy(tn_pdevice *device) {
    struct ocl_programs *p = device->programs;
    if (!p)
        return;
    for (int i = 0; i < TABLE; i++)
        if (p->entries[i].key) {
            clReleaseKernel(p->entries[i].kernel);
            clReleaseProgram(p->entries[i].program);
            pthread_mutex_destroy(&p->entries[i].lock);
        }
    pthread_mutex_destroy(&p->lock);
    device->self->host->free(p);
}

/* Where `key` is, or would be. Keys are not 0: they are stored less one bit pattern. */
static gpu_kernel *slot_of(struct ocl_programs *p, uint64_t key) {
    uint64_t at = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 52;
    for (int i = 0; i < TABLE; i++, at = (at + 1) % TABLE) {
        const uint64_t there = atomic_load_explicit(&p->entries[at].key, memory_order_acquire);
        if (there == 0 || there == key)
            return &p->entries[at];
    }
    return NULL;
}

static const uint64_t USED = UINT64_C(1) << 63;

gpu_kernel *gpu_kernel_find(tn_pdevice *device, uint64_t key) {
    gpu_kernel *k = slot_of(device->programs, key | USED);
    return k && atomic_load_explicit(&k->key, memory_order_acquire) ? k : NULL;
}

/* ---- building ---- */

/* The first line of the build log that names an error. */
static void find_error(tn_pdevice *device, cl_program program, char out[160]) {
    char log[16384];
    size_t n = 0;
    out[0] = '\0';
    if (clGetProgramBuildInfo(program, device->found->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                              &n) != CL_SUCCESS)
        return;
    log[n < sizeof log ? n : sizeof log - 1] = '\0';
    const char *at = strstr(log, "error");
    while (at && at > log && at[-1] != '\n')
        at--;
    if (!at)
        at = log;
    snprintf(out, 160, "%.*s", (int)strcspn(at, "\n"), at);
}

static tn_status build(tn_pdevice *device, const gpu_variant *v, gpu_kernel *out) {
    const struct ocl_found *found = device->found;
    char options[GPU_OPTIONS + 128];
    cl_int error;
    tn_status status = TN_OK;
    snprintf(options, sizeof options, "%s -DHAS_F64=%d%s", v->options, found->traits.has_f64,
             found->divides_exactly ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    out->program = clCreateProgramWithSource(device->context, 1, (const char **)&v->source->text,
                                             NULL, &error);
    if (!out->program)
        return ocl_fail_driver(device, error, "creating a program");
    error = clBuildProgram(out->program, 1, &found->id, options, NULL, NULL);
    if (error == CL_SUCCESS)
        out->kernel = clCreateKernel(out->program, v->entry, &error);
    if (error != CL_SUCCESS) {
        char line[160];
        find_error(device, out->program, line);
        status = ocl_fail(device->self, TN_INTERNAL,
                          "opencl:%u (%s): %s (%.120s) does not build: %s%s%s", device->index,
                          found->name, v->source->name, v->options, ocl_error_name(error),
                          line[0] ? ": " : "", line);
        clReleaseProgram(out->program);
    }
    return status;
}

tn_status gpu_kernel_build(tn_pdevice *device, uint64_t key, const gpu_variant *variant,
                           gpu_kernel **out) {
    struct ocl_programs *p = device->programs;
    struct ocl_guard guard;
    tn_status status = TN_OK;
    pthread_mutex_lock(&p->lock);
    gpu_kernel *k = slot_of(p, key | USED);
    if (!k) {
        status = ocl_fail(device->self, TN_INTERNAL, "opencl:%u has built %d kernels, and no more "
                                                     "can be kept", device->index, TABLE);
    } else if (atomic_load(&k->key) == 0) {
        ocl_guard_enter(&guard);
        status = build(device, variant, k);
        ocl_guard_leave(&guard);
        if (status == TN_OK) {
            pthread_mutex_init(&k->lock, NULL);
            atomic_store_explicit(&k->key, key | USED, memory_order_release);
        }
    }
    pthread_mutex_unlock(&p->lock);
    *out = k;
    return status;
}

/* ---- launching ---- */

tn_status gpu_launch_on(tn_pstream *stream, const gpu_launch *l) {
    cl_kernel kernel = l->kernel->kernel;
    size_t global[3], local[3];
    cl_uint n = 0;
    cl_int error = CL_SUCCESS;
    for (int d = 0; d < 3; d++) {
        local[d] = l->local[d] ? l->local[d] : 1;
        global[d] = (l->groups[d] ? l->groups[d] : 1) * local[d];
    }
    const cl_uint dims = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
    if (l->may_fail) /* see take_error in stream.c */
        pthread_mutex_lock(&stream->lock);
    pthread_mutex_lock(&l->kernel->lock);
    for (; n < l->n_memory && error == CL_SUCCESS; n++) {
        const cl_mem memory = ocl_mem(l->memory[n]);
        error = clSetKernelArg(kernel, n, sizeof memory, &memory);
    }
    if (l->may_fail && error == CL_SUCCESS)
        error = clSetKernelArg(kernel, n++, sizeof stream->error_word, &stream->error_word);
    if (error == CL_SUCCESS)
        error = clSetKernelArg(kernel, n, l->parameter_bytes, l->parameters);
    if (error == CL_SUCCESS)
        error = clEnqueueNDRangeKernel(stream->queue, kernel, dims, NULL, global, local, 0, NULL,
                                       NULL);
    pthread_mutex_unlock(&l->kernel->lock);
    if (l->may_fail) {
        atomic_store(&stream->may_fail, true);
        pthread_mutex_unlock(&stream->lock);
    }
    if (error != CL_SUCCESS)
        return ocl_fail_driver(stream->device, error, "launching a kernel");
    ocl_stream_queued(stream);
    return TN_OK;
}

tn_status gpu_fail(tn_pdevice *device, tn_status status, const char *format, ...) {
    char message[OCL_MESSAGE];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return ocl_fail(device->self, status, "%s", message);
}
