/* guard.c: what drivers change of the process, put back. LLVM, in most of them, takes over the
 * signals that end a process as soon as it first compiles; they are the program's. */
#include "opencl.h"

#include <signal.h>

void ocl_guard_enter(struct ocl_guard *guard) {
    for (int s = 1; s < OCL_SIGNALS; s++)
        guard->known[s] = sigaction(s, NULL, &guard->actions[s]) == 0;
}

void ocl_guard_leave(const struct ocl_guard *guard) {
    for (int s = 1; s < OCL_SIGNALS; s++)
        if (guard->known[s])
            sigaction(s, &guard->actions[s], NULL);
}
