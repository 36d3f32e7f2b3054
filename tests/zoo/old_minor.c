/* Built against a minor that is no longer taken. */
#define ZOO_BREAK \
    plugin.abi_version = TN_ABI_MAKE(0, 8); \
    plugin.abi_required = TN_ABI_MAKE(0, 8);
#include "tests/zoo/good.c"
