/* What the host is told when something fails: the driver's errors by name, and what each means for
 * the device. */
#include "plugins/cuda/cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tn_status cuda_fail(const tn_instance *self, tn_status status, const char *format, ...) {
    char message[CUDA_MESSAGE];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return self->host->fail(self->host, status, message);
}

/* What is not here is a mistake of ours: TN_ERR_INTERNAL. After those that mean DEVICE_LOST every
 * call in the context fails with the same again ("sticky"), whatever it was that went wrong. */
static const struct {
    CUresult error;
    tn_status status;
} meanings[] = {
    {CUDA_ERROR_INVALID_VALUE, TN_ERR_INVALID_ARGUMENT},
    {CUDA_ERROR_OUT_OF_MEMORY, TN_ERR_OUT_OF_MEMORY},
    {CUDA_ERROR_NO_DEVICE, TN_ERR_NOT_FOUND},
    {CUDA_ERROR_NOT_SUPPORTED, TN_ERR_UNSUPPORTED},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, TN_ERR_STATE},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, TN_ERR_STATE},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, TN_ERR_STATE},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, TN_ERR_STATE},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, TN_ERR_STATE},
    {CUDA_ERROR_DEINITIALIZED, TN_ERR_DEVICE_LOST}, /* the process is ending */
    {CUDA_ERROR_DEVICE_UNAVAILABLE, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_ECC_UNCORRECTABLE, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_ILLEGAL_ADDRESS, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_LAUNCH_TIMEOUT, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_ASSERT, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_MISALIGNED_ADDRESS, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_INVALID_PC, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_LAUNCH_FAILED, TN_ERR_DEVICE_LOST},
    {CUDA_ERROR_CONTAINED, TN_ERR_DEVICE_LOST},
};

static tn_status meaning_of(CUresult error) {
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].error == error)
            return meanings[i].status;
    return TN_ERR_INTERNAL;
}

tn_status cuda_check_lost(tn_device_impl *device) {
    return cuda_is_lost(device)
               ? cuda_fail(device->self, TN_ERR_DEVICE_LOST,
                           "cuda:%u (%s) is lost: an earlier call failed so that nothing works any "
                           "more; end the program",
                           device->index, device->found->name)
               : TN_OK;
}

/* `more` is appended. */
static tn_status fail(tn_device_impl *device, CUresult error, const char *what, const char *more) {
    if (cuda_is_lost(device))
        return cuda_check_lost(device);
    const char *name = NULL, *text = NULL;
    if (device->driver->cuGetErrorName(error, &name) != CUDA_SUCCESS || !name)
        name = "an unknown error";
    if (device->driver->cuGetErrorString(error, &text) != CUDA_SUCCESS || !text)
        text = "the driver does not say what it is";
    tn_status status = meaning_of(error);
    if (status == TN_ERR_DEVICE_LOST)
        atomic_store(&device->lost, true);
    return cuda_fail(device->self, status, "cuda:%u (%s): %s: %s (%d): %s%s%s", device->index,
                     device->found->name, what, name, (int)error, text, more,
                     status == TN_ERR_DEVICE_LOST
                         ? "; nothing works on the device any more: end the program"
                         : "");
}

tn_status cuda_fail_driver(tn_device_impl *device, CUresult error, const char *what) {
    return fail(device, error, what, "");
}

/* The latest first. */
static void name_recent(tn_stream_impl *stream, char *out, size_t room) {
    enum { NAMED = 4 };
    uint32_t n = atomic_load(&stream->n_recent);
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 1; i <= NAMED && i <= n && at < room; i++) {
        gpu_kernel *k = atomic_load(&stream->recent[(n - i) % CUDA_RECENT]);
        if (k)
            at += (size_t)snprintf(out + at, room - at, "%s%s (%.60s)",
                                   at ? ", " : "; launched last: ", k->name, k->options);
    }
}

/* All that the stream remembers, for who reads the log. */
static void log_recent(tn_stream_impl *stream) {
    const tn_host *host = stream->device->self->host;
    uint32_t n = atomic_load(&stream->n_recent);
    for (uint32_t i = 1; i <= CUDA_RECENT && i <= n; i++) {
        gpu_kernel *k = atomic_load(&stream->recent[(n - i) % CUDA_RECENT]);
        char line[CUDA_MESSAGE];
        snprintf(line, sizeof line, "cuda:%u: %u launches ago: %s %s", stream->device->index, i,
                 k ? k->name : "?", k ? k->options : "");
        host->log_message(host, TN_LOG_DEBUG, line);
    }
}

tn_status cuda_fail_stream(tn_stream_impl *stream, CUresult error, const char *what) {
    char recent[CUDA_MESSAGE / 2] = "";
    if (meaning_of(error) == TN_ERR_DEVICE_LOST && !cuda_is_lost(stream->device)) {
        name_recent(stream, recent, sizeof recent);
        log_recent(stream);
    }
    return fail(stream->device, error, what, recent);
}

tn_status cuda_fail_between(tn_stream_impl *stream, tn_device_impl *other, CUresult error,
                            const char *what) {
    tn_device_impl *device = stream->device;
    if (device != other && meaning_of(error) == TN_ERR_DEVICE_LOST && !cuda_is_lost(device)) {
        CUresult own = CUDA_CALL(device, cuStreamQuery, stream->stream);
        if (own == CUDA_SUCCESS || own == CUDA_ERROR_NOT_READY)
            return cuda_fail_driver(other, error, what);
    }
    return cuda_fail_stream(stream, error, what);
}
