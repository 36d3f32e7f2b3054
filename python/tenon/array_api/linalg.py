"""The linear algebra that is products and sums. Decompositions, and what is made of them, are not there yet."""

from .. import _core
from ._common import axes_of, axis_of, tensor_of, together
from ._manipulation import broadcast_shapes
from ._statistics import max, min, sum

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "matrix_transpose", "outer", "tensordot", "trace", "vecdot",
           "vector_norm"]


def matmul(x1, x2, /):
    """matmul(x1, x2): the product of vectors, matrices and stacks of them."""
    return _core.matmul(*together("matmul", tensor_of("matmul", x1), tensor_of("matmul", x2)))


def matrix_transpose(x, /):
    """matrix_transpose(x): the last two dimensions exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: 2 dimensions at least are needed, and this array has {x.ndim}")
    return x.mT


def tensordot(x1, x2, /, *, axes=2):
    """tensordot(x1, x2): products summed over the last `axes` dimensions of x1 and the first of x2, or over pairs of them."""
    x1, x2 = together("tensordot", x1, x2)
    if isinstance(axes, int):
        if not 0 <= axes <= (x1.ndim if x1.ndim < x2.ndim else x2.ndim):
            raise ValueError(f"tensordot: there are not {axes} dimensions to sum over in both {x1.shape} and {x2.shape}")
        axes = range(x1.ndim - axes, x1.ndim), range(axes)
    firsts, seconds = (axes_of("tensordot", tuple(a), x.ndim) for a, x in zip(axes, (x1, x2)))
    if [x1.shape[d] for d in firsts] != [x2.shape[d] for d in seconds]:
        raise ValueError(f"tensordot: dimensions {firsts} of {x1.shape} and {seconds} of {x2.shape} are to have equal sizes")
    return _core.tensordot(x1, x2, list(firsts), list(seconds))


def vecdot(x1, x2, /, *, axis=-1):
    """vecdot(x1, x2): products summed along axis, which is counted from the end."""
    x1, x2 = together("vecdot", x1, x2)
    axis_of("vecdot", axis, x1.ndim if x1.ndim < x2.ndim else x2.ndim)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: dimension {axis} is to have one size: {x1.shape} and {x2.shape}")
    return sum(x1 * x2, axis=axis, dtype=x1.dtype)


def cross(x1, x2, /, *, axis=-1):
    """cross(x1, x2): the cross product of vectors of 3 along axis, which is counted from the end."""
    x1, x2 = together("cross", x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross: dimension {axis} is to have size 3: {x1.shape} and {x2.shape}")
    shape = broadcast_shapes(x1.shape, x2.shape)
    return _core.linalg_cross(_core.expand(x1, shape), _core.expand(x2, shape), dim=axis)


def outer(x1, x2, /):
    """outer(x1, x2): every product of two vectors' elements."""
    return _core.outer(*together("outer", x1, x2))


def diagonal(x, /, *, offset=0):
    """diagonal(x): a view of the diagonals of matrices."""
    rows, columns = x.shape[-2:]
    return _core.diagonal(x, columns if offset > columns else -rows if offset < -rows else offset, -2, -1)


def trace(x, /, *, offset=0, dtype=None):
    """trace(x): the sum of the diagonals of matrices, in dtype; of integers int64 where that is left out."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """vector_norm(x): the norm of order ord over axis."""
    axes = axes_of("vector_norm", axis, x.ndim)
    if not axes:
        return _core.abs(x) if ord != 0 else (x != 0).to(x.dtype)
    return _core.linalg_vector_norm(x, ord, list(axes), keepdims)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """matrix_norm(x): of matrices: 'fro', 1, -1, inf and -inf; the others need singular values."""
    if ord == "fro":
        return _core.linalg_vector_norm(x, 2, [-2, -1], keepdims)
    if ord not in (1, -1, float("inf"), -float("inf")):
        raise NotImplementedError(f"matrix_norm: order {ord!r} needs singular values, which are not there yet; there are "
                                  "'fro', 1, -1, inf and -inf")
    summed, other = (-2, -1) if abs(ord) == 1 else (-1, -2)
    extreme = (max if ord > 0 else min)(sum(_core.abs(x), axis=summed, keepdims=True), axis=other, keepdims=True)
    return extreme if keepdims else _core.squeeze(extreme, [-2, -1])
