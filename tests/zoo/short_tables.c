/* Tables of an earlier minor: each ends behind its last required member, and the page after that
 * cannot be read. */
#define _GNU_SOURCE
#include <tenon/plugin.h>

#include <string.h>
#include <sys/mman.h>

#define THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

static const void *before_guard_page(const void *table, size_t size) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    char *at = pages + 4096 - size;
    memcpy(at, table, size);
    memcpy(at, &(uint64_t){size}, 8);
    return at;
}

static const void *short_plugin;

#define ZOO_BREAK \
    if (!short_plugin) { \
        kernel_list[0] = before_guard_page(&kernels[0], THROUGH(tn_kernel, run)); \
        device_ops.memory = before_guard_page(&memory_ops, THROUGH(tn_memory_ops, fill)); \
        plugin.devices = before_guard_page(&device_ops, THROUGH(tn_device_ops, memory)); \
        short_plugin = before_guard_page(&plugin, THROUGH(tn_plugin, n_kernels)); \
    } \
    return short_plugin;
#include "tests/zoo/good.c"
