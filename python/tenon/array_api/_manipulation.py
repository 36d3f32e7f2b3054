"""Shapes: other ones for the same elements, and arrays joined or taken apart."""

from .. import _core
from .._core import Tensor
from ._common import axes_of, axis_of, promoted


def broadcast_shapes(*shapes):
    """broadcast_shapes(*shapes): the shape that arrays of these shapes have together."""
    made = []
    for shape in shapes:
        made = [1] * (len(shape) - len(made)) + made
        for d in range(-len(shape), 0):
            if shape[d] != 1 and made[d] not in (1, shape[d]):
                raise ValueError(f"broadcast_shapes: {', '.join(map(str, shapes))} do not fit: {shape[d]} and {made[d]} in "
                                 f"dimension {d}; sizes are to be equal or 1")
            made[d] = made[d] if shape[d] == 1 else shape[d]
    return tuple(made)


def broadcast_to(x, /, shape):
    """broadcast_to(x, shape): a view in which dimensions of size 1 are repeated."""
    if broadcast_shapes(x.shape, shape) != tuple(shape):
        raise ValueError(f"broadcast_to: {x.shape} does not become {tuple(shape)}")
    return _core.expand(x, shape)


def broadcast_arrays(*arrays):
    """broadcast_arrays(*arrays): each of them in the shape that they have together."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(_core.expand(x, shape) for x in arrays)


def concat(arrays, /, *, axis=0):
    """concat(arrays): joined along axis; flattened before where that is None."""
    arrays = list(arrays)
    if axis is None:
        arrays, axis = [_core.reshape(x, [-1]) for x in arrays], 0
    dtype = promoted(arrays)
    axis = axis_of("concat", axis, arrays[0].ndim)
    return _core.cat([x.to(dtype) for x in arrays], axis)


def stack(arrays, /, *, axis=0):
    """stack(arrays): joined along a new dimension."""
    arrays = list(arrays)
    dtype = promoted(arrays)
    return _core.stack([x.to(dtype) for x in arrays], axis_of("stack", axis, arrays[0].ndim + 1))


def unstack(x, /, *, axis=0):
    """unstack(x): the slices along axis."""
    return tuple(_core.unbind(x, axis_of("unstack", axis, x.ndim)))


def expand_dims(x, /, axis):
    """expand_dims(x, axis): with dimensions of size 1 at the places axis of the result."""
    n = len(axis) if isinstance(axis, (tuple, list)) else 1
    for place in sorted(axes_of("expand_dims", axis, x.ndim + n)):
        x = _core.unsqueeze(x, place)
    return x


def squeeze(x, /, axis):
    """squeeze(x, axis): without these dimensions, whose size must be 1."""
    axes = axes_of("squeeze", axis, x.ndim)
    for d in axes:
        if x.shape[d] != 1:
            raise ValueError(f"squeeze: dimension {d} of {x.shape} has size {x.shape[d]}; only those of size 1 can go")
    return _core.squeeze(x, list(axes))


def flip(x, /, *, axis=None):
    """flip(x): in the opposite order along axis, or all."""
    return _core.flip(x, list(axes_of("flip", axis, x.ndim)))


def moveaxis(x, source, destination, /):
    """moveaxis(x, source, destination): dimensions source at the places destination."""
    froms, tos = axes_of("moveaxis", source, x.ndim), axes_of("moveaxis", destination, x.ndim)
    if len(froms) != len(tos):
        raise ValueError(f"moveaxis: {len(froms)} dimensions for {len(tos)} places")
    return _core.movedim(x, list(froms), list(tos))


def permute_dims(x, /, axes):
    """permute_dims(x, axes): dimensions in another order."""
    return _core.permute(x, list(axes_of("permute_dims", tuple(axes), x.ndim)))


def repeat(x, repeats, /, *, axis=None):
    """repeat(x, repeats): each slice along axis repeats times; flattened before where that is None."""
    if axis is None:
        x, axis = _core.reshape(x, [-1]), 0
    axis = axis_of("repeat", axis, x.ndim)
    if isinstance(repeats, Tensor):
        repeats = _core.expand(repeats.to(_core.int64), [x.shape[axis]]).contiguous()
    elif not isinstance(repeats, int):
        repeats = _core.tensor(repeats, device=x.device)
    return _core.repeat_interleave(x, repeats, axis)


def reshape(x, /, shape, *, copy=None):
    """reshape(x, shape): another shape; a view where that can be, unless copy is True; copy=False refuses to copy."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if copy:
        return _core.reshape(x.clone(), shape)
    return _core.view(x, shape) if copy is False else _core.reshape(x, shape)


def roll(x, /, shift, *, axis=None):
    """roll(x, shift): slices moved along axis, what leaves at the end put in front; flattened where axis is None."""
    if axis is None:
        if isinstance(shift, (tuple, list)):
            raise ValueError("roll: several shifts are for as many axes, and axis is None")
        return _core.reshape(_core.roll(_core.reshape(x, [-1]), [_within(shift, x.numel())], [0]), x.shape)
    axes = [axis_of("roll", a, x.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    shifts = list(shift) if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    return _core.roll(x, [_within(n, x.shape[d]) for n, d in zip(shifts, axes)], axes)


def _within(shift, size):
    """The same shift of less than the size: numbers may be larger than an operator takes."""
    return shift % size if size else 0


def tile(x, repetitions, /):
    """tile(x, repetitions): copies side by side, as many along each dimension, counted from the last."""
    return _core.tile(x, list(repetitions))
