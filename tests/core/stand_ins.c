/* What tensors ask of autograd and of the operators, for tests that have neither. */
#include "core/autograd/autograd.h"

#include <string.h>

/* Element by element, where the host can reach them. */
tn_tensor *tni_contiguous_data(tn_tensor *t) {
    if (tni_is_contiguous(&t->view))
        return tni_keep(t);
    tn_tensor *copy = tni_tensor_new(t->device, t->view.dtype, t->view.rank, t->sizes);
    const char *from = tn_data(t);
    char *to = copy ? copy->own.host : NULL;
    if (!from || !to) {
        tni_drop(copy);
        return NULL;
    }
    size_t item = (size_t)tni_dtype_size(t->view.dtype);
    for (int64_t i = 0; i < t->view.numel; i++) {
        int64_t rest = i, offset = 0;
        for (int32_t d = t->view.rank - 1; d >= 0; d--) {
            offset += rest % t->sizes[d] * t->strides[d];
            rest /= t->sizes[d];
        }
        memcpy(to + (size_t)i * item, from + (size_t)offset * item, item);
    }
    return copy;
}

void tni_autograd_destroy(tn_tensor *t) {
    t->autograd = NULL;
}
const char *tn_grad_fn_name(const tn_tensor *t) {
    return t->autograd && t->autograd->node ? t->autograd->node->type->name : "";
}
bool tn_requires_grad(const tn_tensor *t) {
    return t->autograd && (t->autograd->requires_grad || t->autograd->node);
}
