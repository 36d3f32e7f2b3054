/* What all commands that start workers are asked: of which plugin, on which device, by which
 * programs. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_COMMANDS_WORKER_OPTIONS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_RUNNER_COMMANDS_WORKER_OPTIONS_H

#include <argp.h>

#include "plugin-sdk/conformance/runner/run/worker_pool.h"

/* --device, --timeout, --worker and --core-worker, for a command's argp to have as a child; its
 * input is a tc_worker_pool_options. */
extern const struct argp tc_worker_argp;

/* The value of an option as a number from `least` to `most`; ends the program where it is none. */
double tc_option_number(const struct argp_state *state, const char *name, const char *value,
                        double least, double most);
unsigned tc_option_whole(const struct argp_state *state, const char *name, const char *value,
                         unsigned least, unsigned most);

/* The indices, with commas between. Returns out. */
const char *tc_devices_text(const tc_worker_pool_options *options, char out[512]);

/* Replaces the plugin's path by its real path, and finds the programs that were not named. False
 * where that cannot be done; it was said on stderr, in the command's name. Once for a process. */
bool tc_find_workers(tc_worker_pool_options *options, const char *command);

/* tenon-conform-core: TENON_CONFORM_CORE, else where it was installed relative to this program;
 * NULL where there is none that can be executed. */
const char *tc_find_core_worker(void);
/* What TENON_CONFORM_TORCH names, else tenon-conform-torch of PATH; NULL where there is none. */
const char *tc_find_torch_worker(void);

#endif
