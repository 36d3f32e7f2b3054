/* Has streams, but no events. */
#include <tenon/plugin.h>

static tn_status create(tn_device_impl *device, int32_t priority, tn_stream_impl **out_stream) {
    return TN_ERR_UNSUPPORTED;
}
static void destroy(tn_stream_impl *stream) {}
static tn_status done(tn_stream_impl *stream) {
    return TN_OK;
}
static const tn_stream_ops stream_ops = {
    .struct_size = sizeof stream_ops,
    .create = create,
    .destroy = destroy,
    .query = done,
    .synchronize = done,
};

#define ZOO_BREAK device_ops.streams = &stream_ops;
#include "tests/zoo/good.c"
