/* What was built of device code. */
#ifndef TNI_PLUGINS_OPENCL_PROGRAM_H
#define TNI_PLUGINS_OPENCL_PROGRAM_H

#include "plugins/opencl/opencl.h"

enum { OCL_OPTIONS = 128 }; /* bytes of options that are the device's */

/* What the cache knows of a program. */
typedef enum ocl_saved { OCL_SAVED, OCL_NOT_LAUNCHED, OCL_LAUNCHED } ocl_saved;

/* Device code with options, which several kernels are made of. */
typedef struct ocl_program {
    struct ocl_program *next;
    cl_program program;
    const gpu_source *source;
    char options[GPU_OPTIONS + OCL_OPTIONS];
    bool is_loaded; /* from the cache */
    _Atomic ocl_saved saved;
} ocl_program;

struct gpu_kernel {
    cl_kernel kernel;
    ocl_program *program;
    pthread_mutex_t lock; /* guards what follows: arguments belong to the kernel, not to a launch */

    /* The arguments as they were set last, while no memory was freed since. */
    uint64_t n_freed;
    cl_mem memory[GPU_MAX_MEMORY];
    uint64_t parameter_bytes;
    unsigned char parameters[GPU_ARGUMENTS];
};

/* The programs of a device, on device->programs. */
tn_status ocl_programs_create(tn_device_impl *device);
void ocl_programs_destroy(tn_device_impl *device);

/* Keeps what was built and launched since the last time in the cache. To be called when launches
 * are known to be over, and when the device is closed, `at_end`: a driver that keeps programs
 * itself (ocl_found) makes code at a kernel's first launch, and when it is asked for a program
 * makes all that is missing, once: so it is asked last. */
void ocl_programs_save(tn_device_impl *device, bool at_end);

/* gpu_driver.build and .release. */
tn_status ocl_kernel_build(tn_device_impl *device, const gpu_variant *variant, gpu_kernel **out);
void ocl_kernel_release(tn_device_impl *device, gpu_kernel *kernel);

#endif
