"""Calls of operators: argument lists in the notation of operators.toml, spread over dtypes, layouts, forms and
values.

A list has one tensor or more of the dtype T that the call is made for: f(2, 3), pos, away, apart, rising, unit
(in (0, 1]), above (in [2, 8)), and beyond those of operators.toml wide (all magnitudes), special and listed (inputs.py's list, at random or in order),
strewn (one in five of the list). A last argument in quotes fixes the dtype: f(2, 3, 'i64'). In an argument's place,
'T' stands for T.
"""

import ast
from dataclasses import dataclass, field

from inputs import DTYPES, FLOATS, Tensor

KINDS = {"f": "any", "mask": "mask", "idx": "idx"}
FIXED = {"mask": "bool", "idx": "i64"}  # dtypes of kinds that have their own
LAYOUTS = ("strided", "transposed", "offset", "expanded")
SCALARS = [2, -3, 0, 1.5, 0.3, -0.25, True, 300, -1, float("inf"), float("nan")]


class Dtype(str):
    """A dtype as an argument."""


@dataclass
class Call:
    op: object  # of the table
    args: list
    gradient: bool = False
    differs: str = ""
    lacks_gradient: str = ""  # why PyTorch gives none
    tensors: list = field(default_factory=list, repr=False)

    def __post_init__(self):
        for arg in self.args:
            self.tensors += [t for t in (arg if isinstance(arg, list) else [arg]) if isinstance(t, Tensor)]

    def __str__(self):
        return f"{self.op.schema.name}({', '.join(text(a) for a in self.args)})"

    def complete(self):
        """All arguments, those left out by their defaults."""
        rest = self.op.schema.args[len(self.args):]
        return self.args + [(a.default,) * a.n_ints if a.n_ints and isinstance(a.default, int) else a.default for a in rest]


def text(arg):
    """An argument as inputs.c reads it."""
    if isinstance(arg, list):
        return "{" + "; ".join(map(str, arg)) + "}"
    if isinstance(arg, Dtype):
        return "@" + arg
    if isinstance(arg, tuple):
        return "(" + ",".join(map(str, arg)) + ")"
    return repr(arg) if isinstance(arg, (str, float)) else str(arg)


# ---- reading an argument list --------------------------------------------------------------------


def tensor(node, dtype):
    name = node.func.id
    values = [ast.literal_eval(a) for a in node.args]
    fixed = values.pop() if values and isinstance(values[-1], str) else FIXED.get(name, dtype)
    kind = KINDS.get(name, name) + (str(values.pop(0)) if name == "idx" else "")
    layout = next((ast.literal_eval(k.value) for k in node.keywords if k.arg == "layout"), "dense")
    return Tensor(kind, fixed, tuple(values), layout)


def argument(schema_arg, node, dtype):
    if isinstance(node, ast.Call):
        return tensor(node, dtype)
    if schema_arg.kind == "tensors":
        return [tensor(e, dtype) if isinstance(e, ast.Call) else None for e in node.elts]
    value = ast.literal_eval(node)
    if value is None:
        return None
    if schema_arg.kind == "dtype":
        return Dtype(dtype if value == "T" else value)
    if schema_arg.kind == "ints":
        return (value,) * max(schema_arg.n_ints, 1) if isinstance(value, int) else tuple(value)
    return float(value) if schema_arg.kind == "float" else value


def read(op, sample, dtype):
    """The arguments of a sample for an operator (of any form but out)."""
    nodes = ast.parse(f"({sample},)" if sample else "()", mode="eval").body.elts
    if len(nodes) > len(op.schema.args):
        raise SystemExit(f"{op.schema.name}: '{sample}' has too many arguments")
    return [argument(a, node, dtype) for a, node in zip(op.schema.args, nodes)]


def relaid(args, layout):
    """The arguments with tensors of another layout; expanded ones keep at least a dimension."""
    def one(t):
        return Tensor(t.kind, t.dtype, t.sizes, layout) if isinstance(t, Tensor) else t
    return [[one(t) for t in a] if isinstance(a, list) else one(a) for a in args]


# ---- the operators of one element ----------------------------------------------------------------


def is_pointwise(op, section):
    return op.kind == "pointwise" or section.startswith("pointwise") or section == "comparisons" \
        or op.functional.name in ("masked_fill.Scalar",)


def reshaped(args, shapes, kinds=None, dtypes=None):
    """The arguments with tensors of those shapes, kinds and dtypes; masks stay masks."""
    out, tensors = [], iter(range(99))
    for arg in args:
        if isinstance(arg, Tensor):
            i = next(tensors)
            fixed = arg.kind == "mask"
            kind = kinds[i % len(kinds)] if kinds and not fixed else arg.kind
            dtype = dtypes[i % len(dtypes)] if dtypes and not fixed else arg.dtype
            arg = Tensor(kind, dtype, shapes[i % len(shapes)])
        out.append(arg)
    return out


