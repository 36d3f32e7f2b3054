/* Needs a newer host than this one. */
#define ZOO_BREAK plugin.abi_required = TN_ABI_MAKE(TN_ABI_MAJOR, TN_ABI_MINOR + 1);
#include "tests/zoo/good.c"
