/* Built programs on disk, so that the next process need not build them.
 *
 * A folder of files, one for each program: $XDG_CACHE_HOME/tenon/TYPE, or ~/.cache/tenon/TYPE, or what
 * the plugin's option `cache` (TENON_TYPE_CACHE) says; `off` there is none. A file says whose it is
 * (what the plugin says of its device, options, source) and the hash of what it holds; one that does
 * not say exactly what is expected is as good as absent, and never handed to a driver. It is written
 * under another name and moved into place, so that processes do not see each other's halves.
 * A folder of somebody else, or one that everyone may write to, is not used. Whatever fails, programs are
 * built. */
#ifndef TNI_PLUGINS_SHARED_GPU_CACHE_H
#define TNI_PLUGINS_SHARED_GPU_CACHE_H

#include <stdbool.h>
#include <tenon/plugin.h>

enum { GPU_CACHE_PATH = 1024 };

typedef struct gpu_cache {
    const tn_host *host;
    char folder[GPU_CACHE_PATH]; /* or "": nothing is kept */
    bool is_named;               /* by the option */
} gpu_cache;

/* A program: what built it (device, driver, versions: a line or several), from what, how. */
typedef struct gpu_cache_key {
    const char *builder, *options, *source;
} gpu_cache_key;

/* Finds the folder. Once, in init. */
void gpu_cache_init(gpu_cache *cache, const tn_host *host, const char *device_type);

/* What is kept under `key`, from host->alloc, or NULL. [any-thread] */
unsigned char *gpu_cache_load(const gpu_cache *cache, const gpu_cache_key *key,
                              uint64_t *out_bytes);

/* Keeps it. [any-thread] */
void gpu_cache_save(const gpu_cache *cache, const gpu_cache_key *key, const unsigned char *binary,
                    uint64_t bytes);

#endif
