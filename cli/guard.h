/* Commands that load plugins, and survive what these do.
 *
 * A plugin may end the process, or never come back, as soon as its file is opened. So each is opened in
 * a process of its own first; one that does not come through is listed as failed, with how it went. Then
 * the command runs, with the others, in a process of its own, too. */
#ifndef TNI_CLI_GUARD_H
#define TNI_CLI_GUARD_H

#include "cli/cli.h"

/* Runs `command` so, in which all plugins that can be are started; with `devices` their devices open.
 * Returns its exit code. */
int run_with_plugins(const options *o, int (*command)(const options *o), bool devices);

#endif
