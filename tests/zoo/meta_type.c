/* Claims the name of a backend that is the core's own. */
#define ZOO_TYPE "meta"
#include "tests/zoo/good.c"
