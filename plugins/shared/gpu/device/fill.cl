/* One value everywhere. One work item makes one element.
 *
 *   T          i8, i16, i32 or i64: the bits are the host's
 *   STRIDED    0: the elements lie in a row; 1: by sizes and strides
 *   INDEX      i32 or i64, what counts elements */
#include "plugins/shared/gpu/device/fill.params.h"

KERNEL(fill)(GLOBAL T *out, const fill_params p) {
    INDEX i = (INDEX)GLOBAL_ID(0);
    if (i >= p.numel)
        return;
#if STRIDED
    i64 at[1] = {0};
    WALK(p.loop, 1, INDEX, i, at);
    out[p.offset + at[0]] = (T)p.bits;
#else
    out[p.offset + i] = (T)p.bits;
#endif
}
