/* Declines every host. */
#include <tenon/plugin.h>

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    host->fail(host, TN_ABI, "this driver wants a host with rotor support");
    return NULL;
}
