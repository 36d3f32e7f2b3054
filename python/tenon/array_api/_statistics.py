"""Reductions and running sums: over any axes, also none; what is summed or multiplied is cast first."""

from .. import _core
from ._common import axes_of, axis_of, kind, promoted


def _reduced(function, operator, x, axis, keepdims):
    """operator(x, dims, keepdims) over axis. No axes are a dimension of size 1 here, for Tenon takes [] for all."""
    axes = axes_of(function, axis, x.ndim)
    if not axes:
        return operator(_core.unsqueeze(x, -1), [x.ndim], False)
    return operator(x, list(axes), keepdims)


def _accumulating(x, dtype):
    """x in the dtype that sums and products have: of integers the default one. What is stored only, the operator refuses."""
    if dtype is None:
        dtype = x.dtype if kind(x.dtype) > 1 or x.dtype in (_core.uint16, _core.uint32, _core.uint64) else _core.int64
    return x.to(dtype)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """sum(x): over axis, in dtype; of integers int64 where that is left out."""
    x = _accumulating(x, dtype)
    return _reduced("sum", lambda t, dims, keep: _core.sum(t, dims, keep, dtype=x.dtype), x, axis, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """prod(x): the product over axis, in dtype; of integers int64 where that is left out."""
    x = _accumulating(x, dtype)

    def over_each(t, dims, keep):
        for d in sorted(dims, reverse=True):
            t = _core.prod(t, d, keep, dtype=x.dtype)
        return t

    return _reduced("prod", over_each, x, axis, keepdims)


def max(x, /, *, axis=None, keepdims=False):
    """max(x): the largest over axis; NaN where there is one."""
    return _reduced("max", _core.amax, x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """min(x): the smallest over axis; NaN where there is one."""
    return _reduced("min", _core.amin, x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """mean(x): over axis."""
    return _reduced("mean", _core.mean, x, axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """var(x): the variance over axis; the squares are divided by how many there are less correction."""
    return _reduced("var", lambda t, dims, keep: _core.var(t, dims, float(correction), keep), x, axis, keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """std(x): the root of var."""
    return _reduced("std", lambda t, dims, keep: _core.std(t, dims, float(correction), keep), x, axis, keepdims)


def all(x, /, *, axis=None, keepdims=False):
    """all(x): are all over axis not 0?"""
    return _reduced("all", _core.all, x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """any(x): is any over axis not 0?"""
    return _reduced("any", _core.any, x, axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """count_nonzero(x): how many over axis are not 0."""
    return sum(x != 0, axis=axis, keepdims=keepdims)


# ---- along one axis ------------------------------------------------------------------------------


def _running(function, operator, first, x, axis, dtype, include_initial):
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{function}: axis may be left out of an array of 1 dimension alone; this one has {x.ndim}")
        axis = 0
    x, axis = _accumulating(x, dtype), axis_of(function, axis, x.ndim)
    made = operator(x, axis, dtype=x.dtype)
    if not include_initial:
        return made
    edge = list(x.shape)
    edge[axis] = 1
    return _core.cat([_core.full(edge, first, dtype=x.dtype, device=x.device), made], axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """cumulative_sum(x): sums of the elements along axis so far; with include_initial that of none before them."""
    return _running("cumulative_sum", _core.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """cumulative_prod(x): products of the elements along axis so far; with include_initial that of none before them."""
    return _running("cumulative_prod", _core.cumprod, 1, x, axis, dtype, include_initial)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """diff(x): each element along axis less the one before, n times; prepend and append are joined first."""
    axis = axis_of("diff", axis, x.ndim)
    parts = [t for t in (prepend, x, append) if t is not None]
    if len(parts) > 1:
        dtype = promoted(parts)
        x = _core.cat([t.to(dtype) for t in parts], axis)
    return _core.diff(x, n, axis)
