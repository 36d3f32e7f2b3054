/* A plugin that breaks one rule on demand, linked into the test.
 *
 * Two devices in host memory, with streams and events when `async` is set before it is registered.
 * Work is done at once; events and streams say so. `fault` names what it does wrong; NULL: nothing.
 * Its one kind of kernel, for `neg`, `add` and `where`, writes zeros; `prepare` asks for a workspace of
 * 64 bytes, with the cookie 5. */
#ifndef TNI_TESTS_VALIDATION_BRITTLE_H
#define TNI_TESTS_VALIDATION_BRITTLE_H

#include <stdbool.h>
#include <tenon/plugin.h>

typedef struct brittle_settings {
    const char *fault;
    bool async;
    const tn_host *host; /* what init was given */
    void *kept;          /* what host->alloc gave to a fault that keeps it */
    int n_abandoned;     /* calls of abandon */
} brittle_settings;
extern brittle_settings brittle;

const tn_plugin *brittle_query(const tn_host *host);

/* Takes back what faults left in the process; before `fault` is changed. */
void brittle_clean(void);

/* Positions in the plugin's list of kernels. */
enum { BRITTLE_NEG, BRITTLE_ADD, BRITTLE_WHERE, BRITTLE_PLAIN_NEG };

#endif
