/* Recording on and off, and inference mode: states of the thread that the dispatcher and the
 * making of tensors look at anyway. */
#include "core/autograd/engine.h"

enum { AUTOGRAD = TN_KEY_BIT(TN_KEY_AUTOGRAD) };

bool tn_set_grad_enabled(bool enabled) {
    bool before = tni_grad_mode();
    if (enabled)
        tni_thread_keys.excluded &= ~(uint32_t)AUTOGRAD;
    else
        tni_thread_keys.excluded |= AUTOGRAD;
    return before;
}

bool tn_grad_enabled(void) {
    return tni_grad_mode();
}

/* Whether recording was on before inference mode, to be put back after it. */
static TNI_TLS bool recorded_before;

bool tn_set_inference_mode(bool enabled) {
    bool before = tn_inference_mode();
    if (enabled == before)
        return before;
    if (enabled) {
        recorded_before = tn_set_grad_enabled(false);
        tni_fresh = (tni_fresh_state){0, TNI_TENSOR_INFERENCE};
    } else {
        tni_fresh = (tni_fresh_state){TN_KEY_BIT(TN_KEY_INPLACE_OR_VIEW), 0};
        tn_set_grad_enabled(recorded_before);
    }
    return before;
}

bool tn_inference_mode(void) {
    return (tni_fresh.flags & TNI_TENSOR_INFERENCE) != 0;
}