ONE = [[()], [(0,)], [(1,)], [(17,)], [(2, 0, 3)], [(5, 1, 7)], [(67,)]]
SEVERAL = [[(3, 5), (5,), ()], [(1,), (4, 1), (4, 3)], [(0,), (1,), (1,)], [(67,), (67,), (1,)], [(2, 1, 3), (4, 1), (2, 4, 3)],
           [(), (), ()], [(), (3,), (1, 1)]]


TAME = {"listed": "tamed", "special": "tame", "strewn": "tame"}


def spread_pointwise(op, base, tame):
    """Shapes, values, pairs of dtypes and scalars, from the arguments of a sample for one dtype. `tame`: of a formula
    whose steps overflow where another's do not."""
    def valued(args, shapes, kind):
        return reshaped(args, shapes, [TAME.get(kind, kind) if tame else kind])
    tensors = [a for a in base if isinstance(a, Tensor)]
    free = [t for t in tensors if t.kind != "mask"]
    dtype = free[0].dtype if free else "bool"
    n = len(tensors)
    for shapes in ONE if n == 1 else SEVERAL:
        yield reshaped(base, shapes)
    if n == 1:
        yield valued(base, [(24,)], "listed")
        yield valued(base, [(37,)], "wide")
        yield valued(base, [(5, 9)], "special")
    elif n == 2:
        k = 24 if dtype in FLOATS else 13
        yield valued(base, [(k, 1), (k,)], "listed")
        yield valued(base, [(40,)], "wide")
        yield valued(base, [(30,)], "special")
    else:
        yield valued(base, [(40,)], "wide")
        yield valued(base, [(60,)], "special")
        yield valued(base, [(40,)], "strewn")
    if len(free) >= 2:
        order = list(DTYPES)
        for other in order:
            if other == dtype:
                continue
            # All pairs for the operators that promotion is known by, a part of them for the others.
            turn = order.index(dtype) + 2 * order.index(other) + sum(map(ord, op.schema.name))
            if op.schema.base in ("add", "mul", "eq") or turn % 3 == 0:
                yield reshaped(base, [(2, 3), (3,), (2, 1)], None, [dtype, other, other])
            if len(free) == 2 and turn % 4 == 1:
                yield reshaped(base, [(5,), (), ()], None, [dtype, other, other])
    places = [i for i, a in enumerate(op.schema.args) if a.type in ("Scalar", "Scalar?") and i < len(base)]
    for place in places:
        for scalar in SCALARS:
            if scalar == 0.3 and op.schema.base in ("pow", "floor_divide", "remainder", "fmod", "div"):
                continue  # where its rounding decides
            yield base[:place] + [scalar] + base[place + 1:]
            if len(places) == 1 and dtype in ("f32", "bf16", "i64", "u8") and not isinstance(scalar, bool):
                yield valued(base[:place] + [scalar] + base[place + 1:], [(13,)], "listed" if n == 1 else "strewn")


# ---- spreading -----------------------------------------------------------------------------------


def depends_on_dtype(sample):
    return "'T'" in sample or any(isinstance(node, ast.Call) and not any(
        isinstance(a, ast.Constant) and isinstance(a.value, str) for a in node.args) and node.func.id not in FIXED
        for node in ast.walk(ast.parse(f"({sample},)" if sample else "()")))


def dtypes_of(k, dtypes):
    """The dtypes of sample k: all for the first, f32 and some of the others in turn for the rest."""
    rest = dtypes[1:]
    return dtypes if k == 0 else dtypes[:1] + tuple(rest[(4 * k + j) % len(rest)] for j in range(4))


def layouts_of(k, dtype):
    if k == 0:
        return LAYOUTS if dtype in ("f32", "bf16", "i64", "u8", "bool") else ()
    return (LAYOUTS[k % 4],) if dtype == "f32" else ()


def spread(op, samples, section, tame):
    """The argument lists of an operator's functional form."""
    dtypes = tuple(DTYPES)
    is_spread = not is_pointwise(op, section)
    for k, sample in enumerate(samples):
        for dtype in dtypes_of(k, dtypes) if depends_on_dtype(sample) else dtypes[:1]:
            args = read(op, sample, dtype)
            yield args
            tensors = Call(op, args).tensors
            if any(t.layout == "dense" for t in tensors) and "geometry" not in op.entry.get("check", []):
                for layout in layouts_of(k, dtype):
                    if layout != "expanded" or not op.native_inplace:
                        yield relaid(args, layout)
            if not is_spread and depends_on_dtype(sample):
                for other in spread_pointwise(op, args, tame):
                    yield other
        is_spread |= depends_on_dtype(sample)


def written_forms(forms, args):
    """The in-place and out forms that the arguments suit."""
    for form in forms:
        is_written = form.form == "inplace" and isinstance(args[0], Tensor) and args[0].layout != "expanded"
        if is_written or form.form == "out":
            yield form


def numbered(args, counter):
    """The arguments, each tensor with a seed of its own."""
    def one(t):
        return Tensor(t.kind, t.dtype, t.sizes, t.layout, next(counter)) if isinstance(t, Tensor) else t
    return [[one(t) for t in a] if isinstance(a, list) else one(a) for a in args]
