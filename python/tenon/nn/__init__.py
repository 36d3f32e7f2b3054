"""Layers by PyTorch's names, with its initialisation and its names of parameters."""

from . import functional, init  # noqa: F401
from .layers import *  # noqa: F401, F403
from .module import Module, ModuleDict, ModuleList, Parameter, Sequential  # noqa: F401
