/* init fails, and says why. */
#define ZOO_INIT \
    return host->fail(host, TN_ERR_IO, "the firmware zebra.bin is missing; install zebra-fw");
#include "tests/zoo/good.c"
