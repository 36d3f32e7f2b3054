/* Its devices work on in a forked child. */
#define ZOO_BREAK plugin.flags = TN_PLUGIN_FORK_SAFE;
#include "tests/zoo/good.c"
