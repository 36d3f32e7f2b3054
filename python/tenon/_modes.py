"""Modes of the calling thread, as context managers and decorators."""

import contextlib

from . import _core


class _Mode(contextlib.ContextDecorator):
    """`_set` puts a value in and returns what was there, which is put back at the end, also where one object is entered again
    within itself."""

    def __init__(self, value):
        self._value, self._before = value, []

    def __enter__(self):
        self._before.append(self._set(self._value))
        return self

    def __exit__(self, *error):
        self._set(self._before.pop())


class set_grad_enabled(_Mode):
    """set_grad_enabled(on): operators are recorded, or not, in a block."""

    _set = staticmethod(_core._set_grad_enabled)

    def __init__(self, on):
        super().__init__(on)


class no_grad(set_grad_enabled):
    """Nothing is recorded in the block, or in the function that it decorates."""

    def __init__(self):
        super().__init__(False)


class enable_grad(set_grad_enabled):
    """Operators are recorded in the block."""

    def __init__(self):
        super().__init__(True)


class inference_mode(_Mode):
    """Results of the block take no part in gradients ever."""

    _set = staticmethod(_core._set_inference_mode)

    def __init__(self, mode=True):
        super().__init__(mode)


class set_anomaly_enabled(_Mode):
    """backward stops at the first NaN, in all threads, and says which operator made it."""

    _set = staticmethod(_core._set_anomaly_mode)

    def __init__(self, on=True):
        super().__init__(on)


class array_promotion(_Mode):
    """Operators of Python between tensors promote as the array API standard has it in the block: a tensor without dimensions
    counts as any other. Elsewhere its dtype gives way, as in PyTorch."""

    _set = staticmethod(_core._set_array_promotion)

    def __init__(self, on=True):
        super().__init__(on)


class autocast(_Mode):
    """autocast(dtype): operators compute in bfloat16 or float16 where docs/autocast.md says so."""

    _set = staticmethod(_core._set_autocast)

    def __init__(self, dtype=_core.bfloat16, enabled=True):
        super().__init__(dtype if enabled else None)
