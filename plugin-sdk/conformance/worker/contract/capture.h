/* Captures what is written to a file descriptor. */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_CAPTURE_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CONTRACT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tc_capture {
    int fd, saved, file;
    int64_t seen; /* bytes that tc_capture_look has told */
} tc_capture;

/* Sends what is written to `fd` into memory; false where the system will not. */
bool tc_capture_start(tc_capture *c, int fd);

/* How many bytes were written since the last look, of which `out` gets the first. */
int64_t tc_capture_look(tc_capture *c, char out[64]);

/* Puts the descriptor back. Returns the number of bytes written, of which `out` gets the first. */
int64_t tc_capture_stop(tc_capture *c, char out[64]);

#endif
