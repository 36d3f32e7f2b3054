"""Tenon: tensors with gradients on devices that are plugins.

    import tenon
    x = tenon.randn(64, 784, device="cpu:0")
    w = tenon.randn(784, 10, requires_grad=True)
    loss = tenon.cross_entropy(x @ w, tenon.zeros(64, dtype=tenon.int64))
    loss.backward()

Operators are functions of this module and methods of Tensor, by PyTorch's names; docs/operators.md lists
them. TENON_DEVICE names the device that tensors are made on when they are not told.
"""

from . import _plugins  # noqa: F401  (before the library looks for plugins)
from . import _core

if not _core._in_main_interpreter():
    raise ImportError("tenon works in the main interpreter alone")
from ._core import *  # noqa: F403
from ._core import Tensor, bool, dtype  # noqa: F401
from ._core import _set_anomaly_mode, _set_autocast, _set_grad_enabled, _set_inference_mode
from . import _tensor  # noqa: F401  (what Tensor has that is written in Python)
from ._factories import (arange, asarray, as_tensor, empty, eye, from_numpy, full, linspace, ones, rand, randint, randn,  # noqa: F401
                         randperm, zeros)
from ._modes import (array_promotion, autocast, enable_grad, inference_mode, no_grad, set_anomaly_enabled,  # noqa: F401
                     set_grad_enabled)
from ._graph import Graph  # noqa: F401
from ._profile import profile, profile_range  # noqa: F401
from . import autograd, nn, ops, optim  # noqa: F401

__version__ = _core.version()

float, double, half, int, long, short = (_core.float32, _core.float64, _core.float16, _core.int32, _core.int64,  # noqa: A001
                                         _core.int16)
newaxis = None
inf, nan, pi, e = _core.inf, _core.nan, _core.pi, _core.e

from . import array_api  # noqa: E402, F401  (which has the version)
from .array_api import __array_namespace_info__  # noqa: E402, F401


def __getattr__(name):
    """Modules that bring much of Python's library along are imported when they are asked for."""
    if name in ("data", "library"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
