#!/usr/bin/env python3
"""Device code compiles for every CUDA GPU that the plugin takes, without a warning.

usage: compile_test.py PROGRAM FOLDER LIST      PROGRAM: nvrtc_compile; FOLDER keeps what was found out

Every variant of LIST (tests/opencl/variants.list) that a GPU with f64 asks for: to machine code for the oldest
architecture, which has the least of everything, and to PTX for the others, which takes half of the time. What ptxas
makes of the hot kernels on those, kernels_report.py looks at.
"""

import pathlib
import sys

import nvrtc

OLDEST, *OTHERS = nvrtc.ARCHITECTURES
TARGETS = (OLDEST, *(a.replace("sm_", "compute_") for a in OTHERS))


def main(program: str, folder: str, path: str) -> None:
    lines = sorted(line.removeprefix("gpu ") for line in pathlib.Path(path).read_text().splitlines()
                   if line.startswith("gpu ") and line.endswith("-DHAS_F64=1"))
    _, compiled = nvrtc.compile_all(program, pathlib.Path(folder) / "variants.jsonl", lines, TARGETS)
    wrong = [f"{variant}, {architecture}: {result}\n{nvrtc.complaints(log)}"
             for (variant, architecture), (result, log) in compiled.items()
             if result or nvrtc.complaints(log)]
    print(f"{len(lines)} variants for {len(TARGETS)} architectures, {len(wrong)} with errors or warnings")
    if wrong or not lines:
        sys.exit("\n".join(wrong)[:8000])


if __name__ == "__main__":
    main(*sys.argv[1:])
