/* Installed on a machine without its hardware. */
#define ZOO_COUNT return TN_OK;
#include "tests/zoo/good.c"
