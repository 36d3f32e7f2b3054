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

/* What identifies a program. `name` is found from the rest by ocl_cache_name. */
struct ocl_cache_key {
    const struct ocl_found *device;
    const char *source, *options;
    uint64_t name;
};

/* Finds self->cache. Once, in init. */
void ocl_cache_find(tn_pself *self);

/* Are the device's programs kept? */
bool ocl_cache_serves(const tn_pdevice *device);

void ocl_cache_name(struct ocl_cache_key *key);

/* The binary kept for `key`, from host->alloc, or NULL. [any-thread] */
unsigned char *ocl_cache_load(const tn_pself *self, const struct ocl_cache_key *key,
                              uint64_t *out_bytes);

/* Keeps it. [any-thread] */
void ocl_cache_save(const tn_pself *self, const struct ocl_cache_key *key,
                    const unsigned char *binary, uint64_t bytes);

#endif /* TNI_PLUGINS_OPENCL_CACHE_H */
