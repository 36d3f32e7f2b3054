"""__array_namespace_info__: what there is, asked by a program."""

from .. import _core
from ._dtypes import isdtype

_DTYPES = {name: getattr(_core, name)
           for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64")}


class Info:
    """The standard's inspection functions."""

    def capabilities(self):
        """What depends on data may have any shape; how many dimensions an array has at most."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _core._max_rank}

    def default_device(self):
        return _core.default_device()

    def devices(self):
        """Every device of every plugin that works: those that can be found are loaded."""
        found = [_core.default_device()]
        for kind in _core.device_types():
            found += [_core.device(f"{kind}:{i}") for i in range(_core.device_count(kind))]
        return tuple(dict.fromkeys(found))

    def default_dtypes(self, *, device=None):
        return {"real floating": _core.float32, "integral": _core.int64, "indexing": _core.int64}

    def dtypes(self, *, device=None, kind=None):
        """Those of the standard that the device can store, by name; float16 and bfloat16 are ours beside them."""
        where = _core.default_device() if device is None else _core.device(device)
        return {name: dtype for name, dtype in _DTYPES.items()
                if (kind is None or isdtype(dtype, kind)) and where.has_dtype(dtype)}


def __array_namespace_info__():
    """The inspection functions of the namespace."""
    return Info()
