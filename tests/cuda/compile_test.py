#!/usr/bin/env python3
"""Device code compiles for every CUDA GPU that the plugin takes, without a warning.

usage: compile_test.py PROGRAM FOLDER LIST      PROGRAM: nvrtc_compile; FOLDER keeps what was found out

Every variant of LIST (tests/opencl/variants.list) that a GPU with f64 asks for, for each architecture.
"""

import pathlib
import sys

import nvrtc


def main(program: str, folder: str, path: str) -> None:
    lines = sorted(line.removeprefix("gpu ") for line in pathlib.Path(path).read_text().splitlines()
                   if line.startswith("gpu ") and line.endswith("-DHAS_F64=1"))
    _, compiled = nvrtc.compile_all(program, pathlib.Path(folder) / "variants.jsonl", lines)
    wrong = [f"{variant}, {architecture}: {result}\n{nvrtc.complaints(log)}"
             for (variant, architecture), (result, log) in compiled.items()
             if result or nvrtc.complaints(log)]
    print(f"{len(lines)} variants for {len(nvrtc.ARCHITECTURES)} architectures, {len(wrong)} with errors or warnings")
    if wrong or not lines:
        sys.exit("\n".join(wrong)[:8000])


if __name__ == "__main__":
    main(*sys.argv[1:])
