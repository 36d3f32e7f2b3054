/* stream.h: whether the device has streams. */
#ifndef YOURTYPE_STREAM_H
#define YOURTYPE_STREAM_H

#include <tenon/plugin.h>

namespace yourtype {

extern const tn_stream_ops stream_ops;
extern const tn_event_ops event_ops;

/* Without streams the device does everything before a call returns. When stream.cpp is written, let
 * these be &stream_ops and &event_ops. */
constexpr const tn_stream_ops *streams = nullptr;
constexpr const tn_event_ops *events = nullptr;

} // namespace yourtype

#endif /* YOURTYPE_STREAM_H */
