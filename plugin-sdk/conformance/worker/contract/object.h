/* The dynamic symbols of a shared object, read from its file. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_OBJECT_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_OBJECT_H

#include <stdbool.h>

#include "plugin-sdk/conformance/case.h"

/* Called for each: `defined` ones are exported. */
typedef void (*tc_symbol_fn)(void *context, const char *name, bool defined);

/* False with `why` where the file is no object of 64 bits whose table can be read. */
bool tc_object_symbols(const char *path, tc_symbol_fn each, void *context, char why[TC_MESSAGE]);

#endif
