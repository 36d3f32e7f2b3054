/* Elements of dense arrays as macros of loops name them: tnc_read_T(array, i) and tnc_write_T(array, i, x)
 * for every type T that a loop is made for. */
#ifndef TNI_PLUGINS_CPU_ELEMENT_H
#define TNI_PLUGINS_CPU_ELEMENT_H

#include "plugins/cpu/half.h"

/* What a loop calls its type: an f32 that is stored as bf16, converted in registers and rounded once. */
typedef float tnc_bf16;
enum { tnc_stored_tnc_bf16 = true }; /* is it a half as it is stored? */

static inline float tnc_read_tnc_bf16(const void *p, int64_t i) {
    return tnc_from_bf16(((const uint16_t *)p)[i]);
}

static inline void tnc_write_tnc_bf16(void *p, int64_t i, float x) {
    ((uint16_t *)p)[i] = tnc_to_bf16(x);
}

#define TNC_ELEMENT(T) \
    enum { tnc_stored_##T = false }; \
    static inline T tnc_read_##T(const void *p, int64_t i) { \
        return ((const T *)p)[i]; \
    } \
    static inline void tnc_write_##T(void *p, int64_t i, T x) { \
        ((T *)p)[i] = x; \
    }
TNC_ELEMENT(float)
TNC_ELEMENT(double)
TNC_ELEMENT(int8_t)
TNC_ELEMENT(int16_t)
TNC_ELEMENT(int32_t)
TNC_ELEMENT(int64_t)
TNC_ELEMENT(uint8_t)

#endif
