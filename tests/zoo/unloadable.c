/* May be dlclosed after shutdown. */
#define ZOO_BREAK plugin.flags = TN_PLUGIN_UNLOADABLE;
#include "tests/zoo/good.c"
