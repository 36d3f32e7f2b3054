/* What drivers change of the process, put back. LLVM, in most of them, takes over the
 * signals that end a process as soon as it first compiles; PoCL sets a variable for the library
 * that tells it of processors. Both belong to the program.
 *
 * Environment variables cannot be changed safely while other threads read them, and the driver has
 * done just that. So only what is different afterwards is touched: what the driver added is taken
 * away and what it changed is changed back, which moves nothing that a reader may be looking at;
 * only for a variable that the driver removed the list may have to grow. Of a variable that another
 * thread of the program sets in the same moment it cannot be told who did it: it is put back, too.
 */
#include "plugins/opencl/opencl.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* One call at a time. Otherwise one would take for the program's what another's driver has just
 * changed, and put that back last. */
static pthread_mutex_t one_call = PTHREAD_MUTEX_INITIALIZER;

/* ---- environment variables --------------------------------------------------------------- */

/* All of them, one behind the other, each with its NUL, and an empty one. NULL without memory: then
 * they stay as the driver leaves them. */
static char *copy_variables(void) {
    size_t bytes = 1;
    for (char **e = environ; e && *e; e++)
        bytes += strlen(*e) + 1;
    char *copy = malloc(bytes), *to = copy;
    for (char **e = environ; copy && e && *e; e++) {
        size_t n = strlen(*e) + 1;
        memcpy(to, *e, n);
        to += n;
    }
    if (copy)
        *to = '\0';
    return copy;
}

static bool is_of(const char *variable, const char *name, size_t n_name) {
    return strncmp(variable, name, n_name) == 0 && variable[n_name] == '=';
}

/* The variable of that name in a copy, or NULL. Of several the first is what getenv finds. */
static const char *first_of(const char *copy, const char *name, size_t n_name) {
    for (const char *v = copy; *v; v += strlen(v) + 1)
        if (is_of(v, name, n_name))
            return v;
    return NULL;
}

static char *present(const char *name, size_t n_name) {
    for (char **e = environ; e && *e; e++)
        if (is_of(*e, name, n_name))
            return *e;
    return NULL;
}

static bool set(const char *variable, size_t n_name, const char *value) {
    char *name = strndup(variable, n_name);
    bool done = name && (value ? setenv(name, value, 1) : unsetenv(name)) == 0;
    free(name);
    return done;
}

/* What is no "name=value" is left alone. */
static void put_back_variables(const char *copy) {
    for (size_t i = 0; environ && environ[i];) {
        size_t n_name = strcspn(environ[i], "=");
        bool added = environ[i][n_name] && !first_of(copy, environ[i], n_name);
        i += !(added && set(environ[i], n_name, NULL)); /* else the next one is in its place now */
    }
    for (const char *v = copy; *v; v += strlen(v) + 1) {
        size_t n_name = strcspn(v, "=");
        if (first_of(copy, v, n_name) != v)
            continue;
        const char *now = present(v, n_name);
        if (!now || strcmp(now, v) != 0)
            set(v, n_name, v + n_name + 1);
    }
}

/* ---- round a call ------------------------------------------------------------------------ */

void ocl_guard_enter(ocl_guard *guard) {
    pthread_mutex_lock(&one_call);
    for (int s = 1; s < OCL_SIGNALS; s++)
        guard->known[s] = sigaction(s, NULL, &guard->actions[s]) == 0;
    guard->variables = copy_variables();
}

void ocl_guard_leave(ocl_guard *guard) {
    for (int s = 1; s < OCL_SIGNALS; s++)
        if (guard->known[s])
            sigaction(s, &guard->actions[s], NULL);
    if (guard->variables)
        put_back_variables(guard->variables);
    free(guard->variables);
    pthread_mutex_unlock(&one_call);
}
