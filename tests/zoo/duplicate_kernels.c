/* Two records that would both answer for add on f32. */
#define ZOO_BREAK kernels[1].dtypes[0] |= TN_DTYPE_BIT(TN_F32);
#include "tests/zoo/good.c"
