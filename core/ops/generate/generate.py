#!/usr/bin/env python3
"""Makes the code and the page of the operators from operators.toml and kernels.toml.

usage: generate.py [--check] operators.toml kernels.toml OUTPUT...

An output is known by its name: ops.h (public), operators.h and functions.h (internal), ops.c,
table.c, gradcheck_cases.c, operator_samples.c, operators.md, core-aten.md; methods.inc, _core.pyi (Python). With --check nothing is written; the
exit code says whether the outputs are current.
"""

import pathlib
import sys

import emit_api
import emit_aten
import emit_core
import emit_page
import emit_python
import emit_tests
import table as tables

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "plugin-sdk"))
import generate_kernels  # noqa: E402


def main(operators, kernels, outputs, check):
    kernel_table = generate_kernels.load(kernels)
    table = tables.load(operators, kernel_table)
    make = {
        "ops.h": lambda: emit_api.public_header(table),
        "operators.h": lambda: emit_api.internal_header(table),
        "ops.c": lambda: emit_api.source(table),
        "gradcheck_cases.c": lambda: emit_tests.source(table),
        "operator_samples.c": lambda: emit_tests.conformance(table, tables.sections(table), kernel_table),
        "functions.h": lambda: emit_core.CoreEmitter(table, kernel_table).header(),
        "table.c": lambda: emit_core.CoreEmitter(table, kernel_table).source(),
        "core-aten.md": lambda: emit_aten.page(pathlib.Path(operators).with_name("core_aten.toml"), table),
        "methods.inc": lambda: emit_python.methods(table),
        "_core.pyi": lambda: emit_python.types(table),
        "operators.md": lambda: emit_page.page(table, tables.sections(table), kernel_table),
    }
    for output in map(pathlib.Path, outputs):
        text = make[output.name]()
        if not check:
            generate_kernels.write(output, text)
        elif not output.exists() or output.read_text() != text:
            sys.exit(f"{output} is not what {operators} says; run: "
                     f"core/ops/generate/generate.py {operators} {kernels} {output}")
        else:
            print(f"{output.name}: current")


if __name__ == "__main__":
    is_check = sys.argv[1:2] == ["--check"]
    arguments = sys.argv[1 + is_check:]
    if len(arguments) < 3:
        sys.exit(__doc__)
    main(arguments[0], arguments[1], arguments[2:], is_check)
