"""Initialisation, as torch.nn.init has it. Each writes its tensor and returns it."""

import math

from .._modes import no_grad


def _fans(tensor):
    if tensor.ndim < 2:
        raise ValueError("a fan needs a tensor of two dimensions at least")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@no_grad()
def uniform_(tensor, a=0.0, b=1.0):
    return tensor.uniform_(a, b)


@no_grad()
def normal_(tensor, mean=0.0, std=1.0):
    return tensor.normal_(mean, std)


@no_grad()
def constant_(tensor, value):
    return tensor.fill_(value)


def zeros_(tensor):
    return constant_(tensor, 0.0)


def ones_(tensor):
    return constant_(tensor, 1.0)


def kaiming_uniform_(tensor, a=0.0):
    """He et al., arXiv:1502.01852, for leaky_relu of slope a: uniform in +- gain * sqrt(3 / fan_in)."""
    bound = math.sqrt(2 / (1 + a * a)) * math.sqrt(3 / _fans(tensor)[0])
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor, a=0.0):
    return normal_(tensor, 0.0, math.sqrt(2 / (1 + a * a) / _fans(tensor)[0]))


def xavier_uniform_(tensor, gain=1.0):
    """Glorot and Bengio, 2010."""
    bound = gain * math.sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor, gain=1.0):
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))))
