/* program.h: what device code is built with. */
#ifndef TENON_OPENCL_PROGRAM_H
#define TENON_OPENCL_PROGRAM_H

#include "opencl.h"

/* The table of what was built, on device->programs. */
tn_status ocl_programs_create(tn_pdevice *device);
void ocl_programs_destroy(tn_pdevice *device);

/* Keeps what was built and launched since the last time in the cache. To be called when launches
 * are known to be over: before its first launch a binary may hold no code of the device. */
void ocl_programs_save(tn_pdevice *device);

#endif /* TENON_OPENCL_PROGRAM_H */
