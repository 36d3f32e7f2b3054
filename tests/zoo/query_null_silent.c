/* Declines every host and does not say why. */
#include <tenon/plugin.h>

const tn_plugin *TN_PLUGIN_QUERY(const tn_host *host) {
    return NULL;
}
