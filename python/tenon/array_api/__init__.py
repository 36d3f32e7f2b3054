"""The Python array API standard for Tenon's tensors: what Tensor.__array_namespace__ gives.

    xp = x.__array_namespace__()
    y = xp.mean(x, axis=0, keepdims=True)

Names and arguments are the standard's, where tenon's own are PyTorch's. docs/python.md says what is left out, and
docs/reports/array-api.md how the standard's public tests come out.
"""

from .. import __version__  # noqa: F401
from .._core import (bfloat16, bool, e, float16, float32, float64, inf, int8, int16, int32, int64, nan, pi,  # noqa: A004, F401
                     uint8)
from . import _creation, _dtypes, _elementwise, _info, _manipulation, _searching, _statistics, linalg
from ._info import __array_namespace_info__  # noqa: F401
from .linalg import matmul, matrix_transpose, tensordot, vecdot  # noqa: F401

__array_api_version__ = "2025.12"
# each is a superset of those before, but for lists that became tuples
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

newaxis = None

_FUNCTIONS = {
    _creation: "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu "
               "zeros zeros_like",
    _dtypes: "astype can_cast finfo iinfo isdtype result_type",
    _elementwise: "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or "
                  "bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor "
                  "floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log10 log1p log2 "
                  "logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter "
                  "not_equal positive pow real reciprocal remainder round sign signbit sin sinh sqrt square subtract tan "
                  "tanh trunc",
    _manipulation: "broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis permute_dims repeat "
                   "reshape roll squeeze stack tile unstack",
    _searching: "argmax argmin argsort isin nonzero searchsorted sort take take_along_axis unique_all unique_counts "
                "unique_inverse unique_values where",
    _statistics: "all any count_nonzero cumulative_prod cumulative_sum diff max mean min prod std sum var",
}
for _module, _names in _FUNCTIONS.items():
    globals().update({name: getattr(_module, name) for name in _names.split()})

__all__ = (" ".join(_FUNCTIONS.values()) + " matmul matrix_transpose tensordot vecdot linalg bool int8 int16 int32 int64 uint8 "
           "float16 bfloat16 float32 float64 e inf nan newaxis pi __array_api_version__ __array_namespace_info__").split()
