/* What programs ask and tell about a tensor's gradient. */
#include "core/autograd/engine.h"

/* A view that was rewritten through its base renews its history when it is asked about. */
static bool has_node(const tn_tensor *t) {
    tn_tensor *asked = (tn_tensor *)(uintptr_t)t;
    return tni_view_current(asked) && t->autograd && t->autograd->node;
}

tn_tensor *tn_set_requires_grad(tn_tensor *t, bool requires_grad) {
    if (tni_no_tensor(t, "tn_set_requires_grad"))
        return NULL;
    if (has_node(t)) {
        if (requires_grad)
            return t;
        return tni_fail_null(
            TN_ERR_STATE,
            "tn_set_requires_grad: %s made the tensor; only leaves can be unmarked, take a "
            "tn_detach of it",
            t->autograd->node->type->name);
    }
    if (!requires_grad) {
        if (t->autograd)
            t->autograd->requires_grad = false;
        return t;
    }
    if (!tni_is_float(t->view.dtype))
        return tni_fail_null(TN_ERR_DTYPE,
                             "tn_set_requires_grad: the tensor is %s; only floating dtypes have "
                             "gradients",
                             tn_dtype_name(t->view.dtype));
    if (t->flags & TNI_TENSOR_INFERENCE)
        return tni_fail_null(
            TN_ERR_STATE, "tn_set_requires_grad: a tensor made in inference mode takes no part in "
                          "autograd; clone it outside");
    tni_autograd *a = tni_autograd_of(t);
    if (!a)
        return NULL;
    a->requires_grad = true;
    t->head.keys |= TN_KEY_BIT(TN_KEY_AUTOGRAD);
    return t;
}

bool tn_requires_grad(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_requires_grad") &&
           (has_node(t) || (t->autograd && t->autograd->requires_grad));
}

bool tn_is_leaf(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_is_leaf") && !has_node(t);
}

tn_tensor *tn_grad(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_grad") && t->autograd ? t->autograd->grad : NULL;
}

tn_status tn_set_grad(tn_tensor *t, tn_tensor *grad) {
    if (tni_no_tensor(t, "tn_set_grad") || tni_is_given_gone(grad, "tn_set_grad"))
        return tni_failed();
    if (grad == t)
        return tni_fail(TN_ERR_INVALID_ARGUMENT,
                        "tn_set_grad: a tensor cannot be its own gradient");
    if (grad == TN_NONE)
        grad = NULL;
    if (grad) {
        bool same = grad->view.rank == t->view.rank && grad->view.dtype == t->view.dtype &&
                    grad->device == t->device;
        for (int32_t i = 0; same && i < t->view.rank; i++)
            same = grad->sizes[i] == t->sizes[i];
        if (!same)
            return tni_fail(TN_ERR_SHAPE,
                            "tn_set_grad: the tensor is %s of shape %s on %s, the gradient %s of "
                            "shape %s on %s; they must be alike",
                            tn_dtype_name(t->view.dtype), TNI_SHAPE_OF(t), t->device->name,
                            tn_dtype_name(grad->view.dtype), TNI_SHAPE_OF(grad),
                            grad->device->name);
    } else if (!t->autograd) {
        return TN_OK;
    }
    if (!tni_autograd_of(t))
        return TN_ERR_OUT_OF_MEMORY;
    tni_drop(tni_exchange_grad(t, tni_keep_opt(grad)));
    return TN_OK;
}

tn_status tn_retain_grad(tn_tensor *t) {
    if (tni_no_tensor(t, "tn_retain_grad"))
        return tni_failed();
    if (!tni_requires_grad(t))
        return tni_fail(TN_ERR_STATE, "tn_retain_grad: the tensor requires no gradient; see "
                                      "tn_set_requires_grad");
    tni_autograd *a = t->autograd;
    if (!a->node || a->retains_grad)
        return TN_OK; /* a leaf's is kept anyway */
    tn_status status = tni_retain_hook_add(t);
    a->retains_grad = status == TN_OK;
    return status;
}

const char *tn_grad_fn_name(const tn_tensor *t) {
    return tni_is_tensor(t, "tn_grad_fn_name") && has_node(t) ? t->autograd->node->type->name : "";
}
