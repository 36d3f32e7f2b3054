#!/usr/bin/env python3
"""Device code is the language it says it is: compile_test.py LANGUAGE COMPILER LIST.

LANGUAGE   cuda: COMPILER is nvcc, and what a GPU asks for is compiled for sm_80 and sm_90; seconds
           for each variant, so that of each file the one is taken that shows the most.
           opencl: COMPILER is clang, and what all devices ask for is checked as OpenCL C 1.2: of each
           file so many variants that every macro has every value (of numbers, the least and the
           greatest) at least once; with OpenCL's functions declared by the compiler, by builtins.h
           besides, and by builtins.h alone.
LIST       variants.list
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


def choose(lines: list[str], most: int) -> list[str]:
    """Each time the line that shows the most that was not seen yet."""
    shown, chosen = values(lines), []
    left = set().union(*shown.values()) or {()}
    while left and len(chosen) < most:
        best = max(sorted(lines), key=lambda line: len(shown[line] & left))
        chosen.append(best)
        left -= shown[best] or {()}
    return chosen


def chosen(path: pathlib.Path, kinds: tuple[str, ...], most: int) -> list[str]:
    groups = collections.defaultdict(list)
    for line in sorted(variants.read(path)):
        if line.startswith(kinds) and not (kinds == ("gpu",) and line.endswith("-DHAS_F64=0")):
            groups[tuple(line.split()[:2])].append(line)
    return [line for group in groups.values() for line in choose(group, most)]


def text_of(line: str, file: str) -> str:
    """As CUDA's own headers have types called T, macros come after them."""
    defines = variants.macros(line)
    traits = "".join(f"#define {n} {defines.pop(n)}\n" for n in ("HAS_F64", "IS_CPU"))
    return (traits + f'#include "{DEVICE}/dialect.h"\n' +
            "".join(f"#define {n} {v}\n" for n, v in defines.items()) + f'#include "{DEVICE}/{file}"\n')


# How the compiler learns of OpenCL's functions.
DECLARED = {
    "cuda": [[]],
    "opencl": [["-Xclang", "-finclude-default-header"],
               ["-Xclang", "-finclude-default-header", "-DDECLARES_BUILTINS=1"],
               ["-cl-no-stdinc", "-include", "opencl-c-base.h", "-DDECLARES_BUILTINS=1"]],
}


def compile_one(language: str, compiler: str, line: str, declared: list[str]) -> str:
    file = line.split()[1]
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "variant.cu" if language == "cuda" else "variant.cl")
        pathlib.Path(source).write_text(text_of(line, file))
        if language == "cuda":
            command = [compiler, "-x", "cu", "-fatbin", "-gencode", "arch=compute_80,code=sm_80",
                       "-gencode", "arch=compute_90,code=sm_90", "-Werror", "all-warnings", "--fmad=false",
                       "-diag-suppress", "177,550"]  # by choice of macros something is not used
        else:
            command = [compiler, "-x", "cl", "-cl-std=CL1.2", *declared,
                       "-D__OPENCL_VERSION__=120", "-target", "spir64-unknown-unknown",
                       "-fsyntax-only", "-Wall", "-Werror", "-Wno-builtin-macro-redefined", "-Wno-macro-redefined",
                       "-Wno-unused", "-Wno-tautological-compare", "-Wno-parentheses"]  # by choice of macros
        done = subprocess.run([*command, "-I", str(ROOT), "-o", os.path.join(folder, "out"), source],
                              capture_output=True, text=True, cwd=folder)
    return f"{line} {' '.join(declared)}\n{done.stdout}{done.stderr}" if done.returncode else ""


def main(language: str, compiler: str, path: str) -> None:
    found = shutil.which(compiler) or shutil.which(f"/usr/local/cuda/bin/{compiler}")
    if not found:
        print(f"skipped: there is no {compiler}")
        sys.exit(SKIPPED)
    files = {f.name for f in (ROOT / DEVICE).glob("*.cl")}
    listed = {line.split()[1] for line in variants.read(pathlib.Path(path))}
    if files != listed:
        sys.exit(f"{path} has variants of {sorted(listed)}, and there are {sorted(files)}: "
                 "variants.py records it anew")
    kinds, most = (("gpu",), 1) if language == "cuda" else (("cpu", "gpu"), 1000)
    lines = chosen(pathlib.Path(path), kinds, most)
    with ThreadPoolExecutor(2) as pool:
        wrong = list(filter(None, pool.map(lambda task: compile_one(language, found, *task),
                                           [(line, d) for line in lines for d in DECLARED[language]])))
    print(f"{language}: {len(lines)} variants of {len(files)} files, {len(wrong)} with errors")
    if wrong:
        sys.exit("\n".join(wrong)[:8000])


if __name__ == "__main__":
    main(*sys.argv[1:])
