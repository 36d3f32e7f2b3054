/* An operator of one's own: mylib::swiglu(x, gate) = x * silu(gate), with its derivative. */
#ifndef CUSTOM_OP_SWIGLU_H
#define CUSTOM_OP_SWIGLU_H

#include <tenon/tenon.h>

/* Makes the operator known; once, before it is called. */
tn_status swiglu_register(void);
/* Takes it away again. */
void swiglu_unregister(void);

/* Calls it. The caller holds the result and drops it; NULL with an error on failure. */
tn_tensor *swiglu(tn_tensor *x, tn_tensor *gate);

#endif
