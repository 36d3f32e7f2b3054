/* stream.h: whether the device has streams. */
#ifndef YOURTYPE_STREAM_H
#define YOURTYPE_STREAM_H

#include <tenon/plugin.h>

extern const tn_stream_ops yourtype_stream_ops;
extern const tn_event_ops yourtype_event_ops;

/* Without streams the device does everything before a call returns. When stream.c is written, let
 * these be &yourtype_stream_ops and &yourtype_event_ops. */
#define YOURTYPE_STREAMS NULL
#define YOURTYPE_EVENTS NULL

#endif /* YOURTYPE_STREAM_H */
