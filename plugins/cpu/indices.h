/* Places read from a tensor are checked before anything is read or written through them. */
#ifndef TNI_PLUGINS_CPU_INDICES_H
#define TNI_PLUGINS_CPU_INDICES_H

#include "plugins/cpu/cpu.h"

/* Is an element of `index`, an i64 tensor, not in [0, size)? The first one goes to `*out_bad`. */
#define tnc_find_bad_index TNC_ISA(tnc_find_bad_index)
bool tnc_find_bad_index(const tn_call *call, const tn_tensor_view *index, int64_t size,
                        int64_t *out_bad);

#endif
