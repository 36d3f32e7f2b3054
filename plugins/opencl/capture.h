/* Work that is recorded instead of queued. */
#ifndef TNI_PLUGINS_OPENCL_CAPTURE_H
#define TNI_PLUGINS_OPENCL_CAPTURE_H

#include "plugins/opencl/opencl.h"

#include <tenon/ext/capture.h>

/* The head of what is queued by one call of the driver, now or at each launch of a graph. Whoever calls
 * `queue` locks the stream, so that nobody else's work comes into the middle of a launch; a call that
 * waits, which is none of a graph's, need not. */
typedef struct ocl_command {
    struct ocl_command *next;
    cl_int (*queue)(tn_stream_impl *stream, const struct ocl_command *command);
} ocl_command;

/* To the end of what the stream records. `command` is of ocl_host_alloc, and given away: NULL was told
 * to the host. Where the capture has just ended it is queued. */
tn_status ocl_record(tn_stream_impl *stream, ocl_command *command, const char *what);

extern const tn_ext_capture ocl_capture;

#endif
