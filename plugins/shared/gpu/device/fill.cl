/* One value everywhere. One work item makes one element; in a row, where it is no thread of a CPU,
 * 16 bytes of them.
 *
 *   T          i8, i16, i32 or i64: the bits are the host's
 *   STRIDED    0: the elements lie in a row; 1: by sizes and strides
 *   INDEX      i32 or i64, what counts elements */
#include "plugins/shared/gpu/device/fill.params.h"

#if STRIDED || IS_CPU

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

#else

#define E (16 / BYTES(T))
MAKE_PACK(T, E)

KERNEL(fill)(GLOBAL T *out, const fill_params p) {
    INDEX step = (INDEX)(GROUPS(0) * LOCAL_SIZE(0)) * E;
    T value[E];
    for (int l = 0; l < E; l++)
        value[l] = (T)p.bits;
    for (INDEX i = (INDEX)GLOBAL_ID(0) * E; i < p.numel; i += step) {
        int count = p.numel - i < E ? (int)(p.numel - i) : E;
        STORE_PACK(T, E, out + p.offset + i, count, value, (T));
    }
}

#endif
