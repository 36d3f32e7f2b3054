"""Operators under the names of torch.nn.functional."""

from .._core import *  # noqa: F401, F403
from .. import _core


def dropout(input, p=0.5, training=True):
    return _core.dropout(input, p, training)


def embedding(input, weight, padding_idx=None):
    return _core.embedding(weight, input, -1 if padding_idx is None else padding_idx % weight.shape[0])


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    return _core.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def pad(input, pad, mode="constant", value=0.0):
    """pad(input, (left, right, top, bottom, ...)): from the last dimension on."""
    if mode == "constant":
        return _core.constant_pad_nd(input, pad, value)
    kind = {"reflect": "reflection", "replicate": "replication"}.get(mode)
    if kind is None or len(pad) % 2 or not 2 <= len(pad) <= 6:
        raise ValueError(f"pad of {len(pad)} numbers with mode '{mode}': modes are constant, reflect and replicate, the last "
                         "two for 2, 4 or 6 numbers")
    return getattr(_core, f"{kind}_pad{len(pad) // 2}d")(input, pad)
