/* Kernels are given their arguments and queued. */
#include "plugins/opencl/program.h"

#include <string.h>

/* A driver allocates for each argument that is set; most calls are the one before over again. A
 * handle may come back with another allocation behind it: after memory was freed all are set. */
static cl_int set_arguments(tn_pstream *stream, const gpu_launch *l) {
    gpu_kernel *k = l->kernel;
    struct ocl_arguments *now = k->arguments;
    uint64_t n_freed = atomic_load(&stream->device->n_freed);
    bool known = now->n_freed == n_freed;
    cl_int error = CL_SUCCESS;
    cl_uint n = 0;
    now->n_freed = n_freed;
    for (; n < l->n_memory && error == CL_SUCCESS; n++) {
        cl_mem memory = ocl_mem(l->memory[n]);
        if (known && now->memory[n] == memory)
            continue;
        error = clSetKernelArg(k->kernel, n, sizeof memory, &memory);
        now->memory[n] = memory;
    }
    if (l->may_fail && error == CL_SUCCESS)
        error = clSetKernelArg(k->kernel, n++, sizeof stream->error_word, &stream->error_word);
    if (error == CL_SUCCESS && !(known && now->bytes == l->parameter_bytes &&
                                 memcmp(now->parameters, l->parameters, now->bytes) == 0)) {
        error = clSetKernelArg(k->kernel, n, l->parameter_bytes, l->parameters);
        now->bytes = l->parameter_bytes;
        memcpy(now->parameters, l->parameters, l->parameter_bytes);
    }
    if (error != CL_SUCCESS)
        now->n_freed = UINT64_MAX; /* nothing is known */
    return error;
}

tn_status gpu_launch_on(tn_pstream *stream, const gpu_launch *l) {
    size_t global[3], local[3];
    tn_status status = ocl_check_lost(stream->device);
    if (status != TN_OK)
        return status;
    for (int d = 0; d < 3; d++) {
        local[d] = l->local[d] ? l->local[d] : 1;
        global[d] = (l->groups[d] ? l->groups[d] : 1) * local[d];
    }
    cl_uint dims = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
    if (l->may_fail) /* see take_error in stream.c */
        pthread_mutex_lock(&stream->lock);
    pthread_mutex_lock(&l->kernel->lock);
    cl_int error = set_arguments(stream, l);
    if (error == CL_SUCCESS)
        error = clEnqueueNDRangeKernel(stream->queue, l->kernel->kernel, dims, NULL, global, local,
                                       0, NULL, NULL);
    pthread_mutex_unlock(&l->kernel->lock);
    if (l->may_fail) {
        atomic_store(&stream->may_fail, true);
        pthread_mutex_unlock(&stream->lock);
    }
    if (error != CL_SUCCESS)
        return ocl_fail_driver(stream->device, error, "launching a kernel");
    if (l->kernel->program->saved == OCL_NOT_LAUNCHED)
        ocl_program_launched(stream->device, l->kernel->program);
    ocl_stream_queued(stream);
    return TN_OK;
}
