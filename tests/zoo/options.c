/* Starts only with the option `stripes` set to 7. */
#define ZOO_INIT \
    const char *stripes = host->option(host, "stripes"); \
    host->log_message(host, TN_LOG_INFO, "starting"); \
    return stripes && strcmp(stripes, "7") == 0 \
               ? TN_OK \
               : host->fail(host, TN_ERR_INVALID_ARGUMENT, "option stripes must be 7");
#include "tests/zoo/good.c"
