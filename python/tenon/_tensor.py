"""What Tensor has that is written in Python."""

import math

from . import _core
from ._core import Tensor


class Size(int):
    """How many elements there are: x.size, as the array API has it. Called it is the shape, as PyTorch has it."""

    def __new__(cls, shape):
        self = super().__new__(cls, math.prod(shape))
        self._shape = shape
        return self

    def __call__(self, dim=None):
        """x.size(): the shape; x.size(dim): one of its sizes."""
        if dim is None:
            return self._shape
        if not -len(self._shape) <= dim < len(self._shape):
            raise ValueError(f"size: dimension {dim} is outside of a tensor of {len(self._shape)} dimensions")
        return self._shape[dim]

    def __reduce__(self):
        return int, (int(self),)


class Hook:
    """A hook that is on; remove() takes it off."""

    def __init__(self, registration):
        self._registration = registration

    def remove(self):
        registration, self._registration = self._registration, None
        if registration is not None:
            _core._remove_hook(registration)


def _register_hook(self, hook):
    """register_hook(hook): it is called with the gradient when that is complete, and may return another."""
    return Hook(self._register_hook(hook))


def _numpy(self):
    """numpy(): an array of NumPy over the tensor's memory (bfloat16: of float32, a copy)."""
    import numpy

    source = self.to(_core.float32) if self.dtype is _core.bfloat16 else self
    if source.device.type != "cpu":
        source = source.to("cpu:0")
    return numpy.asarray(memoryview(source))


def _array(self, dtype=None, copy=None):
    import numpy

    if self.requires_grad:
        raise RuntimeError("the tensor requires a gradient, whose history would not see what is written: use detach()")
    made = _numpy(self)
    if dtype is not None and made.dtype != numpy.dtype(dtype):
        if copy is False:
            raise ValueError("a copy is needed, and copy=False forbids it")
        return made.astype(dtype)
    return made.copy() if copy else made


def _array_function(self, function, types, args, kwargs):
    """NumPy's functions, but for ufuncs, take tensors as arrays of their elements, and give arrays."""
    import numpy

    if not all(issubclass(t, (Tensor, numpy.ndarray)) for t in types) or isinstance(kwargs.get("out"), Tensor):
        return NotImplemented

    def arrays(given):
        if isinstance(given, Tensor):
            return numpy.asarray(given)
        if isinstance(given, (list, tuple)):
            return (tuple if isinstance(given, tuple) else list)(map(arrays, given))
        return given

    return function(*(arrays(a) for a in args), **{name: arrays(value) for name, value in kwargs.items()})


def _reduce(self):
    """Pickled by its elements, which come back on the same device."""
    return _rebuild, (self.detach().tobytes(), self.shape, self.dtype, str(self.device), self.requires_grad, type(self))


def _rebuild(data, shape, dtype, device, requires_grad, kind=Tensor):
    made = _of_kind(_core.from_bytes(data, shape, dtype, device), kind)
    return made.requires_grad_() if requires_grad else made


def _of_kind(tensor, kind):
    return tensor if kind is Tensor else Tensor.__new__(kind, tensor)


def _array_namespace(self, /, *, api_version=None):
    """__array_namespace__(): tenon.array_api."""
    from . import array_api

    if api_version not in (None, *array_api.VERSIONS):
        raise ValueError(f"version {api_version!r} of the array API is not there; there are: {', '.join(array_api.VERSIONS)}")
    return array_api


def _to_device(self, device, /, *, stream=None):
    """to_device(device): the tensor there; the array API's name of to."""
    if stream is not None:
        raise ValueError("to_device: a stream is chosen with tenon.set_current_stream, not by an argument")
    return self.to(device)


def _record_stream(self, stream):
    """record_stream(stream): its memory is used on that stream too, and not given to others before the stream has passed here."""
    _core._record_stream(self, stream)


def _copy(self):
    return self.clone()


def _deep_copy(self, memo):
    if not self.is_leaf:
        raise RuntimeError("only leaves can be copied deeply: detach() the tensor first")
    made = _of_kind(self.detach().clone(), type(self)).requires_grad_(self.requires_grad)
    memo[id(self)] = made
    return made


def _imag(self):
    if not self.dtype.is_complex:
        raise AttributeError(f"imag: a tensor of {self.dtype} has no imaginary part; .to(tenon.complex64) makes it complex")
    return _core.imag(self)


def _casts(dtype):
    return lambda self: self.to(dtype)


def _format(self, spec):
    return format(self.item(), spec) if self.ndim == 0 and spec else repr(self)


def _contains(self, value):
    equal = self == value
    return isinstance(equal, Tensor) and equal.any().item()


for name, method in {
    "register_hook": _register_hook, "numpy": _numpy, "__array__": _array, "__array_function__": _array_function,
    "__reduce__": _reduce, "__copy__": _copy, "__deepcopy__": _deep_copy, "__format__": _format, "__contains__": _contains,
    "float": _casts(_core.float32), "double": _casts(_core.float64), "half": _casts(_core.float16),
    "bfloat16": _casts(_core.bfloat16), "long": _casts(_core.int64), "int": _casts(_core.int32),
    "bool": _casts(_core.bool), "cpu": lambda self: self.to("cpu:0"),
    "__array_priority__": 1000, "__array_namespace__": _array_namespace, "to_device": _to_device,
    "record_stream": _record_stream,
    "real": property(_core.real, doc=_core.real.__doc__), "imag": property(_imag, doc=_core.imag.__doc__),
    "__complex__": lambda self: complex(self.item()), "size": property(lambda self: Size(self.shape), doc=Size.__doc__),
}.items():
    setattr(Tensor, name, method)
