/* A plugin that is linked into the program, under a query function of its own name. What its init
 * and count do is the test's choice. */
#define TN_PLUGIN_QUERY linked_query
#include <tenon/plugin.h>

#include "tests/loader/linked.h"

tn_status (*linked_init)(const tn_host *host);
tn_status (*linked_count)(uint32_t *out_count);
const tn_host *linked_host;

#define ZOO_INIT \
    linked_host = host; \
    return linked_init ? linked_init(host) : TN_OK;
#define ZOO_COUNT \
    *out_count = 2; \
    return linked_count ? linked_count(out_count) : TN_OK;
#define ZOO_ANIMAL "linked"
#define ZOO_TYPE "linked"
#include "tests/zoo/good.c"
