"""What makes tensors: the operators, with requires_grad, and sizes as one list or as several numbers."""

from . import _core


def _factory(name):
    operator = getattr(_core, name)

    def make(*args, requires_grad=False, **named):
        made = operator(*args, **named)
        return made.requires_grad_() if requires_grad else made

    make.__name__ = make.__qualname__ = name
    make.__doc__ = operator.__doc__
    return make


empty, zeros, ones, rand, randn, randint, randperm, eye, linspace = map(
    _factory, ("empty", "zeros", "ones", "rand", "randn", "randint", "randperm", "eye", "linspace"))


def full(size, fill_value, *, dtype=None, device=None, requires_grad=False):
    """full(size, fill_value): every element is fill_value."""
    size = (size,) if isinstance(size, int) else size
    if isinstance(fill_value, complex) or isinstance(fill_value, int) and fill_value >= 2 ** 63:
        made = _core.tensor(fill_value, dtype=dtype, device=device).expand(size).clone()
    else:
        made = _core.full(size, fill_value, dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def arange(start, end=None, step=1, *, dtype=None, device=None, requires_grad=False):
    """arange(end) or arange(start, end, step=1): numbers from start on, below end."""
    if end is None:
        start, end = 0, start
    made = _core.arange(start, end, step, dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


def asarray(data, *, dtype=None, device=None, copy=None):
    """asarray(data): a tensor of what `data` has, over the same memory where that can be and copy is not True."""
    if isinstance(data, _core.Tensor):
        if dtype is None and device is None and not copy:
            return data
        made = data.to(dtype=dtype, device=device, copy=copy is True)
        if copy is False and (made.dtype is not data.dtype or made.device != data.device):
            raise ValueError("a copy is needed, and copy=False forbids it")
        return made
    if copy is not True and hasattr(data, "__dlpack__"):
        shared = _core.from_dlpack(data)
        return asarray(shared, dtype=dtype, device=device, copy=copy)
    if copy is False:
        raise ValueError(f"a {type(data).__name__} is copied, and copy=False forbids it")
    return _core.tensor(data, dtype=dtype, device=device)


def as_tensor(data, dtype=None, device=None):
    """as_tensor(data): asarray by PyTorch's name."""
    return asarray(data, dtype=dtype, device=device)


def from_numpy(array):
    """from_numpy(array): a tensor over the array's memory."""
    return _core.from_dlpack(array)
