/* The parts of a call, each alone: the dispatcher's hop, a kernel call into a plugin, the caching
 * allocator. Links the library's objects, since none of this is public. */
#include "bench/tenon.h"
#include "core/memory/allocator.h"
#include "core/call/call.h"

#include <stdio.h>

/* ---- the hop ----------------------------------------------------------------------------- */

static tn_status answer(const tn_op *op, tn_keyset keys, const tn_cell *args, tn_cell *rets,
                        void *user) {
    return TN_OK;
}

/* From the arguments' keys to the handler, through the row, and back. */
static double hop(uint64_t n) {
    static tn_op *op;
    static tn_tensor *x;
    if (!op) {
        tn_registration *definition;
        op = tn_op_define("bench::hop(Tensor x) -> ()", "bench", &definition);
        if (!op || !tn_handler_register(op, TN_KEY_BACKEND, NULL, answer, NULL, "bench"))
            return -1;
        x = tn_keep(tn_empty(TN_SHAPE(1), TN_F32, bench_device));
    }
    tn_cell args[1] = {{.tag = TN_CELL_TENSOR, .v.pointer = x}}, rets[1];
    const tn_op *called = op;
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        BENCH_OPAQUE(called);
        if (tni_call(called, args, rets) != TN_OK)
            return -1;
    }
    return bench_seconds(start);
}

/* ---- a kernel that does nothing ---------------------------------------------------------- */

static double boxed(uint64_t n) {
    static tn_tensor *x;
    if (!x) {
        if (tn_plugin_load(BENCH_PLUGIN) != TN_OK)
            return -1;
        tn_device device = tn_device_parse("bench:0");
        x = device.type ? tn_keep(tn_empty(TN_SHAPE(1), TN_F32, device)) : NULL;
        if (!x)
            return -1;
    }
    const tn_cell args[2] = {{.tag = TN_CELL_TENSOR, .v.view = &x->view},
                             {.tag = TN_CELL_TENSOR, .v.view = &x->view}};
    const tn_tensor_view *outs[1] = {&x->view};
    tni_device *device = x->device;
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        BENCH_OPAQUE(device);
        const tni_kernel_table *table =
            atomic_load_explicit(&device->kernels.table, memory_order_acquire);
        const tni_kernel *kernel = tni_kernel_lookup(table, TNI_KERNEL_add, TN_F32);
        if (tni_invoke(device, kernel, "bench", args, 2, outs, 1) != TN_OK)
            return -1;
    }
    return bench_seconds(start);
}

/* ---- the allocator ----------------------------------------------------------------------- */

static double allocate(uint64_t n) {
    tni_device *device = tni_device_get(bench_device);
    double start = bench_now();
    for (uint64_t i = 0; i < n; i++) {
        BENCH_OPAQUE(device);
        tni_block *block = tni_block_alloc(device, tni_stream_current(device), 4);
        if (!block)
            return -1;
        BENCH_OPAQUE(block);
        tni_block_free(block);
    }
    return bench_seconds(start);
}

static const bench_row rows[] = {
    {"hop", "dispatcher hop: arguments' keys, row, handler", "ns", .run = hop},
    {"boxed", "boxed kernel call through a plugin", "ns", .run = boxed},
    {"allocator", "caching allocator hit, alloc and free", "ns", .run = allocate},
};

int main(int argc, char **argv) {
    return bench_tenon_main("internals", rows, sizeof rows / sizeof rows[0], argc, argv);
}
