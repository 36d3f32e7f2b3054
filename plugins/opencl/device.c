/* What each device is like, opening and closing one. */
#include "plugins/opencl/program.h"
#include "plugins/shared/gpu/gpu.h"

#include <stdio.h>

static tn_status count(tn_instance *self, uint32_t *out_count) {
    *out_count = 0;
    PLUGIN_TRY(ocl_search(self));
    *out_count = self->n_found;
    if (self->n_found == 0)
        ocl_fail(self, TN_ERR_NOT_FOUND, "%s", self->reason);
    return TN_OK;
}

static tn_status find(tn_instance *self, uint32_t index, const ocl_found **out) {
    PLUGIN_TRY(ocl_search(self));
    if (index >= self->n_found)
        return ocl_fail(self, TN_ERR_DEVICE,
                        "there is no opencl:%u, %u devices can be used; `tenon devices` lists "
                        "them%s%s",
                        index, self->n_found, self->n_found ? "" : ": ",
                        self->n_found ? "" : self->reason);
    *out = &self->found[index];
    return TN_OK;
}

/* ---- open and close ---------------------------------------------------------------------- */

static void finish(tn_device_impl *device) {
    gpu_device_finish(&device->gpu);
    ocl_programs_destroy(device);
    if (device->transfers)
        clReleaseCommandQueue(device->transfers);
    if (device->context)
        clReleaseContext(device->context);
    pthread_mutex_destroy(&device->lock);
    device->self->host->dealloc(device->self->host, device);
}

static tn_status open_device(tn_instance *self, uint32_t index, tn_device_impl **out_device) {
    const ocl_found *found = NULL;
    *out_device = NULL;
    tn_status status = find(self, index, &found);
    if (status != TN_OK)
        return status;
    tn_device_impl *device = ocl_host_alloc(self, sizeof *device, "a device");
    if (!device)
        return TN_ERR_OUT_OF_MEMORY;
    *device = (tn_device_impl){.self = self, .index = index, .found = found};
    pthread_mutex_init(&device->lock, NULL);
    ocl_guard guard;
    ocl_guard_enter(&guard);
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)found->platform, 0};
    cl_int error;
    device->context = clCreateContext(properties, 1, &found->id, NULL, NULL, &error);
    if (device->context)
        device->transfers = clCreateCommandQueue(device->context, found->id, 0, &error);
    ocl_guard_leave(&guard);
    if (!device->transfers) {
        status = ocl_fail_driver(device, error,
                                 device->context ? "creating a queue" : "creating a context");
        finish(device);
        return status;
    }
    status = gpu_device_init(&device->gpu, self->host, &ocl_driver, &found->traits);
    if (status == TN_OK)
        status = ocl_programs_create(device);
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
    if (device->used_bytes || device->pinned) {
        uint32_t n_pinned = 0;
        char line[OCL_MESSAGE];
        for (ocl_pinned *p = device->pinned, *next; p; p = next, n_pinned++) {
            next = p->next;
            host->dealloc(host, p);
        }
        snprintf(line, sizeof line,
                 "opencl:%u is closed with %llu bytes and %u pinned blocks alive", device->index,
                 (unsigned long long)device->used_bytes, n_pinned);
        host->log_message(host, TN_LOG_ERROR, line);
    }
    if (!device->lost)
        ocl_programs_save(device, true);
    finish(device);
}

/* ---- properties -------------------------------------------------------------------------- */

static uint64_t dtypes_of(const ocl_found *found) {
    return found->traits.has_f64 ? TN_DTYPES_ALL : TN_DTYPES_ALL & ~TN_DTYPE_BIT(TN_F64);
}

static tn_status property(tn_instance *self, uint32_t index, int32_t name, tn_cell *out_value) {
    const ocl_found *found = NULL;
    PLUGIN_TRY(find(self, index, &found));
    switch (name) {
    case TN_PROP_NAME:
        *out_value = (tn_cell){.tag = TN_CELL_STRING, .v.string = found->name};
        return TN_OK;
    case TN_PROP_ALIGNMENT:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)found->alignment};
        return TN_OK;
    case TN_PROP_MAX_ALLOCATION:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)found->max_allocation};
        return TN_OK;
    case TN_PROP_COMPUTE_UNITS:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = found->traits.compute_units};
        return TN_OK;
    case TN_PROP_DTYPES:
        *out_value = (tn_cell){.tag = TN_CELL_I64, .v.i64 = (int64_t)dtypes_of(found)};
        return TN_OK;
    case TN_PROP_SPACES:
        *out_value =
            (tn_cell){.tag = TN_CELL_I64, .v.i64 = 1 << TN_SPACE_DEVICE | 1 << TN_SPACE_PINNED};
        return TN_OK;
    case TN_PROP_FLUSHES_SUBNORMALS: /* those of f16 are normal numbers of f32 */
        *out_value =
            (tn_cell){.tag = TN_CELL_I64,
                      .v.i64 = found->has_subnormals
                                   ? 0
                                   : (int64_t)(TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_BF16))};
        return TN_OK;
    case TN_PROP_DRIVER_VERSION:
        if (!*found->driver)
            return TN_ERR_UNSUPPORTED;
        *out_value = (tn_cell){.tag = TN_CELL_STRING, .v.string = found->driver};
        return TN_OK;
    default: /* no fail(): "the default holds" is an answer */
        return TN_ERR_UNSUPPORTED;
    }
}

static tn_status accepts(tn_device_impl *device, const tn_kernel *kernel) {
    return gpu_needs_f64(kernel) && !device->found->traits.has_f64 ? TN_ERR_UNSUPPORTED : TN_OK;
}

const tn_device_ops ocl_device_ops = {
    .struct_size = sizeof ocl_device_ops,
    .count = count,
    .open = open_device,
    .close = close_device,
    .property = property,
    .accepts = accepts,
    .memory = &ocl_memory_ops,
    .streams = &ocl_stream_ops,
    .events = &ocl_event_ops,
};
