/* What a device lacks for a call: kernels, pairs of `copy`, dtypes it cannot store.
 *
 * Found by calling once more with the CPU standing in for each kernel that is missing, so that the
 * call gets as far as the next one. A copy that went through the host was done by it, so that its
 * pair counts as lacking without a second call.
 *
 *     tn_fallback_reset();
 *     ... the call ...
 *     if (tn_fallback_count()) the text says which copies went through the host
 */
#ifndef TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_LACKS_H
#define TNI_PLUGIN_SDK_CONFORMANCE_WORKER_CORE_LACKS_H

#include "plugin-sdk/conformance/worker/core/device_pair.h"

enum { TC_LACKS_TEXT = 640 };

/* From here on the CPU stands in, and what for is noted. */
void tc_lacks_begin(void);
/* Until here. Either may be left out of a pair of calls that found nothing. */
void tc_lacks_end(void);

/* What was noted since tn_fallback_reset, with the dtypes of `wanted` (a mask) that the subject does
 * not store, in the form of TC_LACKS; "" where there is nothing. As much as fits. Returns out. */
char *tc_lacks_text(const tc_device_pair *pair, uint64_t wanted, char out[TC_LACKS_TEXT]);

#endif
