/* kernels.h: the list of kernels, from which plugin.cpp makes the table. Each has a record
 * kernel_<name> in kernels.cpp. */
#ifndef NPU_KERNELS_H
#define NPU_KERNELS_H

#include <tenon/kernels.h>
#include <tenon/plugin.hpp>

#define NPU_KERNELS(X) \
    X(copy) \
    X(fill) \
    X(add) \
    X(sum)

namespace npu {

#define NPU_KERNEL_DECLARE(name) extern const tn_kernel kernel_##name;
NPU_KERNELS(NPU_KERNEL_DECLARE)
#undef NPU_KERNEL_DECLARE

} // namespace npu

#endif /* NPU_KERNELS_H */
