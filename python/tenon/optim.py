"""Optimizers, by PyTorch's names and defaults (tenon/optim.h has the formulas)."""

from ._core import Optimizer, clip_grad_norm_  # noqa: F401


def _options(**options):
    betas = options.pop("betas", None)
    if betas is not None:
        options["beta1"], options["beta2"] = betas
    return options


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum (Sutskever et al., 2013)."""

    def __new__(cls, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
        return super().__new__(cls, "sgd", params, _options(lr=lr, momentum=momentum, dampening=dampening,
                                                            weight_decay=weight_decay, nesterov=nesterov, maximize=maximize))


class Adam(Optimizer):
    """Adam (Kingma and Ba, arXiv:1412.6980); weight_decay is an L2 penalty."""

    def __new__(cls, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, maximize=False):
        return super().__new__(cls, "adam", params, _options(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                                             amsgrad=amsgrad, maximize=maximize))


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, arXiv:1711.05101)."""

    def __new__(cls, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, maximize=False):
        return super().__new__(cls, "adamw", params, _options(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay,
                                                              amsgrad=amsgrad, maximize=maximize))


class RMSprop(Optimizer):
    """RMSprop (Hinton's lectures)."""

    def __new__(cls, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, maximize=False):
        return super().__new__(cls, "rmsprop", params, _options(lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay,
                                                                momentum=momentum, centered=centered, maximize=maximize))


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011)."""

    def __new__(cls, params, lr=1e-2, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10,
                maximize=False):
        return super().__new__(cls, "adagrad", params, _options(
            lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value,
            eps=eps, maximize=maximize))


class Lion(Optimizer):
    """Lion (Chen et al., arXiv:2302.06675)."""

    def __new__(cls, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        return super().__new__(cls, "lion", params, _options(lr=lr, betas=betas, weight_decay=weight_decay,
                                                             maximize=maximize))
