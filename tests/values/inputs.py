"""Values of inputs: a hash of seed and position, mapped to numbers that every dtype holds exactly. The
same in inputs.c, so that calls are stored and their inputs are not.

A tensor is written KIND:DTYPE[SIZES]LAYOUT#SEED, such as `any:f32[2,3]strided#17`; the layout is left out
where it is dense. Layouts are those of the conformance suite.
"""

import math
from dataclasses import dataclass, field

import torch

DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
          "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
          "bool": torch.bool}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FLOATS = ("f32", "f64", "f16", "bf16")
INTS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8}
# Bits after the point of a significand that `any` and `away` use; f32 and f64 share their values.
BITS = {"f32": 22, "f64": 22, "f16": 10, "bf16": 7}
EXPONENTS = {"f32": 20, "f64": 20, "f16": 6, "bf16": 20}  # of `wide`
# Bits of a significand with the implied one, the largest exponent and the least of a normal number.
FORMS = {"f32": (24, 127, -126), "f64": (53, 1023, -1022), "f16": (11, 15, -14), "bf16": (8, 127, -126)}
N_TAME = 11  # of the special values, finite and moderate
MASK = (1 << 64) - 1


def hashed(seed, i):
    x = (seed * 0x9E3779B97F4A7C15 + i * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def special(dtype):
    """What floating arithmetic goes wrong at. The position in the list is the position in inputs.c."""
    bits, top, bottom = FORMS[dtype]
    largest, normal, least = math.ldexp(2 - 2.0 ** (1 - bits), top), math.ldexp(1, bottom), math.ldexp(1, bottom - bits + 1)
    return [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.25, math.inf, -math.inf, math.nan, largest, -largest,
            normal, -normal, least, least - normal, 2.0**-10, 88.5, -104.0, 2.0**-20]


def wrap(x, dtype):
    bits = INTS[dtype]
    x &= (1 << bits) - 1
    return x if dtype == "u8" or x < 1 << (bits - 1) else x - (1 << bits)


def whole_special(dtype):
    bits = INTS[dtype]
    low, high = (0, 255) if dtype == "u8" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return [wrap(x, dtype) for x in (0, 1, -1, 2, -2, 7, -8, high, low, high - 1, low + 1, 100, -100)]


def value(kind, dtype, h, i):
    """Element i of a kind other than `apart`, whose hash is h."""
    if kind.startswith("idx"):
        return h % int(kind[3:])
    if kind == "mask" or dtype == "bool":
        return i & 1 if kind in ("special", "listed", "tame", "tamed") else h & (kind != "zero")
    if kind == "listed":
        table = special(dtype) if dtype in FLOATS else whole_special(dtype)
        return table[i % len(table)]
    if dtype in INTS:
        if kind == "zero":
            return 0
        if kind == "tamed":
            return whole_special(dtype)[i % len(whole_special(dtype))]
        if kind in ("special", "tame"):
            table = whole_special(dtype)
            return table[h % len(table)]
        if kind == "wide":
            return wrap(h, dtype)
        if kind in ("any", "strewn"):
            return h % 19 - (0 if dtype == "u8" else 9)
        if kind in ("pos", "unit", "above"):
            return 1 + h % 9
        return (1 + h % 9) * (-1 if h >> 40 & 1 and dtype != "u8" else 1)  # away
    bits = BITS[dtype]
    sign = -1 if h >> 40 & 1 else 1
    significand = 1 + (h & ((1 << bits) - 1)) / (1 << bits)
    if kind == "any":
        return ((h & ((1 << (bits + 1)) - 1)) - (1 << bits)) / (1 << (bits - 1))
    if kind == "pos":
        return math.ldexp(significand, -(h >> 41 & 1))
    if kind == "away":
        return sign * math.ldexp(significand, -(h >> 41 & 1))
    if kind == "above":
        return math.ldexp(significand, 2 - (h >> 41 & 1))
    if kind == "unit":
        return (significand - 1) / 2 + 2.0**-bits if h >> 41 & 1 else 1 - (significand - 1) / 2
    if kind == "wide":
        return sign * math.ldexp(significand, (h >> 41) % (2 * EXPONENTS[dtype] + 1) - EXPONENTS[dtype])
    if kind == "special":
        table = special(dtype)
        return table[h % len(table)]
    if kind in ("tame", "tamed"):
        return special(dtype)[(h if kind == "tame" else i) % N_TAME]
    if kind == "zero":
        return 0.0
    if kind == "strewn":  # one in five
        table = special(dtype)
        return table[(h >> 8) % len(table)] if (h >> 48) % 5 == 0 else value("any", dtype, h, i)
    raise ValueError(kind)


def values(kind, dtype, seed, n):
    hashes = [hashed(seed, i) for i in range(n)]
    if kind in ("apart", "rising"):
        order = sorted(range(n), key=lambda i: (hashes[i], i))
        rank = [0] * n
        for place, i in enumerate(order):
            rank[i] = place
        if kind == "rising":  # in order, two of each
            rank = [i // 2 * 2 for i in range(n)]
        if dtype == "bool":
            return [int(r >= n // 2) if kind == "rising" else r & 1 for r in rank]
        if dtype in INTS:
            return [wrap(r - (0 if dtype == "u8" else n // 2), dtype) for r in rank]
        return [(r - n // 2) * 0.25 + 0.125 for r in rank]
    return [value(kind, dtype, h, i) for i, h in enumerate(hashes)]


def store(numbers, sizes, dtype):
    """A tensor of exactly these numbers."""
    if dtype == "f64":
        return torch.tensor(numbers, dtype=torch.float64).reshape(sizes)
    if dtype in FLOATS:
        return torch.tensor(numbers, dtype=torch.float64).to(DTYPES[dtype]).reshape(sizes)
    return torch.tensor(numbers, dtype=DTYPES[dtype]).reshape(sizes)


def upstream(i, dtype, shape):
    """The gradient of result i that a backward pass begins with."""
    return store(values("any", dtype, 1 + i, math.prod(shape)), tuple(shape), dtype)


def tangent(i, given):
    """The direction that floating input i is moved along in forward mode."""
    return store(values("any", given.dtype, 101 + i, math.prod(given.sizes)), given.sizes, given.dtype)


@dataclass
class Tensor:
    """An input of a call."""

    kind: str
    dtype: str
    sizes: tuple
    layout: str = "dense"
    seed: int = 0
    made: object = field(default=None, repr=False, compare=False)

    def __str__(self):
        layout = "" if self.layout == "dense" else self.layout
        return f"{self.kind}:{self.dtype}[{','.join(map(str, self.sizes))}]{layout}#{self.seed}"

    @property
    def is_float(self):
        return self.dtype in FLOATS

    def tensor(self):
        """Its values; where the layout is `expanded`, the first slice repeated. Dense."""
        if self.made is None:
            n = math.prod(self.sizes)
            if self.layout == "expanded" and self.sizes and n:
                first = n // self.sizes[0]
                one = store(values(self.kind, self.dtype, self.seed, first), (1,) + self.sizes[1:], self.dtype)
                self.made = one.expand(self.sizes).contiguous()
            else:
                self.made = store(values(self.kind, self.dtype, self.seed, n), self.sizes, self.dtype)
        return self.made.clone()


def raw(t):
    """The elements as they are stored: little-endian, row-major."""
    t = t.detach().contiguous()
    if t.dtype == torch.bool:
        t = t.to(torch.uint8)
    return bytes(t.flatten().view(torch.uint8).numpy().tobytes()) if t.numel() else b""
