/* A struct_size that no compiler gives: packed, or garbage. */
#define ZOO_BREAK device_ops.struct_size = sizeof device_ops - 4;
#include "tests/zoo/good.c"
