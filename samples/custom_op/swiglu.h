/* An operator of one's own: mylib::swiglu(x, gate) = x * silu(gate), with its derivative and a
 * kernel for the CPU. */
#ifndef CUSTOM_OP_SWIGLU_H
#define CUSTOM_OP_SWIGLU_H

#include <tenon/tenon.h>

/* Makes the operator known; once, before it is called. */
tn_status swiglu_register(void);
/* Takes it away again. */
void swiglu_unregister(void);

/* Calls it. As with every operator the result belongs to the scope; NULL with an error on failure.
 */
tn_tensor *swiglu(tn_tensor *x, tn_tensor *gate);

#endif
