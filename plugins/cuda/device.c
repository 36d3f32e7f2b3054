/* What each device is like, opening and closing one, and its context on a thread. */
#include "plugins/cuda/libraries.h"

#include <stdio.h>

/* ---- contexts ---------------------------------------------------------------------------- */

cuda_scope cuda_enter(tn_device_impl *device) {
    const cuda_driver *d = device->driver;
    cuda_scope scope = {.driver = d};
    /* Not knowing what is current, it is pushed. */
    if (d->cuCtxGetCurrent(&scope.before) != CUDA_SUCCESS || scope.before != device->context) {
        scope.error = d->cuCtxPushCurrent_v2(device->context);
        scope.is_pushed = scope.error == CUDA_SUCCESS;
    }
    return scope;
}

void cuda_leave(const cuda_scope *scope) {
    CUcontext popped;
    if (scope->is_pushed && scope->driver->cuCtxPopCurrent_v2(&popped) != CUDA_SUCCESS)
        scope->driver->cuCtxSetCurrent(scope->before);
}

/* ---- finding ----------------------------------------------------------------------------- */

static tn_status count(tn_instance *self, uint32_t *out_count) {
    *out_count = 0;
    PLUGIN_TRY(cuda_search(self));
    *out_count = self->n_found;
    if (self->n_found == 0)
        cuda_fail(self, TN_ERR_NOT_FOUND, "%s", self->reason);
    return TN_OK;
}

static tn_status find(tn_instance *self, uint32_t index, const cuda_found **out) {
    PLUGIN_TRY(cuda_search(self));
    if (index >= self->n_found)
        return cuda_fail(
            self, TN_ERR_DEVICE,
            "there is no cuda:%u, %u devices can be used; `tenon devices` lists them%s%s", index,
            self->n_found, self->reason[0] ? ": " : "", self->reason);
    *out = &self->found[index];
    return TN_OK;
}

/* ---- open and close ---------------------------------------------------------------------- */

static void finish(tn_device_impl *device) {
    cuda_libraries_destroy(device);
    gpu_device_finish(&device->gpu);
    cuda_programs_destroy(device);
    if (device->context)
        device->driver->cuDevicePrimaryCtxRelease_v2(device->found->id);
    pthread_mutex_destroy(&device->streams_lock);
    device->self->host->dealloc(device->self->host, device);
}

static tn_status open_device(tn_instance *self, uint32_t index, tn_device_impl **out_device) {
    const cuda_found *found = NULL;
    *out_device = NULL;
    tn_status status = find(self, index, &found);
    if (status != TN_OK)
        return status;
    tn_device_impl *device = cuda_host_alloc(self, sizeof *device, "a device");
    if (!device)
        return TN_ERR_OUT_OF_MEMORY;
    *device =
        (tn_device_impl){.self = self, .driver = &self->driver, .index = index, .found = found};
    pthread_mutex_init(&device->streams_lock, NULL);
    CUresult error = self->driver.cuDevicePrimaryCtxRetain(&device->context, found->id);
    if (error != CUDA_SUCCESS) {
        device->context = NULL;
        status = cuda_fail_driver(device, error, "creating a context");
    }
    if (status == TN_OK)
        status = gpu_device_init(&device->gpu, self->host, &cuda_gpu_driver, &found->traits);
    if (status == TN_OK)
        status = cuda_programs_create(device);
    if (status == TN_OK)
        status = cuda_libraries_create(device);
    if (status != TN_OK) {
        finish(device);
        return status;
    }
    *out_device = device;
    return TN_OK;
}

/* Streams, events and memory were released before. */
static void close_device(tn_device_impl *device) {
    const tn_host *host = device->self->host;
    int64_t n = atomic_load(&device->n_allocations);
    if (n) {
        char line[CUDA_MESSAGE];
        snprintf(line, sizeof line, "cuda:%u is closed with %lld allocations alive", device->index,
                 (long long)n);
        host->log_message(host, TN_LOG_ERROR, line);
    }
    finish(device);
}

/* ---- properties -------------------------------------------------------------------------- */

static tn_status property(tn_instance *self, uint32_t index, int32_t name, tn_cell *out_value) {
    const cuda_found *found = NULL;
    PLUGIN_TRY(find(self, index, &found));
    switch (name) {
    case TN_PROP_NAME:
        *out_value = (tn_cell){.tag = TN_CELL_STRING, .v.string = found->name};
        return TN_OK;
    case TN_PROP_ALIGNMENT:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = CUDA_ALIGNMENT};
        return TN_OK;
    case TN_PROP_COMPUTE_UNITS:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = found->traits.compute_units};
        return TN_OK;
    case TN_PROP_SPACES:
        *out_value =
            (tn_cell){.tag = TN_CELL_I64, .v.i64 = 1 << TN_SPACE_DEVICE | 1 << TN_SPACE_PINNED};
        return TN_OK;
    case TN_PROP_DRIVER_VERSION:
        *out_value = (tn_cell){.tag = TN_CELL_STRING, .v.string = self->driver_text};
        return TN_OK;
    default: /* no fail(): "the default holds" is an answer */
        return TN_ERR_UNSUPPORTED;
    }
}

const tn_device_ops cuda_device_ops = {
    .struct_size = sizeof cuda_device_ops,
    .count = count,
    .open = open_device,
    .close = close_device,
    .property = property,
    .memory = &cuda_memory_ops,
    .streams = &cuda_stream_ops,
    .events = &cuda_event_ops,
};
