#!/usr/bin/env python3
"""Makes the conformance suite's records from kernels.toml.

usage: generate_records.py kernels.toml OUTPUT.c

A kernel's `check` field:
  family     which rules for shapes and samples hold: a file of kernel/samples/
  ulps       how far the function may be off, in units in the last place of the arithmetic's dtype; 0
             (the default) is correctly rounded but for what the reference says of sums
  zero       "signed": the sign of a zero result is checked
  extremes   false: largest and tiniest numbers are kept away, as what happens to them within several
             steps (overflow that cancels, underflow) is not laid down
  range      { argument = [low, high] }: what random floating data lies in, [-8, 8] where not given
  fill       values without which a case would not show much: "far" (far from zero), "product" (factors
             whose product stays finite), "power" (exponents that take one to the ends of the dtype), "largest", "smallest" (integers whose extreme is any number),
             "turns" (angles next to whole quarters of a turn, where what is taken off them nearly cancels)
  attributes choices for the arguments that are no tensors, as a case's line has them; those with a point
             are for floating dtypes alone, those with more digits than f64 has for i64
  alike      more of these, with which all elements come out alike
  adds       false: elements are picked or ordered, and nothing is added up that could cancel
  batch      false: the indices of the first dimension are not calls of their own
  slices     true: an index picks what is at it of all other dimensions
  rank       of the output, where arguments do not tell its shape
  constant   true: one value is all of the result
  axes       [{ tensor = dimension, ..., out = dimension }, ...]: dimensions along which a large call falls
             apart into calls of their own, beyond the first or last dimension of all tensors
  timed      what is timed beyond the usual: "floats", "integers" (other dtypes than f32), "sizes" (sizes
             that fit caches, and rows by columns), "huge" (a size that fits no cache)
"""

import importlib.util
import pathlib
import sys
import tomllib

FAMILIES = ("pointwise", "factory", "reduce", "scan", "sort", "softmax", "index", "matmul", "norm", "attention", "convolution",
            "pool", "step", "loss")
FILLS = ("far", "product", "power", "largest", "smallest", "turns")
TIMED = ("floats", "integers", "sizes", "huge")
ARG_KINDS = {"Tensor": "TENSOR", "Scalar": "SCALAR", "int": "INT", "float": "FLOAT", "bool": "BOOL",
             "int[]": "INTS", "str": "STRING"}
FIELDS = {"family", "ulps", "zero", "extremes", "range", "fill", "attributes", "alike", "adds", "batch", "slices", "rank",
          "constant", "axes", "timed"}


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
    if check.get("fill", FILLS[0]) not in FILLS:
        kernel.fail(f"check: fill is one of {', '.join(FILLS)}")
    if set(check.get("timed", [])) - set(TIMED):
        kernel.fail(f"check: timed has some of {', '.join(TIMED)}")
    for axis in check.get("axes", []):
        if "out" not in axis or set(axis) - {"out"} - {n for _, n in kernel.args}:
            kernel.fail(f"check: axes: {axis}")
    for name, bounds in check.get("range", {}).items():
        if name not in [n for _, n in kernel.args] or len(bounds) != 2 or bounds[0] >= bounds[1]:
            kernel.fail(f"check: range of '{name}'")
    return check


def axis_of(kernel, axis):
    places = [f"[TN_ARG_{kernel.symbol}_{name}] = {dim + 1}" for name, dim in axis.items() if name != "out"]
    return f"{{{{{', '.join(places)}, [TC_AXIS_OUT] = {axis['out'] + 1}}}}}"


def record(kernel, check):
    name = kernel.symbol
    timed = " | ".join(f"TC_TIMED_{word.upper()}" for word in check.get("timed", [])) or "0"
    lines = [f'    {{.op = "{kernel.name}", .schema = "{kernel.schema}", .hash = TN_KERNEL_HASH_{name},',
             f"     .small = {int(kernel.small)}, .pointwise = {int(kernel.kind == 'pointwise')},"
             f" .zero_signed = {int(check.get('zero') == 'signed')},"
             f" .extremes = {int(check.get('extremes', True))},"
             f" .adds = {int(kernel.kind != 'pointwise' and check.get('adds', True))},"
             f" .batch = {int(kernel.kind != 'factory' and check.get('batch', True))},"
             f" .slices = {int(check.get('slices', False))}, .constant = {int(check.get('constant', False))},"
             f" .rank = {check.get('rank', 0)}, .ulps = {check.get('ulps', 0)},",
             f"     .fill = TC_FILL_{check.get('fill', 'usual').upper()}, .timed = {timed},",
             f"     .family = &tc_family_{check['family']}, .reference = tc_reference_{name},",
             f"     .n_types = {len(kernel.types)}, .n_args = {len(kernel.args)}, .n_outs = {len(kernel.outs)},",
             "     .type_names = {" + ", ".join(f'"{v}"' for v, _, _ in kernel.types) + "},",
             f"     .dtypes = TN_KERNEL_DTYPES_{name}, .arg_types = TN_KERNEL_ARG_TYPES_{name},",
             f"     .out_types = TN_KERNEL_OUT_TYPES_{name},"]
    for field in ("attributes", "alike"):
        if field in check:
            lines.append(f"     .{field} = {{" + ", ".join(f'"{text}"' for text in check[field]) + "},")
    if "axes" in check:
        lines.append("     .axes = {" + ", ".join(axis_of(kernel, axis) for axis in check["axes"]) + "},")
    lines.append("     .args = {")
    for kind, arg in kernel.args:
        base, optional = kind.rstrip("?"), int(kind.endswith("?"))
        low, high = check.get("range", {}).get(arg, ("TC_USUAL_LOW", "TC_USUAL_HIGH"))
        lines.append(f'         {{"{arg}", TC_ARG_{ARG_KINDS[base]}, {optional}, {low}, {high}}},')
    return "\n".join(lines) + "\n     }},"


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
