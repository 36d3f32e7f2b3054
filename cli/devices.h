/* Opening every device there is, for the commands that tell of them. */
#ifndef TNI_CLI_DEVICES_H
#define TNI_CLI_DEVICES_H

#include <tenon/device.h>

/* `device` is {0, 0}, with a standing error, when it could not be opened. */
typedef void (*device_fn)(const char *name, tn_device device, const char *plugin, void *user);

void for_each_device(device_fn fn, void *user);

#endif
