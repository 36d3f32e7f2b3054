"""Dtypes: what they are, and what becomes of two."""

from dataclasses import dataclass

from .. import _core
from .._core import Tensor
from ._common import with_number

_SIGNED = (_core.int8, _core.int16, _core.int32, _core.int64)
_UNSIGNED = (_core.uint8, _core.uint16, _core.uint32, _core.uint64)
_COMPLEX = (_core.complex64, _core.complex128)
_REAL = (_core.float32, _core.float64, _core.float16, _core.bfloat16)

KINDS = {"bool": (_core.bool,), "signed integer": _SIGNED, "unsigned integer": _UNSIGNED, "integral": _SIGNED + _UNSIGNED,
         "real floating": _REAL, "complex floating": _COMPLEX, "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX}


@dataclass(frozen=True)
class finfo_object:
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: object


@dataclass(frozen=True)
class iinfo_object:
    bits: int
    max: int
    min: int
    dtype: object


# of the significand, the hidden bit included, and the largest exponent
_FLOATS = {_core.float16: (11, 15), _core.bfloat16: (8, 127), _core.float32: (24, 127), _core.float64: (53, 1023)}


_PARTS = {_core.complex64: _core.float32, _core.complex128: _core.float64}


def _dtype_of(x):
    return x.dtype if isinstance(x, Tensor) else x


def finfo(type, /):
    """finfo(dtype or array): limits of a floating dtype, or of the parts of a complex one."""
    dtype = _PARTS.get(_dtype_of(type), _dtype_of(type))
    if dtype not in _FLOATS:
        raise ValueError(f"finfo: {dtype!r} is no floating dtype")
    precision, exponent = _FLOATS[dtype]
    largest = (2 - 2.0 ** (1 - precision)) * 2.0 ** exponent
    return finfo_object(bits=dtype.itemsize * 8, eps=2.0 ** (1 - precision), max=largest, min=-largest,
                        smallest_normal=2.0 ** (1 - exponent), dtype=dtype)


def iinfo(type, /):
    """iinfo(dtype or array): limits of an integer dtype."""
    dtype = _dtype_of(type)
    if dtype not in KINDS["integral"]:
        raise ValueError(f"iinfo: {dtype!r} is no integer dtype")
    bits = dtype.itemsize * 8
    low = -2 ** (bits - 1) if dtype.is_signed else 0
    return iinfo_object(bits=bits, max=low + 2 ** bits - 1, min=low, dtype=dtype)


def isdtype(dtype, kind):
    """isdtype(dtype, kind): is it that dtype, of that kind, or of one of a tuple of them?"""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: there is no kind '{kind}'; there are: {', '.join(KINDS)}")
        return dtype in KINDS[kind]
    return dtype is kind


def result_type(*arrays_and_dtypes):
    """result_type(arrays, dtypes, numbers): what they promote to; numbers count by their kind alone."""
    typed = [_dtype_of(x) for x in arrays_and_dtypes if isinstance(x, (Tensor, _core.dtype))]
    if not typed:
        raise ValueError("result_type: one argument at least must be an array or a dtype")
    dtype = typed[0]
    for other in typed[1:]:
        dtype = _core.promote_types(dtype, other)
    for x in arrays_and_dtypes:
        if not isinstance(x, (Tensor, _core.dtype)):
            dtype = with_number(dtype, x)
    return dtype


def can_cast(from_, to, /):
    """can_cast(from_, to): does promotion lead there?"""
    try:
        return _core.promote_types(_dtype_of(from_), to) is to
    except TypeError:  # the two promote to none
        return False


def astype(x, dtype, /, *, copy=True, device=None):
    """astype(x, dtype): x as dtype; a fresh array, or x itself where it is that already and copy is False."""
    return x.to(dtype=dtype, device=x.device if device is None else device, copy=copy)
