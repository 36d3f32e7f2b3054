#!/usr/bin/env python3
"""What the kernels take of a GPU that programs spend their time in; none of them spills registers.

usage: kernels_report.py (check | write) PROGRAM LAUNCHES FOLDER REPORT

PROGRAM is nvrtc_compile, LAUNCHES print_launches, which knows the kernels; FOLDER keeps what was found out; REPORT is
docs/reports/cuda-kernels.md. With the NVRTC that it was written with, every number must be as it says.
"""

import pathlib
import subprocess
import sys

import nvrtc

HEAD = """# What CUDA kernels take of a GPU

Written by `tests/cuda/kernels_report.py write` from what ptxas says (`-v`), NVRTC {version}. No GPU has a part in it.

The kernels of calls that programs spend their time in, in the variants that an H100 would be asked for. For each
architecture: registers of a work item / bytes of shared memory of a group / bytes that registers are spilled to and
fetched from / bytes of stack. Nothing may be spilled: a test compiles them anew.

"""

# Registers are counted, and too few: if nothing is spilled then, what looks for spills does not see them.
STARVED = "--maxrregcount=24"


def hot(launches: str) -> list[list[str]]:
    """[call, kernel, variant, work items of a group], each variant's kernel once."""
    rows = {}
    for line in subprocess.check_output([launches], text=True).splitlines():
        call, kernel, variant, items = line.split(" | ")
        rows.setdefault((kernel, variant), [call, kernel, variant, items])
    return list(rows.values())


def table(rows: list[list[str]], found) -> list[str]:
    lines = [f"| call | kernel | group | {' | '.join(nvrtc.ARCHITECTURES)} |",
             "| --- | --- | --- |" + " --- |" * len(nvrtc.ARCHITECTURES)]
    for call, kernel, variant, items in rows:
        numbers = [" / ".join(map(str, found[variant, kernel, a])) for a in nvrtc.ARCHITECTURES]
        lines.append(f"| {call} | `{kernel}` | {items} | {' | '.join(numbers)} |")
    return lines


def main(mode: str, program: str, launches: str, folder: str, report: str) -> None:
    rows = hot(launches)
    starved = next(variant for _, kernel, variant, _ in rows if kernel == "reduce") + f" {STARVED}"
    version, compiled = nvrtc.compile_all(program, pathlib.Path(folder) / "hot.jsonl",
                                          sorted({row[2] for row in rows} | {starved}))
    wrong = [f"{variant}, {a}: {result}\n{log}" for (variant, a), (result, log) in compiled.items() if result]
    if wrong:
        sys.exit("\n".join(wrong)[:8000])
    found = {(variant, kernel, a): numbers for (variant, a), (_, log) in compiled.items()
             for kernel, numbers in nvrtc.used(log).items()}
    if not all(found[starved, "reduce", a].spilled for a in nvrtc.ARCHITECTURES):
        sys.exit(f"no spills are seen where there must be: {starved}")
    wrong = [f"{call}: {kernel} spills {found[variant, kernel, a].spilled} bytes on {a}: {variant}"
             for call, kernel, variant, _ in rows for a in nvrtc.ARCHITECTURES if found[variant, kernel, a].spilled]
    text = HEAD.format(version=version) + "\n".join(table(rows, found)) + "\n"
    path = pathlib.Path(report)
    if mode == "write":
        path.write_text(text)
    elif f"NVRTC {version}." in path.read_text() and text != path.read_text():
        wrong.append(f"{path.name} is not what is found now: `kernels_report.py write` writes it anew")
    print(f"{len(rows)} kernels for {len(nvrtc.ARCHITECTURES)} architectures, NVRTC {version}: "
          f"{max(numbers.registers for numbers in found.values())} registers at most")
    if wrong:
        sys.exit("\n".join(wrong)[:8000])


if __name__ == "__main__":
    main(*sys.argv[1:])
