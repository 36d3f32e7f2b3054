/* Tables of a later minor: longer than this core knows, with flags it does not know. */
#include <tenon/plugin.h>

static struct {
    tn_plugin table;
    void *later[4];
} longer_plugin;
static struct {
    tn_memory_ops table;
    void *later[4];
} longer_memory;

#define ZOO_BREAK \
    longer_memory.table = memory_ops; \
    longer_memory.table.struct_size = sizeof longer_memory; \
    device_ops.memory = &longer_memory.table; \
    kernels[0].flags = 1u << 30; \
    plugin.flags = (uint64_t)1 << 60; \
    longer_plugin.table = plugin; \
    longer_plugin.table.struct_size = sizeof longer_plugin; \
    return &longer_plugin.table;
#include "tests/zoo/good.c"
