#!/usr/bin/env python3
"""Checks that what uses tenon/plugin.hpp compiles without a warning, by every C++ compiler that is here, under every
promised standard, with and without exceptions; and that without them nothing of a guard is left.

usage: warnings_test.py -I FOLDER [-I FOLDER ...] SOURCE...
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wold-style-cast", "-Wshadow",
            "-Wzero-as-null-pointer-constant", "-Wundef", "-Wno-unused-parameter", "-Werror"]
COMPILERS = {"g++": ["-Wuseless-cast", "-Wduplicated-cond", "-Wlogical-op"], "clang++": []}
STANDARDS = ["c++17", "c++20", "c++2b"]
MODES = [[], ["-fno-rtti"], ["-fno-exceptions", "-fno-rtti"]]


def handlers_of(path):
    """What the object needs of the exceptions' runtime."""
    names = subprocess.run(["nm", "-u", path], check=True, capture_output=True, text=True).stdout.split()
    return [name for name in names if name.startswith(("__cxa_begin_catch", "__cxa_throw", "__gxx_personality"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-I", dest="folders", action="append", type=pathlib.Path, required=True)
    parser.add_argument("sources", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    n_runs, problems = 0, []
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "a.o"
        for compiler in filter(shutil.which, COMPILERS):
            for standard in STANDARDS:
                for mode in MODES:
                    for source in args.sources:
                        n_runs += 1
                        what = f"{compiler} -std={standard} {' '.join(mode)} {source.name}"
                        result = subprocess.run([compiler, f"-std={standard}", *WARNINGS, *COMPILERS[compiler], *mode,
                                                 *(f"-I{path}" for path in args.folders), "-c", source, "-o", output],
                                                capture_output=True, text=True)
                        if result.returncode:
                            problems.append(f"{what}:\n{result.stderr}")
                        elif "-fno-exceptions" in mode and handlers_of(output):
                            problems.append(f"{what}: the object still has {handlers_of(output)}")
    print("\n".join(problems) or f"plugin.hpp: {n_runs} compilations")
    return 1 if problems or not n_runs else 0


sys.exit(main())
