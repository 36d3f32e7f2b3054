/* A device type that users could not write. */
#define ZOO_TYPE "Zoo-1"
#include "tests/zoo/good.c"
