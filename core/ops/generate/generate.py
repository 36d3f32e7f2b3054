#!/usr/bin/env python3
"""Makes the code of the operators from operators.toml and kernels.toml.

usage: generate.py operators.toml kernels.toml OUTPUT...

An output is known by its name: ops.h (public), list.h (internal), ops.c, table.c,
gradcheck_cases.c.
"""

import pathlib
import sys

import emit_api
import emit_core
import emit_tests
import table as tables

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "plugin-sdk"))
import generate_kernels  # noqa: E402


def main(operators, kernels, outputs):
    table = tables.load(operators)
    make = {
        "ops.h": lambda: emit_api.public_header(table),
        "list.h": lambda: emit_api.internal_header(table),
        "ops.c": lambda: emit_api.source(table),
        "gradcheck_cases.c": lambda: emit_tests.source(table),
        "table.c": lambda: emit_core.CoreEmitter(table, generate_kernels.load(kernels)).source(),
    }
    for output in map(pathlib.Path, outputs):
        output.write_text(make[output.name]())


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
