/* init returns a number that is no status. */
#define ZOO_INIT return -7;
#include "tests/zoo/good.c"
