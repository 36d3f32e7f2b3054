#!/usr/bin/env python3
"""Makes tenon/kernels.h from kernels.toml, or kernels.json, which says the same to other languages than C.

usage: generate_kernels.py kernels.toml OUTPUT.h|OUTPUT.json

The table is checked first; a mistake names the kernel and the field.
"""

import json
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
SCALAR, NO_TENSOR = 100, 101  # as in kernels.h
ARG_TYPES = ("Tensor", "Tensor?", "Tensor[]", "int", "int[]", "float", "bool", "Scalar", "Scalar?", "str")
FIELDS = {"schema", "kind", "types", "dtypes", "fixed", "small", "core", "check", "doc"}


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
        self.schema = entry.get("schema", "?")
        self.name = self.schema.partition("(")[0]
        unknown = set(entry) - FIELDS
        if unknown:
            self.fail(f"unknown field {sorted(unknown)}")
        for field in ("schema", "dtypes", "doc"):
            if field not in entry:
                self.fail(f"has no '{field}'")
        self.symbol = self.name.replace(".", "_")
        self.kind, self.doc = entry.get("kind", "pointwise"), entry["doc"]
        self.small = entry.get("small", False)
        self.core = entry.get("core", "").split()
        check = entry.get("check", {})
        self.ulps = check.get("ulps", 0)
        self.adds = self.kind in ("general", "reduction") and check.get("adds", True)
        self.signs_zero = entry.get("check", {}).get("zero") == "signed"
        self.has_extremes = entry.get("check", {}).get("extremes", True)
        if self.kind not in KINDS:
            self.fail(f"kind '{self.kind}' is not one of {KINDS}")
        self.parse_schema()
        self.resolve_types(entry)
        for dtypes in self.core: # "f32", of copy "f32>i64"
            if not self.small or any(dtype not in DTYPES for dtype in dtypes.split(">")) \
                    or len(dtypes.split(">")) != len(self.types):
                self.fail(f"core: '{dtypes}'")
        self.hash = fnv1a(self.meaning())

    def fail(self, why):
        sys.exit(f"kernels.toml: kernel '{self.name}': {why}")

    def parse_schema(self):
        m = re.fullmatch(r"([\w.]+)\((.*)\) -> (Tensor|\((?:Tensor, )+Tensor\))", self.schema)
        if not m:
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
        if len(self.types) > 8:
            self.fail("more than 8 type variables")

    def meaning(self):
        """What the hash stands for: the schema, the kind, and which tensors share a dtype or have a fixed one. Not the
        dtypes that a variable may have, which can become more."""
        variables = [",".join(names) for _, names, _ in self.types]
        fixed = [f"{name}={dtype}" for name, dtype in sorted(self.fixed.items())]
        return " ".join([self.schema, self.kind, *variables, *fixed])


def load(path):
    with open(path, "rb") as f:
        kernels = [Kernel(entry) for entry in tomllib.load(f)["kernel"]]
    names = [k.name for k in kernels]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f"kernels.toml: kernel '{name}' stands twice")
    return kernels


def load_rules(path):
    """What holds for all of them, a paragraph each."""
    with open(path, "rb") as f:
        return [" ".join(rule.split()) for rule in tomllib.load(f)["rules"]]


HEAD = """\
/* tenon/kernels.h: the kernel operators a plugin can implement. Generated from kernels.toml.
 *
 * For a kernel operator `add` there are
 *   TN_KERNEL_add        its name, for tn_kernel.op
 *   TN_KERNEL_HASH_add   the hash of its schema, kind and type variables, for tn_kernel.schema_hash
 *   TN_ARG_add_self ...  the positions of its arguments in tn_call.args
 *   TN_KERNEL_ARG_TYPES_add, TN_KERNEL_OUT_TYPES_add
 *                        initializers: what dtype each argument and output has. The position of
 *                        its type variable in tn_kernel.dtypes, or a TN_KERNEL_... code
 *   TN_KERNEL_DTYPES_add an initializer: the mask of dtypes that each type variable ranges over.
 *                        A record claims some of them, and none beside (TNP-67)
 * TN_KERNEL_TABLE(X) calls X(name, hash, small, kind, schema) for each of them; `small` is 1 for the
 * small set, with which every operator of Tenon runs on a device by decomposition. Type variables
 * are listed in the order of tn_kernel.dtypes, each with its dtypes and the tensors that have it.
 *
 * `core` is what the conformance level Core needs of a kernel of the small set, where the device has
 * no kernels for the operators that are composed of it: every operator in f32, i64 and bool, the
 * dtypes that each device must have. `tenon-conform needs PLUGIN.so` says what of it a device lacks.
 * Other dtypes are the device's to have or not. Where it has no kernel, halves are computed in f32
 * and small integers in i64, so that pairs of `copy` are enough.
 *
 * `error` is how far a floating result may be off beyond one rounding to its dtype. An ulp is one of
 * the dtype of arithmetic: f32 for f16, bf16 and f32, f64 for f64. `sums` are added up in that dtype,
 * never in a narrower one; those of n terms that an element is a sum of come out within 32 + log2(n)
 * roundings (half an ulp each) of the sum of the terms' magnitudes; sums of products, running sums, and all in f64,
 * for which nothing is wider, within n. Integers and bool are exact.
 *
 * Rules that hold for all of them
RULES
 */
#ifndef TENON_KERNELS_H
#define TENON_KERNELS_H

#define TN_KERNEL_FIXED(dtype) (-1 - (dtype)) /* always that dtype; its own inverse */
#define TN_KERNEL_SCALAR 100                  /* no tensor, but a number of the first variable's kind */
#define TN_KERNEL_NO_TENSOR 101               /* nor that */

"""


