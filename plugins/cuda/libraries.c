/* See libraries.h. */
#include "plugins/cuda/libraries.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- records ----------------------------------------------------------------------------- */

enum { MAX_RECORDS = 600 };

static const tn_kernel *records[MAX_RECORDS];
static uint64_t n_records;

static void add(const tn_kernel *record) {
    if (n_records < MAX_RECORDS)
        records[n_records++] = record;
}

static void collect(void) {
#define COLLECT(library) \
    for (uint32_t i = 0; i < cuda_family_##library.n_records; i++) \
        add(&cuda_family_##library.records[i]);
    CUDA_LIBRARIES(COLLECT)
#undef COLLECT
    uint64_t n;
    const tn_kernel *const *shared = gpu_records(&n);
    for (uint64_t i = 0; i < n; i++)
        add(shared[i]);
}

const tn_kernel *const *cuda_records(uint64_t *out_n) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, collect);
    *out_n = n_records;
    return records;
}

/* ---- a device's libraries ---------------------------------------------------------------- */

tn_status cuda_libraries_create(tn_device_impl *device) {
#define CREATE(library) \
    device->libraries.library = cuda_##library##_create(device); \
    if (!device->libraries.library) \
        return TN_ERR_OUT_OF_MEMORY;
    CUDA_LIBRARIES(CREATE)
#undef CREATE
    return TN_OK;
}

void cuda_libraries_destroy(tn_device_impl *device) {
#define DESTROY(library) cuda_##library##_destroy(device->libraries.library);
    CUDA_LIBRARIES(DESTROY)
#undef DESTROY
}

bool cuda_tf32_allowed(const tn_instance *self) {
    const char *value = self->host->option(self->host, "tf32");
    return value && strcmp(value, "1") == 0;
}

/* ---- messages ---------------------------------------------------------------------------- */

void cuda_log(const tn_device_impl *device, tn_log_level level, const char *format, ...) {
    char line[CUDA_MESSAGE];
    int at = snprintf(line, sizeof line, "cuda:%u: ", device->index);
    va_list list;
    va_start(list, format);
    vsnprintf(line + at, sizeof line - (size_t)at, format, list);
    va_end(list);
    const tn_host *host = device->self->host;
    host->log_message(host, level, line);
}

tn_status cuda_library_failed(tn_stream_impl *stream, const char *what) {
    tn_device_impl *device = stream->device;
    CUresult error = CUDA_SUCCESS;
    if (!atomic_load(&stream->recording)) /* asking would end the capture */
        error = CUDA_CALL(device, cuStreamQuery, stream->stream);
    if (error != CUDA_SUCCESS && error != CUDA_ERROR_NOT_READY)
        return cuda_fail_driver(stream->device, error, what);
    return cuda_fail(device->self, TN_ERR_INTERNAL, "cuda:%u (%s): %s", device->index,
                     device->found->name, what);
}
