/* Captures what is written to a file descriptor. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_CAPTURE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tc_capture {
    int fd, saved, file;
} tc_capture;

/* Sends what is written to `fd` into memory; false where the system will not. */
bool tc_capture_start(tc_capture *c, int fd);

/* Puts the descriptor back. Returns the number of bytes written, of which `out` gets the first. */
int64_t tc_capture_stop(tc_capture *c, char out[64]);

#endif
