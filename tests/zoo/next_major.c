/* Speaks the next major version of the interface only. */
#define TN_PLUGIN_QUERY tenon_plugin_query_v2
#include "tests/zoo/good.c"
