"""Where Tenon differs from PyTorch on purpose: the rules of docs/values.md, by name. A call that one applies to
is marked with it, and its expectation is what the page promises; or it is left out where the page promises
nothing.
"""

import torch

from inputs import FLOATS, INTS, Tensor


class LeftOut(Exception):
    """A call that docs/values.md promises nothing about."""


def tensors(call):
    return [t.tensor() for t in call.tensors]


def scalar(call, name):
    return next((v for a, v in zip(call.op.schema.args, call.complete()) if a.name == name), None)


# ---- calls that PyTorch refuses ------------------------------------------------------------------


def wrapped(x, dtype):
    """Python's integers in a dtype."""
    bits, signed = torch.iinfo(dtype).bits, torch.iinfo(dtype).min < 0
    x &= (1 << bits) - 1
    return x - (1 << bits) if signed and x >> (bits - 1) else x


def whole(call, function):
    """function(a, b) for each pair of integers, in the dtype that they promote to."""
    a, b = call.complete()[:2]
    a = a.tensor()
    b = b.tensor() if isinstance(b, Tensor) else torch.tensor(b)
    dtype = torch.result_type(a, b) if b.dim() else torch.result_type(a, b.item())
    if dtype.is_floating_point or dtype == torch.bool:
        return None
    a, b = torch.broadcast_tensors(a.to(dtype), b.to(dtype))
    got = [wrapped(function(x, y), dtype) for x, y in zip(a.flatten().tolist(), b.flatten().tolist())]
    dtype = call.op.form == "inplace" and call.args[0].tensor().dtype or dtype
    return [torch.tensor(got, dtype=dtype).reshape(a.shape)]


def power(x, n):
    return x**n if n >= 0 else (1 if x == 1 else 0 if x != -1 else 1 if n % 2 == 0 else -1)


def truncated(x, y):
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def instead(call):
    """Results of a call that PyTorch refuses and docs/values.md defines, else None."""
    base = call.op.functional.base
    integers = all(not t.is_float for t in call.tensors)
    if not integers or base not in ("floor_divide", "remainder", "div", "pow"):
        return None
    if base == "pow":
        call.differs = "integer-to-a-negative-power"
        return whole(call, power)
    call.differs = "integer-division-by-zero"
    if base == "div":
        mode = scalar(call, "rounding_mode")
        return whole(call, truncated if mode == "trunc" else lambda x, y: y and x // y) if mode else None
    return whole(call, lambda x, y: y and (x // y if base == "floor_divide" else x % y))


# ---- results that differ -------------------------------------------------------------------------


def sign_of_nan(call, results, gradients):
    x = tensors(call)[0]
    if not x.is_floating_point() or not x.isnan().any():
        return False
    results[0].native[x.isnan()] = float("nan")
    return True


def is_narrowing(call, results):
    """Does some floating number become an integer that does not hold it?"""
    low_high = {d: (-(2.0 ** (b - 1)), 2.0 ** (b - 1)) if d != "u8" else (0.0, 256.0) for d, b in INTS.items()}
    for r in results:
        if r.dtype in INTS:
            low, high = low_high[r.dtype]
            for t in call.tensors:
                x = t.tensor().double()
                if t.is_float and bool((~x.isfinite() | (x.trunc() < low) | (x.trunc() >= high)).any()):
                    return True
    return False


CASTS = ("to", "to.dtype", "to_copy", "copy_")

RESULTS = {"sign": [("sign-of-nan", sign_of_nan)], "sign_": [("sign-of-nan", sign_of_nan)], "sign.out": [("sign-of-nan", sign_of_nan)]}


def applied(call, results, gradients):
    if call.op.schema.name in CASTS and is_narrowing(call, results):
        raise LeftOut("float-to-integer")
    for name, rule in RESULTS.get(call.op.schema.name, []):
        if rule(call, results, gradients):
            call.differs = name
    return results, gradients
