#!/usr/bin/env python3
"""Makes the conformance suite's records from kernels.toml.

usage: generate_records.py kernels.toml OUTPUT.c

A kernel's `check` field:
  family   which rules for shapes and samples hold: a file of kernel/samples/
  ulps     how far the function may be off, in units in the last place of the arithmetic's dtype; 0
           (the default) is correctly rounded but for what the reference says of sums
  zero     "signed": the sign of a zero result is checked
  extremes false: largest and tiniest numbers are kept away, as what happens to them within several
           steps (overflow that cancels, underflow) is not laid down
  range    { argument = [low, high] }: what random floating data lies in, [-8, 8] where not given
"""

import importlib.util
import pathlib
import sys
import tomllib

FAMILIES = ("pointwise", "factory", "reduce", "along", "index", "matmul", "norm", "convolution", "pool")
ARG_KINDS = {"Tensor": "TENSOR", "Scalar": "SCALAR", "int": "INT", "float": "FLOAT", "bool": "BOOL",
             "int[]": "INTS", "str": "STRING"}
FIELDS = {"family", "ulps", "zero", "extremes", "range"}


def generate_kernels():
    path = pathlib.Path(__file__).resolve().parents[2] / "generate_kernels.py"
    spec = importlib.util.spec_from_file_location("generate_kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_of(kernel, entry):
    check = entry.get("check")
    if check is None:
        kernel.fail("has no 'check': what the conformance suite needs to know of it")
    if set(check) - FIELDS:
        kernel.fail(f"check: unknown field {sorted(set(check) - FIELDS)}")
    if check.get("family") not in FAMILIES:
        kernel.fail(f"check: family is one of {', '.join(FAMILIES)}")
    if check.get("zero", "any") not in ("any", "signed"):
        kernel.fail("check: zero is \"any\" or \"signed\"")
    for name, bounds in check.get("range", {}).items():
        if name not in [n for _, n in kernel.args] or len(bounds) != 2 or bounds[0] >= bounds[1]:
            kernel.fail(f"check: range of '{name}'")
    return check


def type_of(kernel, tensor):
    """The type variable's index and, where it has none, the dtype."""
    for i, (_, names, _) in enumerate(kernel.types):
        if tensor in names:
            return f"{i}, TN_DTYPE_NONE"
    return f"-1, TN_{kernel.fixed[tensor].upper()}"


def record(kernel, check):
    name = kernel.name.replace(".", "_")
    lines = [f'    {{.op = "{kernel.name}", .schema = "{kernel.schema}", .hash = UINT64_C({kernel.hash:#x}),',
             f"     .small = {int(kernel.small)}, .pointwise = {int(kernel.kind == 'pointwise')},"
             f" .zero_signed = {int(check.get('zero') == 'signed')},"
             f" .extremes = {int(check.get('extremes', True))}, .ulps = {check.get('ulps', 0)},",
             f"     .family = &tc_family_{check['family']}, .reference = tc_reference_{name},",
             f"     .n_types = {len(kernel.types)}, .n_args = {len(kernel.args)}, .n_outs = {len(kernel.outs)},",
             "     .type_names = {" + ", ".join(f'"{v}"' for v, _, _ in kernel.types) + "},",
             "     .dtypes = {" + ", ".join(f"{mask:#x}" for _, _, mask in kernel.types) + "},",
             "     .args = {"]
    for kind, arg in kernel.args:
        base, optional = kind.rstrip("?"), int(kind.endswith("?"))
        low, high = check.get("range", {}).get(arg, (-8, 8))
        dtype = type_of(kernel, arg) if base == "Tensor" else "-1, TN_DTYPE_NONE"
        lines.append(f'         {{"{arg}", TC_ARG_{ARG_KINDS[base]}, {optional}, {dtype}, {low}, {high}}},')
    lines.append("     },")
    lines.append("     .outs = {" + ", ".join(f"{{{type_of(kernel, out)}}}" for out in kernel.outs) + "}},")
    return "\n".join(lines)


def main(table, output):
    module = generate_kernels()
    kernels = module.load(table)
    with open(table, "rb") as f:
        entries = tomllib.load(f)["kernel"]
    checks = [check_of(k, e) for k, e in zip(kernels, entries)]
    out = ["/* The records of kernel operators. Generated from kernels.toml. */\n#include \"plugin-sdk/conformance/worker/kernel/record.h\"\n\n"]
    out.append("const tc_record tc_records[] = {\n")
    out += [record(k, c) + "\n" for k, c in zip(kernels, checks)]
    out.append(f"}};\nconst uint32_t tc_n_records = {len(kernels)};\n")
    module.write(output, "".join(out))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
