"""What several functions of the namespace share: promotion as the standard has it, axes, and devices.

Tenon's operators follow PyTorch, where a tensor without dimensions, or a number, takes the other's dtype if that is of no
lower kind. In the standard only numbers do: so tensors are cast here before an operator sees them.
"""

from .. import _core
from .._core import Tensor

KIND_OF_NUMBER = {bool: _core.bool, int: _core.int64, float: _core.float32, complex: _core.complex64}


def kind(dtype):
    """0 for bool, 1 for integers, 2 for floating dtypes, 3 for complex ones."""
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else int(dtype is not _core.bool)


def tensor_of(function, x):
    if isinstance(x, Tensor):
        return x
    raise TypeError(f"{function}: an array of tenon is needed, not {type(x).__name__}; tenon.array_api.asarray makes one")


def with_number(dtype, number):
    """The dtype of a tensor and a Python number: the tensor's, unless the number is of a higher kind."""
    own = KIND_OF_NUMBER.get(type(number))
    if own is None:
        own = next((d for t, d in KIND_OF_NUMBER.items() if isinstance(number, t)), None)
    if own is None:
        raise TypeError(f"an array or a number (bool, int, float, complex) is needed, not {type(number).__name__}")
    return dtype if kind(own) <= kind(dtype) else own


def promoted(tensors):
    """The dtype that all of them promote to."""
    dtype = tensors[0].dtype
    for t in tensors[1:]:
        dtype = _core.promote_types(dtype, t.dtype)
    return dtype


def together(function, *operands):
    """Operands, at least one of them a tensor, as tensors of the dtype that they promote to."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    if not tensors:
        raise TypeError(f"{function}: one argument at least must be an array")
    dtype = promoted(tensors)
    for x in operands:
        if not isinstance(x, Tensor):
            dtype = with_number(dtype, x)
    return [x.to(dtype) if isinstance(x, Tensor) else _core.tensor(x, dtype=dtype, device=tensors[0].device)
            for x in operands]


def axis_of(function, axis, ndim):
    """The axis counted from the front."""
    if not -ndim <= axis < ndim:
        raise IndexError(f"{function}: axis {axis} is outside of an array of {ndim} dimensions; it is {-ndim} at least and "
                         f"{ndim - 1} at most")
    return axis % ndim


def axes_of(function, axis, ndim):
    """The axes of `axis`, which is None for all, a number, or several; counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis_of(function, a, ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) < len(axes):
        raise ValueError(f"{function}: axis {axis} names a dimension twice")
    return axes
