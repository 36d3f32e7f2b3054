/* kernels.c: what the device computes. One record for each kernel operator of tenon/kernels.h; with
 * those of the small set every operator of Tenon runs on the device. */
#include "kernels.h"
#include "internal.h"

static tn_status add(const tn_call *call) {
    return yourtype_not_yet(call->device->self, "kernel add",
                            "in kernels.c, compute out = self + alpha * other", "TNP-69");
}

/* No flags: the core hands over contiguous tensors of one dtype and one shape. */
const tn_kernel yourtype_kernel_add = {
    .struct_size = sizeof yourtype_kernel_add,
    .op = TN_KERNEL_add,
    .schema_hash = TN_KERNEL_HASH_add,
    .dtypes = {TN_DTYPE_BIT(TN_F32)},
    .run = add,
};

/* Answer TN_OK for a kernel that works. Until then the core looks elsewhere for the operator: to
 * its decomposition, or to the CPU if TENON_FALLBACK allows it. */
tn_status yourtype_accepts(tn_device_impl *device, const tn_kernel *kernel) {
    return yourtype_not_yet(device->self, "tn_device_ops.accepts",
                            "in kernels.c, write the kernel add, then answer TN_OK for it",
                            "TNP-36");
}
