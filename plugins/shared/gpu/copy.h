/* Copies within a device, for the operator and for others. */
#ifndef TNI_PLUGINS_SHARED_GPU_COPY_H
#define TNI_PLUGINS_SHARED_GPU_COPY_H

#include "plugins/shared/gpu/gpu.h"

/* out = in, of the same sizes, converted; queued on call->stream. */
tn_status gpu_copy(const tn_call *call, const tn_tensor_view *out, const tn_tensor_view *in);

#endif
