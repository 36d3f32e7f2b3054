"""What the Python package has of each operator: methods.inc, its methods, and _core.pyi, its types."""

import keyword

TYPES = {
    "Tensor": "Tensor", "Tensor?": "Tensor | None", "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]", "int": "int", "int?": "int | None", "int[]": "Sequence[int]",
    "int[]?": "Sequence[int] | None", "float": "float", "bool": "bool", "Scalar": "Number",
    "Scalar?": "Number | None", "ScalarType": "DType", "ScalarType?": "DType | None", "Device": "Device",
    "Device?": "Device | None", "str": "str",
}


def packets(table):
    """{name: [operator]} in the order of the table."""
    found = {}
    for op in table.ops:
        found.setdefault(op.schema.base, []).append(op)
    return found


def is_method(ops):
    """Those that begin with `self`, a tensor."""
    first = ops[0].schema.args[:1]
    return bool(first) and first[0].name == "self" and first[0].type == "Tensor"


def text_of(ops):
    return "\n".join(op.schema.text for op in ops) + "\n\n" + ops[0].entry["doc"]


def c_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def methods(table):
    lines = ["/* Generated from operators.toml. Do not edit. */\n"]
    for name, ops in packets(table).items():
        if is_method(ops):
            lines.append(f"TNP_METHOD({name}, {c_string(text_of(ops))})\n")
    return "".join(lines)


HEAD = '''\
"""Generated from operators.toml: the types of tenon's operators. What is written by hand is in __init__.pyi's place."""

from collections.abc import Sequence
from typing import Any, Optional, Union, overload

Number = Union[int, float, bool]


class dtype:
    name: str
    itemsize: int
    is_floating_point: bool
    is_signed: bool


class device:
    type: str
    index: int
    product: str
    def __init__(self, name: Union[str, "device", None] = None) -> None: ...


DType = Union[dtype, str, type]
Device = Union[device, str]

'''

TENSOR_HEAD = '''
class Tensor:
    shape: tuple[int, ...]
    ndim: int
    dtype: dtype
    device: device
    itemsize: int
    nbytes: int
    T: "Tensor"
    mT: "Tensor"
    requires_grad: bool
    grad: Optional["Tensor"]
    is_leaf: bool
    grad_fn: Optional[str]
    def tolist(self) -> Any: ...
    def item(self) -> Number: ...
    def backward(self, gradient: Optional["Tensor"] = None, retain_graph: Optional[bool] = None,
                 create_graph: bool = False) -> None: ...
    def requires_grad_(self, requires_grad: bool = True) -> "Tensor": ...
    def __getitem__(self, key: Any) -> "Tensor": ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __len__(self) -> int: ...
'''
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")


def parameter(arg):
    name = arg.name + "_" if keyword.iskeyword(arg.name) else arg.name
    kind = TYPES[arg.type]
    if arg.n_ints:
        kind = "int | " + kind
    return f"{name}: {kind}" + (" = ..." if arg.has_default else "")


def signature(op, method):
    """(self, other: Tensor, *, alpha: Number = ...) -> Tensor"""
    parts, star = [], False
    for i, arg in enumerate(op.schema.args):
        if arg.keyword and not star:
            parts.append("*")
            star = True
        parts.append("self" if method and i == 0 else parameter(arg))
    rets = [("tuple[Tensor, ...]" if r.type == "Tensor[]" else "Tensor") for r in op.schema.rets]
    result = rets[0] if len(rets) == 1 else f"tuple[{', '.join(rets)}]" if rets else "None"
    return f"({', '.join(parts)}) -> {result}: ..."


def stubs(name, ops, method, indent):
    out = []
    for op in ops:
        if len(ops) > 1:
            out.append(f"{indent}@overload\n")
        out.append(f"{indent}def {name}{signature(op, method)}\n")
    return "".join(out)


def types(table):
    found = packets(table)
    out = [HEAD, TENSOR_HEAD]
    for word in BINARY:
        out.append(f"    def __{word}__(self, other: Any) -> \"Tensor\": ...\n")
        out.append(f"    def __r{word}__(self, other: Any) -> \"Tensor\": ...\n")
    out += [stubs(name, ops, True, "    ") for name, ops in found.items() if is_method(ops)]
    out.append("\n\n")
    out += [stubs(name, ops, False, "") for name, ops in found.items()]
    return "".join(out)
