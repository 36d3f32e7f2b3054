"""Where elements are: searched, sorted, chosen by place, and sets of them."""

from collections import namedtuple

from .. import _core
from ._common import axis_of, tensor_of, together

# ---- places --------------------------------------------------------------------------------------


def argmax(x, /, *, axis=None, keepdims=False):
    """argmax(x): where the first of the largest stands along axis, or in the flattened array."""
    return _core.argmax(x, None if axis is None else axis_of("argmax", axis, x.ndim), keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    """argmin(x): where the first of the smallest stands along axis, or in the flattened array."""
    return _core.argmin(x, None if axis is None else axis_of("argmin", axis, x.ndim), keepdims)


def nonzero(x, /):
    """nonzero(x): for each dimension the places of the elements that are not 0."""
    if x.ndim == 0:
        raise ValueError("nonzero: an array without dimensions has no places")
    return tuple(_core.nonzero_numpy(x))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """searchsorted(x1, x2): where each of x2 fits into the sorted vector x1, before equals ('left') or behind ('right')."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', not {side!r}")
    x1, x2 = together("searchsorted", x1, x2)
    if sorter is not None:
        x1 = _core.index(x1, [sorter.to(_core.int64)])
    return _core.searchsorted(x1, x2, right=side == "right")


def where(condition, x1, x2, /):
    """where(condition, x1, x2): x1 where condition holds, else x2."""
    return _core.where(condition, *together("where", x1, x2))


def take(x, indices, /, *, axis=None):
    """take(x, indices): the slices along axis that indices name; negative ones count from the end."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: axis may be left out of an array of 1 dimension alone; this one has {x.ndim}")
        axis = 0
    return _core.index(x, [None] * axis_of("take", axis, x.ndim) + [indices.to(_core.int64)])


def take_along_axis(x, indices, /, *, axis=-1):
    """take_along_axis(x, indices): along axis the elements that indices name; the other dimensions broadcast."""
    return _core.take_along_dim(x, indices.to(_core.int64), axis_of("take_along_axis", axis, x.ndim))


# ---- order ---------------------------------------------------------------------------------------


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """sort(x): along axis; always stable. NaNs count as the largest."""
    return _core.sort(x, axis_of("sort", axis, x.ndim), descending).values


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """argsort(x): the places from which sort takes its elements."""
    return _core.argsort(x, axis_of("argsort", axis, x.ndim), descending)


# ---- sets ----------------------------------------------------------------------------------------

unique_all_result = namedtuple("unique_all_result", ("values", "indices", "inverse_indices", "counts"))
unique_counts_result = namedtuple("unique_counts_result", ("values", "counts"))
unique_inverse_result = namedtuple("unique_inverse_result", ("values", "inverse_indices"))


def _unique(x):
    values, inverse, counts = _core.unique2(tensor_of("unique", x), True, True, True)
    return values, _core.reshape(inverse, x.shape), counts


def unique_all(x, /):
    """unique_all(x): the distinct elements, where each stands first, which of them each of x is, and how often each stands."""
    values, inverse, counts = _unique(x)
    firsts = _core.index(_core.argsort(_core.reshape(inverse, [-1])), [_core.cumsum(counts, 0) - counts])
    return unique_all_result(values, firsts, inverse, counts)


def unique_counts(x, /):
    """unique_counts(x): the distinct elements, and how often each stands."""
    values, _, counts = _unique(x)
    return unique_counts_result(values, counts)


def unique_inverse(x, /):
    """unique_inverse(x): the distinct elements, and which of them each of x is."""
    values, inverse, _ = _unique(x)
    return unique_inverse_result(values, inverse)


def unique_values(x, /):
    """unique_values(x): the distinct elements, sorted; no NaN equals another."""
    return _core.unique2(tensor_of("unique_values", x)).values


def isin(x1, x2, /, *, invert=False):
    """isin(x1, x2): is each of x1 among the elements of x2? With invert: is it not?"""
    return _core.isin(*together("isin", x1, x2), invert=invert)
