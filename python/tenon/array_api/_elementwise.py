"""Functions of each element: names of the standard for Tenon's operators, with the standard's promotion."""

from .. import _core
from .._core import Tensor
from ._common import kind, tensor_of, together
from ._dtypes import finfo
from ._manipulation import broadcast_arrays

# ---- of one array --------------------------------------------------------------------------------


def _unary(name, operator, doc):
    def function(x, /):
        return operator(tensor_of(name, x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(x): {doc}"
    return function


_UNARY = {
    "abs": (_core.abs, "the absolute value."),
    "acos": (_core.acos, "the inverse of the cosine."),
    "acosh": (_core.acosh, "the inverse of the hyperbolic cosine."),
    "asin": (_core.asin, "the inverse of the sine."),
    "asinh": (_core.asinh, "the inverse of the hyperbolic sine."),
    "atan": (_core.atan, "the inverse of the tangent."),
    "atanh": (_core.atanh, "the inverse of the hyperbolic tangent."),
    "bitwise_invert": (_core.bitwise_not, "every bit the other way; of bool its negation."),
    "ceil": (_core.ceil, "rounded up."),
    "cos": (_core.cos, "the cosine."),
    "cosh": (_core.cosh, "the hyperbolic cosine."),
    "exp": (_core.exp, "e to the power of x."),
    "expm1": (_core.expm1, "exp(x) - 1, without cancellation near 0."),
    "floor": (_core.floor, "rounded down."),
    "isfinite": (_core.isfinite, "is it neither an infinity nor NaN?"),
    "isinf": (_core.isinf, "is it an infinity?"),
    "isnan": (_core.isnan, "is it NaN?"),
    "log": (_core.log, "the natural logarithm."),
    "log1p": (_core.log1p, "log(1 + x), without cancellation near 0."),
    "log2": (_core.log2, "the logarithm to the base of 2."),
    "log10": (_core.log10, "the logarithm to the base of 10."),
    "logical_not": (_core.logical_not, "is it 0?"),
    "negative": (_core.neg, "-x."),
    "positive": (_core.alias, "x."),
    "reciprocal": (_core.reciprocal, "1 / x."),
    "round": (_core.round, "the nearest integer, halves to even."),
    "sign": (_core.sign, "-1, 0 or 1; NaN stays."),
    "sin": (_core.sin, "the sine."),
    "sinh": (_core.sinh, "the hyperbolic sine."),
    "sqrt": (_core.sqrt, "the square root."),
    "square": (_core.square, "x * x."),
    "tan": (_core.tan, "the tangent."),
    "tanh": (_core.tanh, "the hyperbolic tangent."),
    "trunc": (_core.trunc, "rounded towards zero."),
}
globals().update({name: _unary(name, *how) for name, how in _UNARY.items()})


def signbit(x, /):
    """signbit(x): is the sign bit set? That of -0.0 and of a NaN counts."""
    if kind(x.dtype) < 2:
        return x < 0
    return _core.copysign(_core.ones_like(x), x) < 0


def real(x, /):
    """real(x): the real parts; of real numbers x."""
    return _core.alias(_core.real(tensor_of("real", x)))


def imag(x, /):
    """imag(x): the imaginary parts of complex numbers."""
    if not tensor_of("imag", x).dtype.is_complex:
        raise TypeError(f"imag: {x.dtype!r} is no complex dtype")
    return _core.alias(_core.imag(x))


def conj(x, /):
    """conj(x): complex numbers with the other sign before their imaginary part; of real numbers x."""
    if not tensor_of("conj", x).dtype.is_complex:
        return _core.alias(x)
    made = x.clone()
    made.imag.neg_()
    return made


# ---- of two --------------------------------------------------------------------------------------


def _binary(name, operator, doc):
    def function(x1, x2, /):
        return operator(*together(name, x1, x2))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(x1, x2): {doc}"
    return function


_BINARY = {
    "add": (_core.add, "x1 + x2."),
    "atan2": (_core.atan2, "the angle of the point with x1 above and x2 beside the origin."),
    "bitwise_and": (_core.bitwise_and, "the bits that both have."),
    "bitwise_left_shift": (_core.bitwise_left_shift, "x1 << x2."),
    "bitwise_or": (_core.bitwise_or, "the bits that one of them has."),
    "bitwise_right_shift": (_core.bitwise_right_shift, "x1 >> x2, which keeps the sign."),
    "bitwise_xor": (_core.bitwise_xor, "the bits in which they differ."),
    "copysign": (_core.copysign, "x1 with the sign of x2."),
    "divide": (_core.div, "x1 / x2."),
    "equal": (_core.eq, "x1 == x2."),
    "floor_divide": (_core.floor_divide, "x1 / x2, rounded down."),
    "greater": (_core.gt, "x1 > x2."),
    "greater_equal": (_core.ge, "x1 >= x2."),
    "hypot": (_core.hypot, "sqrt(x1 ** 2 + x2 ** 2), without overflow."),
    "less": (_core.lt, "x1 < x2."),
    "less_equal": (_core.le, "x1 <= x2."),
    "logaddexp": (_core.logaddexp, "log(exp(x1) + exp(x2)), without overflow."),
    "logical_and": (_core.logical_and, "are both not 0?"),
    "logical_or": (_core.logical_or, "is one of them not 0?"),
    "logical_xor": (_core.logical_xor, "is exactly one of them not 0?"),
    "maximum": (_core.maximum, "the larger; NaN if either is NaN."),
    "minimum": (_core.minimum, "the smaller; NaN if either is NaN."),
    "multiply": (_core.mul, "x1 * x2."),
    "not_equal": (_core.ne, "x1 != x2."),
    "pow": (_core.pow, "x1 to the power of x2."),
    "remainder": (_core.remainder, "x1 modulo x2, with the sign of x2."),
    "subtract": (_core.sub, "x1 - x2."),
}
globals().update({name: _binary(name, *how) for name, how in _BINARY.items()})


def nextafter(x1, x2, /):
    """nextafter(x1, x2): the next number of the dtype from x1 towards x2.

    Rump, Zimmermann, Boldo and Melquiond, Computing predecessor and successor in rounding to nearest (2009), algorithm 2:
    the step is a little more than half a unit in the last place, so that rounding to nearest takes it exactly.
    """
    x1, x2 = together("nextafter", x1, x2)
    if kind(x1.dtype) < 2:
        raise TypeError(f"nextafter: {x1.dtype!r} is no floating dtype")
    limits = finfo(x1.dtype)
    unit = limits.eps / 2
    tiniest = limits.smallest_normal * limits.eps
    part = unit * (1 + 2 * unit)
    x1, x2 = broadcast_arrays(x1, x2)
    size = _core.abs(x1)
    upwards = _core.where(x2 > x1, 1.0, -1.0).to(x1.dtype)
    near = x1 + upwards * tiniest
    scaled = x1 / unit
    between = (scaled + upwards * (_core.abs(scaled) * part)) * unit
    far = x1 + upwards * (size * part)
    moved = _core.where(size >= tiniest / (2 * unit * unit), far, _core.where(size < tiniest / unit, near, between))
    # from an infinity the largest number; a zero that is reached keeps the sign
    moved = _core.where(_core.isinf(x1), _core.copysign(_core.full_like(x1, limits.max), x1), moved)
    moved = _core.where(moved == 0, _core.copysign(moved, x1), moved)
    return _core.where(_core.logical_or(_core.isnan(x1), _core.isnan(x2)), x1 + x2, _core.where(x1 == x2, x2, moved))


def clip(x, /, min=None, max=None):
    """clip(x, min=None, max=None): x, but min where it is less, and max where it is more."""
    dtype = tensor_of("clip", x).dtype
    for bound, nearer in ((min, _core.maximum), (max, _core.minimum)):
        if bound is None:
            continue
        if isinstance(bound, Tensor):
            x = nearer(*together("clip", x, bound))
        elif kind(dtype) == 2:
            x = nearer(x, _core.scalar_tensor(bound, dtype=dtype, device=x.device))
        else:  # a bound beyond an integer dtype bounds nothing
            x = _core.clamp(x, bound, None) if nearer is _core.maximum else _core.clamp(x, None, bound)
    return _core.alias(x) if min is None and max is None else x.to(dtype)
