/* program.h: what device code is built with. */
#ifndef TENON_OPENCL_PROGRAM_H
#define TENON_OPENCL_PROGRAM_H

#include "opencl.h"

/* The table of what was built, on device->programs. */
tn_status ocl_programs_create(tn_pdevice *device);
void ocl_programs_destroy(tn_pdevice *device);

#endif /* TENON_OPENCL_PROGRAM_H */
