/* Was built against another schema of add. */
#define ZOO_BREAK kernels[1].schema_hash ^= 1;
#include "tests/zoo/good.c"
