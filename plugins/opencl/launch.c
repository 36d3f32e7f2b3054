/* Kernels are given their arguments and queued. */
#include "plugins/opencl/capture.h"
#include "plugins/opencl/program.h"

#include <string.h>

/* A driver allocates for each argument that is set; most calls are the one before over again. A
 * handle may come back with another allocation behind it: after memory was freed all are set. */
static cl_int set_arguments(tn_stream_impl *stream, gpu_kernel *k, const gpu_launch *l) {
    uint64_t n_freed = atomic_load(&stream->device->n_freed);
    bool known = k->n_freed == n_freed;
    cl_int error = CL_SUCCESS;
    cl_uint n = 0;
    k->n_freed = n_freed;
    for (; n < l->n_memory && error == CL_SUCCESS; n++) {
        cl_mem memory = ocl_mem(l->memory[n]);
        if (known && k->memory[n] == memory)
            continue;
        error = clSetKernelArg(k->kernel, n, sizeof memory, &memory);
        k->memory[n] = memory;
    }
    if (l->may_fail && error == CL_SUCCESS)
        error = clSetKernelArg(k->kernel, n++, sizeof stream->error_word, &stream->error_word);
    if (error == CL_SUCCESS && !(known && k->parameter_bytes == l->parameter_bytes &&
                                 memcmp(k->parameters, l->parameters, k->parameter_bytes) == 0)) {
        error = clSetKernelArg(k->kernel, n, l->parameter_bytes, l->parameters);
        k->parameter_bytes = l->parameter_bytes;
        memcpy(k->parameters, l->parameters, l->parameter_bytes);
    }
    if (error != CL_SUCCESS)
        k->n_freed = UINT64_MAX; /* nothing is known */
    return error;
}

/* The caller locks the stream. */
static cl_int enqueue(tn_stream_impl *stream, gpu_kernel *k, const gpu_launch *l) {
    size_t global[3], local[3];
    for (int d = 0; d < 3; d++) {
        local[d] = l->local[d] ? l->local[d] : 1;
        global[d] = (l->groups[d] ? l->groups[d] : 1) * local[d];
    }
    cl_uint dims = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
    pthread_mutex_lock(&k->lock);
    cl_int error = set_arguments(stream, k, l);
    if (error == CL_SUCCESS)
        error = clEnqueueNDRangeKernel(stream->queue, k->kernel, dims, NULL, global, local, 0, NULL,
                                       NULL);
    pthread_mutex_unlock(&k->lock);
    if (l->may_fail)
        atomic_store(&stream->may_fail, true);
    if (error == CL_SUCCESS && k->program->saved == OCL_NOT_LAUNCHED) {
        k->program->saved = OCL_LAUNCHED;
        atomic_store(&stream->device->has_unsaved, true);
    }
    return error;
}

typedef struct launch_command {
    ocl_command command;
    gpu_kernel *kernel;
    gpu_launch launch;
    unsigned char parameters[];
} launch_command;

static cl_int enqueue_command(tn_stream_impl *stream, const ocl_command *command) {
    const launch_command *c = (const launch_command *)command;
    return enqueue(stream, c->kernel, &c->launch);
}

/* NULL was told to the host. */
static ocl_command *make_command(tn_stream_impl *stream, gpu_kernel *k, const gpu_launch *l) {
    launch_command *c =
        ocl_host_alloc(stream->device->self, sizeof *c + l->parameter_bytes, "a captured kernel");
    if (!c)
        return NULL;
    *c = (launch_command){.command.queue = enqueue_command, .kernel = k, .launch = *l};
    memcpy(c->parameters, l->parameters, l->parameter_bytes);
    c->launch.parameters = c->parameters;
    return &c->command;
}

static tn_status launch(tn_stream_impl *stream, gpu_kernel *k, const gpu_launch *l) {
    static const char what[] = "launching a kernel";
    tn_device_impl *device = stream->device;
    if (ocl_is_lost(device))
        return ocl_check_lost(device);
    if (ocl_is_capturing(stream))
        return ocl_record(stream, make_command(stream, k, l), what);
    pthread_mutex_lock(&stream->lock);
    cl_int error = enqueue(stream, k, l);
    pthread_mutex_unlock(&stream->lock);
    return ocl_queued(stream, error, what);
}

const gpu_driver ocl_driver = {
    .build = ocl_kernel_build,
    .release = ocl_kernel_release,
    .launch = launch,
};
