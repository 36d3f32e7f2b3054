/* init fails without a word. */
#define ZOO_INIT return TN_ERR_DEVICE_LOST;
#include "tests/zoo/good.c"
