/* init fails without a word. */
#define ZOO_INIT return TN_DEVICE_LOST;
#include "tests/zoo/good.c"
