/* What the host is told when something fails: the driver's errors by name, and what each means for
 * the device. */
#include "plugins/opencl/opencl.h"
#include "plugins/shared/text.h"

#include <stdarg.h>
#include <stdio.h>

tn_status ocl_fail(const tn_instance *self, tn_status status, const char *format, ...) {
    char message[OCL_MESSAGE];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    plugin_mend_text(message);
    return self->host->fail(self->host, status, message);
}

#define ERRORS(X) \
    X(CL_DEVICE_NOT_FOUND, NOT_FOUND) \
    X(CL_DEVICE_NOT_AVAILABLE, DEVICE_LOST) \
    X(CL_COMPILER_NOT_AVAILABLE, UNSUPPORTED) \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_MEMORY) \
    X(CL_OUT_OF_RESOURCES, OUT_OF_MEMORY) \
    X(CL_OUT_OF_HOST_MEMORY, OUT_OF_MEMORY) \
    X(CL_PROFILING_INFO_NOT_AVAILABLE, STATE) \
    X(CL_MEM_COPY_OVERLAP, INVALID_ARGUMENT) \
    X(CL_BUILD_PROGRAM_FAILURE, INTERNAL) \
    X(CL_MAP_FAILURE, OUT_OF_MEMORY) \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, DEVICE_LOST) \
    X(CL_INVALID_VALUE, INVALID_ARGUMENT) \
    X(CL_INVALID_DEVICE, DEVICE_LOST) \
    X(CL_INVALID_CONTEXT, DEVICE_LOST) \
    X(CL_INVALID_QUEUE_PROPERTIES, UNSUPPORTED) \
    X(CL_INVALID_COMMAND_QUEUE, DEVICE_LOST) \
    X(CL_INVALID_MEM_OBJECT, INVALID_ARGUMENT) \
    X(CL_INVALID_BINARY, INTERNAL) \
    X(CL_INVALID_BUILD_OPTIONS, INTERNAL) \
    X(CL_INVALID_PROGRAM_EXECUTABLE, INTERNAL) \
    X(CL_INVALID_KERNEL_NAME, INTERNAL) \
    X(CL_INVALID_ARG_VALUE, INTERNAL) \
    X(CL_INVALID_ARG_SIZE, INTERNAL) \
    X(CL_INVALID_KERNEL_ARGS, INTERNAL) \
    X(CL_INVALID_WORK_DIMENSION, INTERNAL) \
    X(CL_INVALID_WORK_GROUP_SIZE, INTERNAL) \
    X(CL_INVALID_WORK_ITEM_SIZE, INTERNAL) \
    X(CL_INVALID_EVENT_WAIT_LIST, INTERNAL) \
    X(CL_INVALID_EVENT, INTERNAL) \
    X(CL_INVALID_OPERATION, UNSUPPORTED) \
    X(CL_INVALID_BUFFER_SIZE, OUT_OF_MEMORY)

static const struct {
    cl_int error;
    const char *name;
    tn_status status;
} errors[] = {
#define ERROR(name, status) {name, #name, TN_ERR_##status},
    ERRORS(ERROR)
#undef ERROR
};
enum { N_ERRORS = sizeof errors / sizeof errors[0] };

static int find_error(cl_int error) {
    int i = 0;
    while (i < N_ERRORS && errors[i].error != error)
        i++;
    return i;
}

const char *ocl_error_name(cl_int error) {
    int i = find_error(error);
    return i < N_ERRORS ? errors[i].name : "an unknown error";
}

tn_status ocl_check_lost(tn_device_impl *device) {
    return ocl_is_lost(device)
               ? ocl_fail(device->self, TN_ERR_DEVICE_LOST,
                          "opencl:%u (%s) is lost: an earlier call failed so that nothing works "
                          "any more; close it and open it again, or end the program",
                          device->index, device->found->name)
               : TN_OK;
}

tn_status ocl_fail_driver(tn_device_impl *device, cl_int error, const char *what) {
    if (ocl_is_lost(device))
        return ocl_check_lost(device);
    int i = find_error(error);
    tn_status status = i < N_ERRORS ? errors[i].status : TN_ERR_INTERNAL;
    if (status == TN_ERR_DEVICE_LOST)
        atomic_store(&device->lost, true);
    return ocl_fail(device->self, status, "opencl:%u (%s): %s: %s (%d)%s", device->index,
                    device->found->name, what, ocl_error_name(error), error,
                    status == TN_ERR_DEVICE_LOST
                        ? "; the driver has lost the device: end the program, "
                          "and look at the system's log"
                        : "");
}
