/* Allocates, logs and asks for an extension in init, all of which is allowed. */
#define ZOO_INIT \
    void *p = host->alloc(100, 256); \
    if (!p) \
        return host->fail(TN_OUT_OF_MEMORY, "no memory for the cage"); \
    host->free(p); \
    host->log(NULL, TN_LOG_INFO, "the cage is open"); \
    return host->extension("org.tenon.none/1") ? TN_INTERNAL : TN_OK;
#include "tests/zoo/good.c"
