/* What drivers change of the process, put back: signals, and a variable that PoCL sets for the library
 * that tells it of processors. Both belong to the program.
 *
 * Only what drivers are known to change is looked at: of anything else that is different afterwards it
 * could not be told whether another thread of the program has just set it.
 */
#include "plugins/opencl/opencl.h"
#include "plugins/shared/gpu/signals.h"

#include <stdlib.h>
#include <string.h>

static const char *const variables[OCL_VARIABLES] = {
    "HWLOC_PLUGINS_PATH", /* PoCL */
};

/* One call at a time. Otherwise one would take for the program's what another's driver has just
 * changed, and put that back last. */
static pthread_mutex_t one_call = PTHREAD_MUTEX_INITIALIZER;

void ocl_guard_enter(ocl_guard *guard) {
    pthread_mutex_lock(&one_call);
    gpu_signals_keep();
    for (int i = 0; i < OCL_VARIABLES; i++) {
        const char *value = getenv(variables[i]);
        guard->variables[i] = value ? strdup(value) : NULL; /* without memory it will be removed */
    }
}

void ocl_guard_leave(ocl_guard *guard) {
    gpu_signals_restore();
    for (int i = 0; i < OCL_VARIABLES; i++) {
        const char *now = getenv(variables[i]), *before = guard->variables[i];
        if (now && !before)
            unsetenv(variables[i]);
        else if (before && (!now || strcmp(now, before) != 0))
            setenv(variables[i], before, 1);
        free(guard->variables[i]);
    }
    pthread_mutex_unlock(&one_call);
}
