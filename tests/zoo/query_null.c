/* Declines every host. */
#include <tenon/plugin.h>

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    host->fail(host, TN_ERR_ABI, "this driver wants a host with rotor support");
    return NULL;
}
