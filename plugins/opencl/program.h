/* program.h: what device code is built with. */
#ifndef TENON_OPENCL_PROGRAM_H
#define TENON_OPENCL_PROGRAM_H

#include "opencl.h"

/* The table of what was built, on device->programs. */
tn_status ocl_programs_create(tn_pdevice *device);
void ocl_programs_destroy(tn_pdevice *device);

/* Keeps what was built and launched since the last time in the cache. To be called when launches
 * are known to be over, and when the device is closed, `at_end`: a driver that keeps programs
 * itself (ocl_found) makes code at a kernel's first launch, and when it is asked for a program
 * makes all that is missing, once: so it is asked last. */
void ocl_programs_save(tn_pdevice *device, bool at_end);

#endif /* TENON_OPENCL_PROGRAM_H */
