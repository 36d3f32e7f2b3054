/* The threads and descriptors that the process has at a moment: what is new after a call, most likely
 * the plugin made. For the validation layer and the conformance suite.
 */
#ifndef TNI_PLUGIN_SDK_PROCESS_CENSUS_H
#define TNI_PLUGIN_SDK_PROCESS_CENSUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    TNI_CENSUS_THREADS = 256, /* as many are known by their id; all are counted */
    TNI_CENSUS_FILES = 1024   /* descriptors below are known; all are counted */
};

typedef struct tni_census {
    uint32_t n_threads, n_files;
    pid_t threads[TNI_CENSUS_THREADS];
    bool files[TNI_CENSUS_FILES];
} tni_census;

void tni_census_take(tni_census *c);

bool tni_census_has_thread(const tni_census *census, pid_t thread);

#endif
