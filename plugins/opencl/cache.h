/* Built programs on disk, so that the next process need not build them.
 *
 * A folder of files, one for each program: $XDG_CACHE_HOME/tenon/opencl, or ~/.cache/tenon/opencl,
 * or what option `cache` (TENON_OPENCL_CACHE) says; `off` there is none. A driver that keeps
 * programs itself is left to it unless the option names a folder: PoCL, asked for a program,
 * compiles every kernel in it first, 0.1 s each. A file says whose it is (platform, device, driver,
 * source, options) and the hash of what it holds; one that does not say exactly what is expected is
 * as good as absent, and never handed to a driver. It is written under another name and moved into
 * place, so that processes do not see each other's halves. Whatever fails, programs are built. */
#ifndef TNI_PLUGINS_OPENCL_CACHE_H
#define TNI_PLUGINS_OPENCL_CACHE_H

#include "plugins/opencl/opencl.h"

/* Finds self->cache. Once, in init. */
void ocl_cache_find(tn_instance *self);

/* Are the device's programs kept? Else what follows is not called. */
bool ocl_cache_serves(const tn_device_impl *device);

/* The binary that is kept of a program, from host->alloc, or NULL. [any-thread] */
unsigned char *ocl_cache_load(const tn_device_impl *device, const char *source, const char *options,
                              uint64_t *out_bytes);

/* Keeps it. [any-thread] */
void ocl_cache_save(const tn_device_impl *device, const char *source, const char *options,
                    const unsigned char *binary, uint64_t bytes);

#endif
