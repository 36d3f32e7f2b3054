/* Built against an older minor, which before 1.0 does not fit. */
#define ZOO_BREAK \
    plugin.abi_version = TN_ABI_MAKE(0, 8); \
    plugin.abi_required = TN_ABI_MAKE(0, 8);
#include "tests/zoo/good.c"
