"""What makes arrays."""

from .. import _core, _factories


def _sizes(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _made_of(operator):
    def make(shape, *, dtype=None, device=None):
        return operator(_sizes(shape), dtype=dtype, device=device)

    make.__name__ = make.__qualname__ = operator.__name__
    make.__doc__ = operator.__doc__
    return make


def _made_like(operator):
    def make(x, /, *, dtype=None, device=None):
        return operator(x, dtype=dtype, device=device)

    make.__name__ = make.__qualname__ = operator.__name__
    make.__doc__ = operator.__doc__
    return make


empty, zeros, ones = map(_made_of, (_core.empty, _core.zeros, _core.ones))
empty_like, zeros_like, ones_like = map(_made_like, (_core.empty_like, _core.zeros_like, _core.ones_like))


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """asarray(obj): an array of what obj has; copy=True never shares its memory, copy=False refuses to copy."""
    return _factories.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x, /, *, device=None, copy=None):
    """from_dlpack(x): an array over the memory of an array of another library."""
    return _core.from_dlpack(x, device=device, copy=copy)


def full(shape, fill_value, *, dtype=None, device=None):
    """full(shape, fill_value): every element is fill_value."""
    return _core.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    """full_like(x, fill_value): full of x's shape, dtype and device."""
    return _core.full_like(x, fill_value, dtype=dtype, device=device)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """arange(stop) or arange(start, stop, step=1): from start on, before stop; empty where step leads away from it."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: a step of 0 leads nowhere")
    if (stop - start) * step <= 0:
        if dtype is None:
            dtype = _core.float32 if any(isinstance(n, float) for n in (start, stop, step)) else _core.int64
        return _core.empty((0,), dtype=dtype, device=device)
    return _core.arange(start, stop, step, dtype=dtype, device=device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """linspace(start, stop, num): num numbers from start to stop, which is the last unless endpoint is False."""
    if dtype is None:
        dtype = _core.float32
    if endpoint or num == 0:
        return _core.linspace(start, stop, num, dtype=dtype, device=device)
    return _core.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """eye(n_rows, n_cols=n_rows): ones on diagonal k, zeros beside it."""
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return _core.eye(n_rows, n_cols, dtype=dtype, device=device)
    made = _core.zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        _core.diagonal(made, k).fill_(1)
    return made


def tril(x, /, *, k=0):
    """tril(x): the elements of matrices on diagonal k and below, zeros above."""
    return _core.tril(x, _diagonal(k, x))


def triu(x, /, *, k=0):
    """triu(x): the elements of matrices on diagonal k and above, zeros below."""
    return _core.triu(x, _diagonal(k, x))


def _diagonal(k, x):
    """k, or the next diagonal beyond the matrix: numbers may be larger than an operator takes."""
    beyond = max(x.shape[-2:], default=0) + 1
    return max(-beyond, min(k, beyond))


def meshgrid(*arrays, indexing="xy"):
    """meshgrid(*arrays): each vector as an array that varies along its own dimension."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    if not arrays:
        return ()
    return tuple(_core.meshgrid(list(arrays), indexing=indexing))
