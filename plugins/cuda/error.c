/* What the host is told when something fails: the driver's errors by name, and what each means for
 * the device. */
#include "plugins/cuda/cuda.h"
#include "plugins/shared/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tn_status cuda_fail(const tn_instance *self, tn_status status, const char *format, ...) {
    char message[CUDA_MESSAGE];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    plugin_mend_text(message);
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

/* ---- what was launched last -------------------------------------------------------------- */

/* On the device's `index`th stream that launched something: `most` of it, the latest first, and of the
 * options of each so many characters. False: there is no such stream. */
static bool name_launches(tn_device_impl *device, uint32_t index, uint32_t most, int characters,
                          char *out, size_t room) {
    size_t at = 0;
    out[0] = '\0';
    pthread_mutex_lock(&device->streams_lock);
    tn_stream_impl *s = device->streams;
    while (s && (atomic_load(&s->n_recent) == 0 || index-- > 0))
        s = s->next;
    uint32_t n = s ? atomic_load(&s->n_recent) : 0;
    for (uint32_t i = 1; i <= most && i <= n && at < room; i++) {
        const gpu_kernel *k = atomic_load(&s->recent[(n - i) % CUDA_RECENT]);
        if (k)
            at += (size_t)snprintf(out + at, room - at, "%s%s%s%.*s", at ? ", " : "", k->name,
                                   k->options[0] ? " with " : "", characters, k->options);
    }
    pthread_mutex_unlock(&device->streams_lock);
    return s != NULL;
}

/* Which stream failed is not known: some of each in `out`, all that is remembered in the log. */
static void tell_launches(tn_device_impl *device, char *out, size_t room) {
    char names[CUDA_RECENT * 160], line[sizeof names + 64];
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; name_launches(device, i, CUDA_RECENT, 120, names, sizeof names); i++) {
        snprintf(line, sizeof line, "cuda:%u: launched last on a stream: %s", device->index, names);
        device->self->host->log_message(device->self->host, TN_LOG_DEBUG, line);
        name_launches(device, i, 4, 60, names, sizeof names);
        if (at < room)
            at += (size_t)snprintf(out + at, room - at, "; %s: %s",
                                   at ? "on another stream" : "launched last", names);
    }
}

/* ---- errors of the driver ---------------------------------------------------------------- */

tn_status cuda_fail_driver(tn_device_impl *device, CUresult error, const char *what) {
    char launches[CUDA_MESSAGE / 2] = "";
    if (cuda_is_lost(device))
        return cuda_check_lost(device);
    const char *name = NULL, *text = NULL;
    if (device->driver->cuGetErrorName(error, &name) != CUDA_SUCCESS || !name)
        name = "an unknown error";
    if (device->driver->cuGetErrorString(error, &text) != CUDA_SUCCESS || !text)
        text = "the driver does not say what it is";
    tn_status status = meaning_of(error);
    if (status == TN_ERR_DEVICE_LOST && !atomic_exchange(&device->lost, true))
        tell_launches(device, launches, sizeof launches);
    return cuda_fail(device->self, status, "cuda:%u (%s): %s: %s (%d): %s%s%s", device->index,
                     device->found->name, what, name, (int)error, text,
                     status == TN_ERR_DEVICE_LOST
                         ? "; nothing works on the device any more: end the program"
                         : "",
                     launches);
}

tn_status cuda_fail_between(tn_stream_impl *stream, tn_device_impl *other, CUresult error,
                            const char *what) {
    tn_device_impl *device = stream->device;
    if (device != other && meaning_of(error) == TN_ERR_DEVICE_LOST && !cuda_is_lost(device)) {
        CUresult own = CUDA_CALL(device, cuStreamQuery, stream->stream);
        if (own == CUDA_SUCCESS || own == CUDA_ERROR_NOT_READY)
            return cuda_fail_driver(other, error, what);
    }
    return cuda_fail_driver(device, error, what);
}
