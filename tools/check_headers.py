#!/usr/bin/env python3
"""Checks that every public header compiles alone, without a warning, under every promised standard.

usage: check_headers.py -I FOLDER [-I FOLDER ...]

Looks for tenon/**/*.h in the folders. C11, C17, C23 and C++17 for all; the plugin ABI C99 too.
tests/plugin_hpp has the like for tenon/plugin.hpp, which is nothing before it is used.
"""

import argparse
import itertools
import pathlib
import shutil
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wundef", "-Wshadow"]
C_STANDARDS = ["c11", "c17", "c2x"]
ABI_STANDARDS = ["c99"]
CXX_STANDARDS = ["c++17"]
CXX_WARNINGS = ["-Wold-style-cast"]
C_COMPILERS = ["gcc", "clang"]
CXX_COMPILERS = ["g++", "clang++"]


def is_abi(name):
    """C99 too: what a vendor's compiler sees, without anonymous unions or the like."""
    return name in ("tenon/plugin.h", "tenon/kernels.h") or name.startswith("tenon/ext/")


def compile_alone(compiler, language, standard, name, folders):
    command = [compiler, "-x", language, f"-std={standard}", *WARNINGS, "-fsyntax-only"]
    command += CXX_WARNINGS if language == "c++" else []
    command += [f"-I{folder}" for folder in folders] + ["-"]
    # Twice: the guard must hold. The declaration keeps -Wpedantic content with an empty unit.
    source = f"#include <{name}>\n#include <{name}>\nextern int header_check;\n"
    return subprocess.run(command, input=source, capture_output=True, text=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-I", dest="folders", action="append", type=pathlib.Path, required=True)
    folders = parser.parse_args().folders

    names = sorted({str(path.relative_to(folder)) for folder in folders
                    for path in folder.glob("tenon/**/*.h")})
    compilers = [c for c in C_COMPILERS if shutil.which(c)]
    cxx_compilers = [c for c in CXX_COMPILERS if shutil.which(c)]
    n_runs, n_failed = 0, 0
    for name in names:
        standards = C_STANDARDS + (ABI_STANDARDS if is_abi(name) else [])
        runs = list(itertools.product(compilers, ["c"], standards))
        runs += itertools.product(cxx_compilers, ["c++"], CXX_STANDARDS)
        for compiler, language, standard in runs:
            n_runs += 1
            result = compile_alone(compiler, language, standard, name, folders)
            if result.returncode:
                n_failed += 1
                print(f"<{name}> does not compile alone: {compiler} -std={standard}")
                print(result.stderr)
    if not compilers or not cxx_compilers:
        print("headers: no C or no C++ compiler found")
        return 1
    print(f"headers: {len(names)} headers, {n_runs} compilations, {n_failed} failed")
    return 1 if n_failed or not names else 0


sys.exit(main())
