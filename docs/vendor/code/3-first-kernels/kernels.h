/* kernels.h: the list of kernels, from which plugin.c makes the table. Add a name here and a record
 * npu_kernel_<name> in a file. */
#ifndef NPU_KERNELS_H
#define NPU_KERNELS_H

#include <tenon/kernels.h>
#include <tenon/plugin.h>

#define NPU_KERNELS(X) \
    X(copy) \
    X(fill) \
    X(add) \
    X(sum) \
    X(bmm)

#define NPU_KERNEL_DECLARE(name) extern const tn_kernel npu_kernel_##name;
NPU_KERNELS(NPU_KERNEL_DECLARE)
#undef NPU_KERNEL_DECLARE

/* The members of a record that all kernels here share: they compute in f32, and each `compute`
 * function becomes a task. */
#define NPU_RECORD(name, compute) \
    .struct_size = sizeof(tn_kernel), .op = TN_KERNEL_##name, \
    .schema_hash = TN_KERNEL_HASH_##name, .dtypes = {TN_DTYPE_BIT(TN_F32)}, \
    .user = (void *)(compute), .run = npu_launch

#endif /* NPU_KERNELS_H */
