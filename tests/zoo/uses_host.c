/* Allocates, logs and asks for an extension in init, all of which is allowed. */
#define ZOO_INIT \
    void *p = host->alloc(host, 100, 256); \
    if (!p) \
        return host->fail(host, TN_ERR_OUT_OF_MEMORY, "no memory for the cage"); \
    host->dealloc(host, p); \
    host->log_message(host, TN_LOG_INFO, "the cage is open"); \
    return host->extension(host, "org.tenon.none/1") ? TN_ERR_INTERNAL : TN_OK;
#include "tests/zoo/good.c"
