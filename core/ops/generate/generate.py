#!/usr/bin/env python3
"""Makes the code of the operators from operators.toml and kernels.toml.

usage: generate.py operators.toml kernels.toml OUT_DIR

writes into OUT_DIR: ops.h (public), list.h (internal), ops.c, table.c
"""

import pathlib
import sys

import emit_api
import emit_core
import table as tables

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "plugin-sdk"))
import generate_kernels  # noqa: E402


def main(operators, kernels, out_dir):
    table = tables.load(operators)
    out = pathlib.Path(out_dir)
    core = emit_core.CoreEmitter(table, generate_kernels.load(kernels))
    for name, text in (("ops.h", emit_api.public_header(table)),
                       ("list.h", emit_api.internal_header(table)),
                       ("ops.c", emit_api.source(table)),
                       ("table.c", core.source())):
        (out / name).write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
