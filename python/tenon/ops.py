"""tenon.ops.NAMESPACE.NAME: operators by their names, whoever defined them, also after the import.

They are looked up anew each time, because what is defined may change; keep the function where that takes too long.
"""

from . import _core


class _Namespace:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        function = None if name.startswith("__") else _core._find_op(f"{self._name}::{name}")
        if function is None:
            raise AttributeError(f"there is no operator {self._name}::{name}")
        return function

    def __dir__(self):
        pairs = (full.partition(".")[0].split("::", 1) for full in _core._op_names() if "::" in full)
        return sorted({pair[1] for pair in pairs if pair[0] == self._name})

    def __repr__(self):
        return f"tenon.ops.{self._name}"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Namespace(name)


def __dir__():
    return sorted({full.split("::", 1)[0] for full in _core._op_names() if "::" in full})
