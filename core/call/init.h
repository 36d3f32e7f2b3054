/* Defining the operators and their handlers: before the first call, and until tn_shutdown. */
#ifndef TNI_CORE_CALL_INIT_H
#define TNI_CORE_CALL_INIT_H

#include "core/tensor/tensor.h"

/* Once, on the first use of the library. */
tn_status tni_core_init_slow(void);
extern _Atomic bool tni_core_ready;
static inline tn_status tni_core_init(void) {
    return TNI_LIKELY(atomic_load_explicit(&tni_core_ready, memory_order_acquire))
               ? TN_OK
               : tni_core_init_slow();
}
/* Called by tn_shutdown before the registry ends. */
void tni_core_finish(void);

#endif
