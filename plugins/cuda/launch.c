/* Kernels are given their arguments and queued. */
#include "plugins/cuda/capture.h"

/* `error_word` is for a kernel that may fail. */
static CUresult enqueue(tn_stream_impl *stream, gpu_kernel *k, const gpu_launch *l,
                        int32_t *error_word) {
    tn_memory memory[GPU_MAX_MEMORY];
    void *arguments[GPU_MAX_MEMORY + 2];
    unsigned n[6];
    uint32_t n_arguments = 0;
    for (; n_arguments < l->n_memory; n_arguments++) {
        memory[n_arguments] = l->memory[n_arguments];
        arguments[n_arguments] = &memory[n_arguments];
    }
    if (l->may_fail)
        arguments[n_arguments++] = &error_word;
    arguments[n_arguments] = (void *)(uintptr_t)l->parameters;
    for (int d = 0; d < 3; d++) {
        n[d] = l->groups[d] ? (unsigned)l->groups[d] : 1;
        n[3 + d] = l->local[d] ? (unsigned)l->local[d] : 1;
    }
    if (l->goes_on && n[0] > k->busy)
        n[0] = k->busy;
    return CUDA_CALL(stream->device, cuLaunchKernel, k->function, n[0], n[1], n[2], n[3], n[4],
                     n[5], 0, stream->stream, arguments, NULL);
}

/* One that reports to the stream, or to what is recorded of it. */
static CUresult enqueue_failing(tn_stream_impl *stream, gpu_kernel *k, const gpu_launch *l) {
    pthread_mutex_lock(&stream->lock); /* see take_error in stream.c */
    cuda_recording *r = atomic_load(&stream->recording);
    CUresult error = enqueue(stream, k, l, r ? r->error_word : stream->error_word);
    if (r)
        r->may_fail = true;
    else
        atomic_store(&stream->may_fail, true);
    pthread_mutex_unlock(&stream->lock);
    return error;
}

static tn_status launch(tn_stream_impl *stream, gpu_kernel *k, const gpu_launch *l) {
    if (cuda_is_lost(stream->device))
        return cuda_check_lost(stream->device);
    CUresult error = l->may_fail ? enqueue_failing(stream, k, l) : enqueue(stream, k, l, NULL);
    cuda_remember(stream, k);
    return error == CUDA_SUCCESS ? TN_OK : cuda_fail_driver(stream->device, error, k->name);
}

const gpu_driver cuda_gpu_driver = {
    .build = cuda_kernel_build,
    .release = cuda_kernel_release,
    .launch = launch,
};
