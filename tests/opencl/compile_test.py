#!/usr/bin/env python3
"""Device code is OpenCL C 1.2: compile_test.py LIST (variants.list); needs clang.

Of each file so many variants that every macro has every value (of numbers, the least and the greatest) at least once;
with OpenCL's functions declared by the compiler, by builtins.h besides, and by builtins.h alone.
"""

import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import variants

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]  # which includes are named from
DEVICE = "plugins/shared/gpu/device"


def values(lines: list[str]) -> dict[str, set[tuple[str, str]]]:
    """Of each line what it shows: macros with values that count."""
    of = collections.defaultdict(set)
    for line in lines:
        for name, value in variants.macros(line).items():
            of[name].add(value)
    for name, seen in of.items():
        if all(v.isdecimal() for v in seen):
            of[name] = {min(seen, key=int), max(seen, key=int)}
    return {line: {(n, v) for n, v in variants.macros(line).items() if v in of[n]} for line in lines}


def choose(lines: list[str]) -> list[str]:
    """Each time the line that shows the most that was not seen yet."""
    shown, chosen = values(lines), []
    left = set().union(*shown.values()) or {()}
    while left:
        best = max(sorted(lines), key=lambda line: len(shown[line] & left))
        chosen.append(best)
        left -= shown[best] or {()}
    return chosen


def chosen(path: pathlib.Path) -> list[str]:
    groups = collections.defaultdict(list)
    for line in sorted(variants.read(path)):
        groups[tuple(line.split()[:2])].append(line)
    return [line for group in groups.values() for line in choose(group)]


# How the compiler learns of OpenCL's functions.
DECLARED = (
    ["-Xclang", "-finclude-default-header"],
    ["-Xclang", "-finclude-default-header", "-DDECLARES_BUILTINS=1"],
    ["-cl-no-stdinc", "-include", "opencl-c-base.h", "-DDECLARES_BUILTINS=1"],
)


def compile_one(compiler: str, line: str, declared: list[str]) -> str:
    _, file, options = line.split(maxsplit=2)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "variant.cl")
        pathlib.Path(source).write_text(f'#include "{DEVICE}/dialect.h"\n#include "{DEVICE}/{file}"\n')
        done = subprocess.run(
            [compiler, "-x", "cl", "-cl-std=CL1.2", *declared, *options.split(), "-D__OPENCL_VERSION__=120",
             "-target", "spir64-unknown-unknown", "-fsyntax-only", "-Wall", "-Werror",
             "-Wno-builtin-macro-redefined", "-Wno-macro-redefined", "-Wno-unused", "-Wno-tautological-compare",
             "-Wno-parentheses",  # by choice of macros
             "-I", str(ROOT), source], capture_output=True, text=True, cwd=folder)
    return f"{line} {' '.join(declared)}\n{done.stdout}{done.stderr}" if done.returncode else ""


def main(path: str) -> None:
    compiler = shutil.which("clang")
    if not compiler:
        print("skipped: there is no clang")
        sys.exit(SKIPPED)
    files = {f.name for f in (ROOT / DEVICE).glob("*.cl")}
    listed = {line.split()[1] for line in variants.read(pathlib.Path(path))}
    if files != listed:
        sys.exit(f"{path} has variants of {sorted(listed)}, and there are {sorted(files)}: "
                 "variants.py records it anew")
    lines = chosen(pathlib.Path(path))
    with ThreadPoolExecutor(2) as pool:
        wrong = list(filter(None, pool.map(lambda task: compile_one(compiler, *task),
                                           [(line, d) for line in lines for d in DECLARED])))
    print(f"{len(lines)} variants of {len(files)} files, {len(wrong)} with errors")
    if wrong:
        sys.exit("\n".join(wrong)[:8000])


if __name__ == "__main__":
    main(*sys.argv[1:])
