#!/usr/bin/env python3
"""Makes tenon/kernels.h from kernels.toml; with --types, the table of which dtype each tensor has.

usage: generate_kernels.py [--types] kernels.toml OUTPUT.h

The table is checked first; a mistake names the kernel and the field.
"""

import pathlib
import re
import sys
import textwrap
import tomllib

KINDS = ("pointwise", "reduction", "factory", "general")
DTYPES = ("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "bool")
CLASSES = {
    "float": ("f32", "f64", "f16", "bf16"),
    "int": ("i8", "i16", "i32", "i64", "u8"),
    "number": DTYPES[:-1],
    "all": DTYPES,
}
ARG_TYPES = ("Tensor", "Tensor?", "Tensor[]", "int", "int[]", "float", "bool", "Scalar", "Scalar?", "str")
FIELDS = {"name", "schema", "kind", "types", "dtypes", "fixed", "small", "check", "doc"}


def fnv1a(text):
    """64-bit FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/"""
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def dtype_mask(words, fail):
    mask = 0
    for word in words.split():
        names = CLASSES.get(word, (word,))
        for name in names:
            if name not in DTYPES:
                fail(f"no dtype or class '{name}'")
            mask |= 1 << DTYPES.index(name)
    return mask


class Kernel:
    """One entry of the table, checked; `args` and `outs` are names in order."""

    def __init__(self, entry):
        self.name = entry.get("name", "?")
        unknown = set(entry) - FIELDS
        if unknown:
            self.fail(f"unknown field {sorted(unknown)}")
        for field in ("name", "schema", "kind", "dtypes", "doc"):
            if field not in entry:
                self.fail(f"has no '{field}'")
        self.schema, self.kind, self.doc = entry["schema"], entry["kind"], entry["doc"]
        self.small = entry.get("small", False)
        self.hash = fnv1a(self.schema)
        if self.kind not in KINDS:
            self.fail(f"kind '{self.kind}' is not one of {KINDS}")
        self.parse_schema()
        self.resolve_types(entry)

    def fail(self, why):
        sys.exit(f"kernels.toml: kernel '{self.name}': {why}")

    def parse_schema(self):
        m = re.fullmatch(r"([\w.]+)\((.*)\) -> (Tensor|\((?:Tensor, )+Tensor\))", self.schema)
        if not m or m[1] != self.name:
            self.fail(f"schema '{self.schema}' is not 'name(type arg, ...) -> Tensor'")
        self.args = []
        for arg in filter(None, m[2].split(", ")):
            kind, _, name = arg.partition(" ")
            if kind not in ARG_TYPES:
                self.fail(f"argument type '{kind}'")
            self.args.append((kind, name))
        n_outs = m[3].count("Tensor")
        self.outs = ["out"] if n_outs == 1 else [f"out{i}" for i in range(n_outs)]

    def resolve_types(self, entry):
        tensors = [name for kind, name in self.args if kind.startswith("Tensor")] + self.outs
        self.fixed = entry.get("fixed", {})
        types = entry.get("types")
        if types is None:
            types = {"T": " ".join(t for t in tensors if t not in self.fixed)}
        self.types = [(v, types[v].split(), dtype_mask(entry["dtypes"][v], self.fail)) for v in types]
        typed = [t for _, names, _ in self.types for t in names] + list(self.fixed)
        if sorted(typed) != sorted(tensors):
            self.fail(f"types and fixed cover {sorted(typed)}, but the tensors are {sorted(tensors)}")
        if len(self.types) > 4:
            self.fail("more than 4 type variables")


def load(path):
    with open(path, "rb") as f:
        kernels = [Kernel(entry) for entry in tomllib.load(f)["kernel"]]
    names = [k.name for k in kernels]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f"kernels.toml: kernel '{name}' stands twice")
    return kernels


HEAD = """\
/* tenon/kernels.h: the kernel operators a plugin can implement. Generated from kernels.toml.
 *
 * For a kernel operator `add` there are
 *   TN_KERNEL_add        its name, for tn_kernel.op
 *   TN_KERNEL_HASH_add   the hash of its schema, for tn_kernel.schema_hash
 *   TN_ARG_add_self ...  the positions of its arguments in tn_call.args
 * TN_KERNEL_TABLE(X) calls X(name, hash, small, kind, schema) for each of them; `small` is 1 for the
 * small set, with which every operator of Tenon runs on a device by decomposition. Type variables
 * are listed in the order of tn_kernel.dtypes.
 */
#ifndef TENON_KERNELS_H
#define TENON_KERNELS_H

"""


def write(output, text):
    """Only where it differs: what is current keeps its time, and nothing is built again for it."""
    path = pathlib.Path(output)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main(table, output):
    kernels = load(table)
    out = [HEAD]
    for k in kernels:
        types = "; ".join(f"{v}: {', '.join(names)}" for v, names, _ in k.types)
        fixed = "".join(f"; {name}: {dtype}" for name, dtype in k.fixed.items())
        text = f"{k.schema}\n{k.kind}{', small set' if k.small else ''}; {types}{fixed}"
        lines = [line for part in text.split("\n") + [k.doc]
                 for line in textwrap.wrap(part, 94, subsequent_indent="  ")]
        out.append("/* " + "\n * ".join(lines) + " */\n")
        name = k.name.replace(".", "_")
        out.append(f'#define TN_KERNEL_{name} "{k.name}"\n')
        out.append(f"#define TN_KERNEL_HASH_{name} UINT64_C({k.hash:#018x})\n")
        args = ", ".join(f"TN_ARG_{name}_{arg} = {i}" for i, (_, arg) in enumerate(k.args))
        out.append("\n".join(textwrap.wrap(f"enum {{ {args} }};", 98, subsequent_indent="       ")))
        out.append("\n\n")
    out.append("#define TN_KERNEL_TABLE(X) \\\n")
    for i, k in enumerate(kernels):
        end = " \\\n" if i + 1 < len(kernels) else "\n"
        out.append(f'    X({k.name.replace(".", "_")}, UINT64_C({k.hash:#018x}), {int(k.small)}, '
                   f'{k.kind}, "{k.schema}"){end}')
    out.append("\n#endif /* TENON_KERNELS_H */\n")
    write(output, "".join(out))


def type_code(kernel, tensor):
    """The position of the tensor's type variable, or -1 less its dtype where that is fixed."""
    for i, (_, names, _) in enumerate(kernel.types):
        if tensor in names:
            return i
    return -1 - DTYPES.index(kernel.fixed[tensor])


def main_types(table, output):
    """X(name, {of each argument}, {of each output}); 100 where an argument is no tensor."""
    out = ["/* Which type variable each tensor of a kernel operator has. Generated from kernels.toml. */\n"]
    for k in load(table):
        args = ", ".join(str(type_code(k, name) if kind.startswith("Tensor") else 100)
                         for kind, name in k.args)
        outs = ", ".join(str(type_code(k, name)) for name in k.outs)
        out.append(f'X({k.name.replace(".", "_")}, ARGS({args or 100}), OUTS({outs}))\n')
    write(output, "".join(out))


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--types"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    (main_types if "--types" in sys.argv else main)(*arguments)
