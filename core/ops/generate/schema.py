"""Operator schemas in Python: the same notation that dispatcher/schema.c reads at run time."""

import ast
import re
from dataclasses import dataclass, field

TYPES = {
    # schema type: (C parameter type, kind in expressions)
    "Tensor": ("tn_tensor *", "tensor"),
    "Tensor?": ("tn_tensor *", "tensor"),
    "Tensor[]": ("tn_tensor *const *", "tensors"),
    "Tensor?[]": ("tn_tensor *const *", "tensors"),  # elements may be left out
    "int": ("int64_t ", "int"),
    "int?": ("int64_t ", "int"),
    "int[]": ("tn_ints ", "ints"),
    "int[]?": ("tn_ints ", "ints"),
    "float": ("double ", "float"),
    "bool": ("bool ", "bool"),
    "Scalar": ("tn_scalar ", "scalar"),
    "Scalar?": ("tn_scalar ", "scalar"),
    "ScalarType": ("tn_dtype ", "dtype"),
    "ScalarType?": ("tn_dtype ", "dtype"),
    "Device": ("tn_device ", "device"),
    "Device?": ("tn_device ", "device"),
    "str": ("const char *", "str"),
}


@dataclass
class Arg:
    name: str
    type: str  # without alias and list size: "Tensor?", "int[]"
    default: object = None  # Python value
    has_default: bool = False
    keyword: bool = False
    alias: str = ""  # "a" or "a!"
    n_ints: int = 0  # N of int[N]
    position: int = 0

    @property
    def c_type(self):
        return TYPES[self.type][0]

    @property
    def kind(self):
        return TYPES[self.type][1]

    @property
    def is_tensor(self):
        return self.type in ("Tensor", "Tensor?")

    @property
    def written(self):
        return self.alias.endswith("!")

    @property
    def has_holes(self):
        return self.type == "Tensor?[]"


@dataclass
class Schema:
    text: str
    base: str = ""
    overload: str = ""
    args: list = field(default_factory=list)
    rets: list = field(default_factory=list)

    @property
    def name(self):
        return self.base + (f".{self.overload}" if self.overload else "")

    def arg(self, name):
        return next((a for a in self.args if a.name == name), None)


def split_commas(text):
    """Splits at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    if text[start:].strip():
        parts.append(text[start:].strip())
    return parts


def parse_type(text):
    """'Tensor(a!)[]' -> (type, alias, n_ints)"""
    m = re.fullmatch(r"([A-Za-z]+\??)(?:\((\w!?)\))?(\[\d*\])?(\?)?", text)
    if not m:
        raise ValueError(f"type '{text}'")
    base, alias, brackets, optional = m.groups()
    n = int(brackets[1:-1]) if brackets and brackets != "[]" else 0
    kind = base + ("[]" if brackets else "") + (optional or "")
    if kind not in TYPES:
        raise ValueError(f"type '{text}'")
    return kind, alias or "", n


def parse(text):
    m = re.fullmatch(r"([\w]+)(?:\.(\w+))?\((.*)\) -> (.+)", text)
    if not m:
        raise ValueError(f"schema '{text}' is not 'name.overload(args) -> returns'")
    s = Schema(text, m[1], m[2] or "")
    keyword = False
    for part in split_commas(m[3]):
        if part == "*":
            keyword = True
            continue
        decl, eq, default = part.partition("=")
        kind, name = decl.rsplit(" ", 1)
        kind, alias, n_ints = parse_type(kind)
        s.args.append(Arg(name, kind, ast.literal_eval(default) if eq else None, bool(eq), keyword,
                          alias, n_ints, len(s.args)))
    rets = m[4]
    inner = rets[1:-1] if rets.startswith("(") else rets
    for i, part in enumerate(split_commas(inner)):
        kind, _, name = part.partition(" ")
        t, alias, _ = parse_type(kind)
        s.rets.append(Arg(name or ("out" if i == 0 and "," not in inner else f"out{i}"), t,
                          alias=alias, position=i))
    return s
