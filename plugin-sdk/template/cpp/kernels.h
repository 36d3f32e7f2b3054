/* kernels.h: the list of kernels, from which plugin.cpp makes the table. Add a name here and a record
 * kernel_<name> in a file. */
#ifndef YOURTYPE_KERNELS_H
#define YOURTYPE_KERNELS_H

#include <tenon/kernels.h>
#include <tenon/plugin.hpp>

#define YOURTYPE_KERNELS(X) X(add)

namespace yourtype {

#define YOURTYPE_KERNEL_DECLARE(name) extern const tn_kernel kernel_##name;
YOURTYPE_KERNELS(YOURTYPE_KERNEL_DECLARE)
#undef YOURTYPE_KERNEL_DECLARE

} // namespace yourtype

#endif /* YOURTYPE_KERNELS_H */
