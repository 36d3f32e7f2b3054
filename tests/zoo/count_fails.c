/* The driver does not start. */
#define ZOO_COUNT \
    return plain_host->fail(plain_host, TN_ERR_DEVICE, \
                            "the kernel driver zoo.ko is not loaded; modprobe zoo");
#include "tests/zoo/good.c"
