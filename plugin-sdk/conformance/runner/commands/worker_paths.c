/* See worker_paths.h. */
#include "plugin-sdk/conformance/runner/commands/worker_paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *tc_own_path(char *out, size_t room) {
    ssize_t n = readlink("/proc/self/exe", out, room - 1);
    if (n <= 0)
        return NULL;
    out[n] = '\0';
    return out;
}

char *tc_core_path(char *out, size_t room) {
    const char *given = getenv("TENON_CONFORM_CORE");
    char own[PATH_MAX];
    if (given && *given) {
        snprintf(out, room, "%s", given);
    } else {
        if (!tc_own_path(own, sizeof own))
            return NULL;
        char *slash = strrchr(own, '/');
        *slash = '\0';
        /* Beside it in the build tree; installed, from the program's folder to libexec
         * (TENON_CONFORM_LIBEXEC is relative, or absolute). */
        snprintf(out, room, "%s/core/tenon-conform-core", own);
        if (access(out, X_OK) == 0)
            return out;
        if (TENON_CONFORM_LIBEXEC[0] == '/')
            snprintf(out, room, "%s/tenon-conform-core", TENON_CONFORM_LIBEXEC);
        else
            snprintf(out, room, "%s/%s/tenon-conform-core", own, TENON_CONFORM_LIBEXEC);
    }
    return access(out, X_OK) == 0 ? out : NULL;
}
