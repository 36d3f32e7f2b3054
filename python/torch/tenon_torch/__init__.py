"""PyTorch on the devices of Tenon: every device of every plugin is an index of one torch device.

    import torch, tenon_torch
    x = torch.randn(64, 784, device="tenon:0")

TENON_TORCH_DEVICES ("npu:0,opencl:0") says which devices there are, and in which order; without it the default
device of Tenon is tenon:0, and every other one of every plugin follows. TENON_TORCH_NAME gives the torch device another name.
"""

import os

import torch

try:
    from tenon import _plugins  # noqa: F401  (plugins that were installed as wheels, and libtenon itself)
except ImportError:
    pass
from . import _C

name = os.environ.get("TENON_TORCH_NAME", "tenon")


def _register():
    """Once, and before anything else of PyTorch's asks for the device."""
    from . import _device

    torch.utils.rename_privateuse1_backend(name)
    torch._register_device_module(name, _device)
    _C.register_all()
    torch.utils.generate_methods_for_privateuse1_backend()
    from . import _decompositions

    _decompositions.register()


_register()

from ._report import fallback_count, report  # noqa: E402,F401


def devices():
    """The names that Tenon has for the devices, in the order of their indices: ["npu:0", "cpu:0"]."""
    return _C.devices()


__version__ = _C.version()
