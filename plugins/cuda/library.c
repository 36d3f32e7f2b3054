/* Libraries that are opened at run time. */
#include "plugins/cuda/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Once mapped a library stays: drivers keep threads, and tell the process of its end. */
enum { MODE = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

void *cuda_library_open(const tn_instance *self, const char *option, const char *const *names,
                        char *reason, size_t room) {
    const char *path = self->host->option(self->host, option);
    char variable[32] = "TENON_CUDA_";
    for (size_t i = 0, n = strlen(variable); option[i] && n + 1 < sizeof variable; i++, n++)
        variable[n] =
            (char)(option[i] >= 'a' && option[i] <= 'z' ? option[i] - 'a' + 'A' : option[i]);
    if (path && strcmp(path, "off") == 0) {
        snprintf(reason, room, "switched off (%s)", variable);
        return NULL;
    }
    if (path && *path) {
        void *library = dlopen(path, MODE);
        const char *why = library ? NULL : dlerror();
        if (!library)
            snprintf(reason, room, "%s names what cannot be opened: %s", variable,
                     why ? why : path);
        return library;
    }
    for (const char *const *name = names; *name; name++) {
        void *library = dlopen(*name, MODE);
        if (library)
            return library;
        const char *why = dlerror();
        if (name == names) /* what it is called today */
            snprintf(reason, room, "%s; %s may name it", why ? why : *name, variable);
    }
    return NULL;
}

void cuda_library_close(void *library) {
    if (library)
        dlclose(library);
}
