/* Linux lists both as folders of numbers under /proc/self. */
#include "plugin-sdk/process/census.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static void add_thread(tni_census *c, long id) {
    if (c->n_threads < TNI_CENSUS_THREADS)
        c->threads[c->n_threads] = (pid_t)id;
    c->n_threads++;
}

static void add_file(tni_census *c, long descriptor) {
    if (descriptor < TNI_CENSUS_FILES)
        c->files[descriptor] = true;
    c->n_files++;
}

/* But for the descriptor that the folder itself is read by. */
static void add_all(tni_census *c, const char *folder, void (*add)(tni_census *, long)) {
    DIR *d = opendir(folder);
    if (!d)
        return;
    int own = dirfd(d);
    for (struct dirent *e; (e = readdir(d));) {
        char *end;
        long n = strtol(e->d_name, &end, 10);
        if (*e->d_name != '.' && !*end && (n != own || add != add_file))
            add(c, n);
    }
    closedir(d);
}

void tni_census_take(tni_census *c) {
    memset(c, 0, sizeof *c);
    add_all(c, "/proc/self/task", add_thread);
    add_all(c, "/proc/self/fd", add_file);
}

bool tni_census_has_thread(const tni_census *c, pid_t thread) {
    for (uint32_t i = 0; i < c->n_threads && i < TNI_CENSUS_THREADS; i++)
        if (c->threads[i] == thread)
            return true;
    return false;
}
