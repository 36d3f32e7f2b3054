/* kernels.cpp: what the device computes. One record for each kernel operator of tenon/kernels.h; with
 * those of the small set every operator of Tenon runs on the device. */
#include "kernels.h"
#include "internal.h"

namespace yourtype {

static void add(const tn_call *call) {
    not_yet(host_of(call->device), "kernel add",
            "in kernels.cpp, compute out = self + alpha * other", "TNP-69");
}

/* No flags: the core hands over contiguous tensors of one dtype and one shape. */
constexpr tn_kernel kernel_add =
    tenon::kernel(TN_KERNEL_add, TN_KERNEL_HASH_add).dtypes(tenon::dtype_set<float>).run<add>();

/* Answer TN_OK for a kernel that works. Until then the core looks elsewhere for the operator: to
 * its decomposition, or to the CPU if TENON_FALLBACK allows it. */
tn_status accepts(tn_device_impl *device, const tn_kernel *kernel) {
    not_yet(host_of(device), "tn_device_ops.accepts",
            "in kernels.cpp, write the kernel add, then answer TN_OK for it", "TNP-36");
}

} // namespace yourtype
