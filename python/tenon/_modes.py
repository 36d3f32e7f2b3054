"""Modes of the calling thread, as context managers and decorators."""

import contextlib

from . import _core


class _Mode(contextlib.ContextDecorator):
    """What `enter` returns is given back to `leave`, also where one object is entered again within itself."""

    def __init__(self):
        self._before = []

    def __enter__(self):
        self._before.append(self._enter())
        return self

    def __exit__(self, *error):
        self._leave(self._before.pop())


class set_grad_enabled(_Mode):
    """set_grad_enabled(on): operators are recorded, or not, in a block."""

    def __init__(self, on):
        super().__init__()
        self._on = on

    def _enter(self):
        return _core._set_grad_enabled(self._on)

    def _leave(self, before):
        _core._set_grad_enabled(before)


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

    def __init__(self, mode=True):
        super().__init__()
        self._mode = mode

    def _enter(self):
        return _core._set_inference_mode(self._mode)

    def _leave(self, before):
        _core._set_inference_mode(before)


class set_anomaly_enabled(_Mode):
    """backward stops at the first NaN, in all threads, and says which operator made it."""

    def __init__(self, on=True):
        super().__init__()
        self._on = on

    def _enter(self):
        return _core._set_anomaly_mode(self._on)

    def _leave(self, before):
        _core._set_anomaly_mode(before)


class array_promotion(_Mode):
    """Operators of Python between tensors promote as the array API standard has it in the block: a tensor without dimensions
    counts as any other. Elsewhere its dtype gives way, as in PyTorch."""

    def __init__(self, on=True):
        super().__init__()
        self._on = on

    def _enter(self):
        return _core._set_array_promotion(self._on)

    def _leave(self, before):
        _core._set_array_promotion(before)


class autocast(_Mode):
    """autocast(dtype): operators compute in bfloat16 or float16 where docs/autocast.md says so."""

    def __init__(self, dtype=_core.bfloat16, enabled=True):
        super().__init__()
        self._dtype = dtype if enabled else None

    def _enter(self):
        return _core._set_autocast(self._dtype)

    def _leave(self, before):
        _core._set_autocast(before)
