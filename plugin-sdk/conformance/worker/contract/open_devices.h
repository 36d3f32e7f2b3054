/* All devices of a plugin at once. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_OPEN_DEVICES_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_OPEN_DEVICES_H

#include "plugin-sdk/conformance/worker/contract/buffers.h"

enum { TC_MOST_DEVICES = 8 };

/* The worker's own is among them, as a copy of the case's subject. */
typedef struct tc_devices {
    tc_contract *k;
    uint32_t n;
    tc_subject at[TC_MOST_DEVICES];
} tc_devices;

/* False where the plugin has one device, or the case has failed; close them either way. */
bool tc_devices_open(tc_contract *k, tc_devices *out);

/* Closes those that were opened, and what the case still has of them. */
void tc_devices_close(tc_devices *all);

#endif
