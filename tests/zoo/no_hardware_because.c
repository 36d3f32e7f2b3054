/* Installed on a machine without its hardware, and says why there is none. */
#define ZOO_COUNT \
    plain_host->fail(plain_host, TN_ERR_NOT_FOUND, "no slot holds a zoo card; plug one in"); \
    return TN_OK;
#include "tests/zoo/good.c"
