/* kernels.h: the list of kernels, from which plugin.c makes the table. Add a name here and a record
 * yourtype_kernel_<name> in a file. */
#ifndef YOURTYPE_KERNELS_H
#define YOURTYPE_KERNELS_H

#include <tenon/kernels.h>
#include <tenon/plugin.h>

#define YOURTYPE_KERNELS(X) X(add)

#define YOURTYPE_KERNEL_DECLARE(name) extern const tn_kernel yourtype_kernel_##name;
YOURTYPE_KERNELS(YOURTYPE_KERNEL_DECLARE)
#undef YOURTYPE_KERNEL_DECLARE

#endif /* YOURTYPE_KERNELS_H */