def write(output, text):
    """Only where it differs: what is current keeps its time, and nothing is built again for it."""
    path = pathlib.Path(output)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def type_code(kernel, kind, name):
    """As kernels.h has it: which type variable an argument or output has, or a code."""
    if kind.startswith("Scalar"):
        return SCALAR
    if not kind.startswith("Tensor"):
        return NO_TENSOR
    for i, (_, names, _) in enumerate(kernel.types):
        if name in names:
            return i
    return -1 - DTYPES.index(kernel.fixed[name])


def c_type_code(code):
    if code < 0:
        return f"TN_KERNEL_FIXED(TN_{DTYPES[-1 - code].upper()})"
    return {SCALAR: "TN_KERNEL_SCALAR", NO_TENSOR: "TN_KERNEL_NO_TENSOR"}.get(code, str(code))


def initializer(name, values):
    """A macro with a list in braces, continued where it is long."""
    lines = textwrap.wrap(f"#define {name} {{{', '.join(values)}}}", 96, subsequent_indent="    ")
    return " \\\n".join(lines) + "\n"


def to_json(kernels, rules):
    """`type` is what TN_KERNEL_ARG_TYPES_... has, `dtypes` one list for each type variable."""
    entries = [{
        "name": k.name,
        "schema": k.schema,
        "hash": f"{k.hash:#018x}",
        "kind": k.kind,
        "small": k.small,
        "args": [{"name": name, "kind": kind, "type": type_code(k, kind, name)} for kind, name in k.args],
        "outs": [{"name": name, "type": type_code(k, "Tensor", name)} for name in k.outs],
        "core": k.core,
        "ulps": k.ulps,
        "dtypes": [names_of(mask) for _, _, mask in k.types],
        "doc": k.doc,
    } for k in kernels]
    return json.dumps({"rules": rules, "kernels": entries}, indent=1) + "\n"


def names_of(mask):
    return [d for i, d in enumerate(DTYPES) if mask >> i & 1]


def error_of(kernel):
    """How far a result may be off, where it is more than one rounding."""
    words = [f"{kernel.ulps} ulps"] if kernel.ulps else []
    words += ["sums"] if kernel.adds and kernel.types[0][2] & 0xf else []
    return f"\nerror: {', '.join(words)}" if words else ""


def zero_of(kernel):
    return "\nzeros: their sign counts" if kernel.signs_zero else ""


def to_header(kernels, rules):
    lines = [line for rule in rules
             for line in textwrap.wrap(rule, 96, initial_indent=" *   - ", subsequent_indent=" *     ")]
    out = [HEAD.replace("RULES", "\n".join(lines))]
    for k in kernels:
        types = "".join(f"\n{v} ({' '.join(names_of(mask))}): {', '.join(names)}" for v, names, mask in k.types)
        fixed = "".join(f"; {name}: {dtype}" for name, dtype in k.fixed.items())
        core = f"\ncore: {', '.join(c.replace('>', ' to ') for c in k.core)}" if k.core else ""
        text = f"{k.schema}\n{k.kind}{', small set' if k.small else ''}{types}{fixed}{core}{error_of(k)}{zero_of(k)}"
        lines = [line for part in text.split("\n") + [k.doc]
                 for line in textwrap.wrap(part, 94, subsequent_indent="  ")]
        out.append("/* " + "\n * ".join(lines) + " */\n")
        name = k.symbol
        out.append(f'#define TN_KERNEL_{name} "{k.name}"\n')
        out.append(f"#define TN_KERNEL_HASH_{name} UINT64_C({k.hash:#018x})\n")
        args = ", ".join(f"TN_ARG_{name}_{arg} = {i}" for i, (_, arg) in enumerate(k.args))
        out.append("\n".join(textwrap.wrap(f"enum {{ {args} }};", 98, subsequent_indent="       ")) + "\n")
        out.append(initializer(f"TN_KERNEL_ARG_TYPES_{name}", [c_type_code(type_code(k, *arg)) for arg in k.args]))
        out.append(initializer(f"TN_KERNEL_OUT_TYPES_{name}", [c_type_code(type_code(k, "Tensor", o)) for o in k.outs]))
        out.append(initializer(f"TN_KERNEL_DTYPES_{name}", [f"{mask:#x}" for _, _, mask in k.types]))
        out.append("\n")
    out.append("#define TN_KERNEL_TABLE(X) \\\n")
    for i, k in enumerate(kernels):
        end = " \\\n" if i + 1 < len(kernels) else "\n"
        out.append(f'    X({k.symbol}, UINT64_C({k.hash:#018x}), {int(k.small)}, '
                   f'{k.kind}, "{k.schema}"){end}')
    out.append("\n#endif /* TENON_KERNELS_H */\n")
    return "".join(out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    table, output = sys.argv[1:]
    write(output, (to_json if output.endswith(".json") else to_header)(load(table), load_rules(table)))
