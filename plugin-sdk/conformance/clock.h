/* The clock that runner and workers measure by. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_CLOCK_H
#define TNI_PLUGIN_SDK_CONFORMANCE_CLOCK_H

#include <time.h>

/* Seconds; it only goes forward. */
static inline double tc_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
