#!/usr/bin/env python3
"""Checks what shared objects export and need.

usage: check_exports.py library LIBTENON
       check_exports.py plugin PLUGIN...

The library exports nothing but tn_*. A plugin exports its one entry and needs no symbol of ours.
"""

import pathlib
import re
import subprocess
import sys

ENTRY = re.compile(r"tenon_plugin_query_v\d+")
# What linkers and sanitizers add by themselves.
TOOLS = re.compile(r"_init|_fini|__(asan|ubsan|sanitizer|lsan|tsan|odr|start|stop|bss|gcov|llvm)\w*|_edata|_end")


def symbols(path, which):
    out = subprocess.run(["nm", "-D", which, path], check=True, capture_output=True, text=True)
    names = {line.split()[-1].split("@")[0] for line in out.stdout.splitlines() if line}
    return {name for name in names if not TOOLS.match(name)}


def problems_of_library(path):
    exported = symbols(path, "--defined-only")
    problems = [f"{path}: exports {n}, which is not tn_*"
                for n in sorted(exported) if not n.startswith("tn_")]
    if not exported:
        problems.append(f"{path}: exports nothing")
    return problems


def problems_of_plugin(path):
    exported = symbols(path, "--defined-only")
    problems = [f"{path}: exports {n}; a plugin exports its entry alone"
                for n in sorted(exported) if not ENTRY.fullmatch(n)]
    if not any(ENTRY.fullmatch(n) for n in exported):
        problems.append(f"{path}: does not export tenon_plugin_query_v1")
    problems += [f"{path}: needs {n}; a plugin must link against nothing of Tenon"
                 for n in sorted(symbols(path, "--undefined-only")) if re.match(r"tni?_|tenon_", n)]
    return problems


def main():
    kind, paths = sys.argv[1], sys.argv[2:]
    check = {"library": problems_of_library, "plugin": problems_of_plugin}[kind]
    problems = [p for path in paths for p in check(pathlib.Path(path))]
    print("\n".join(problems) or f"symbols: {len(paths)} {kind}(s), as they must be")
    return 1 if problems or not paths else 0


sys.exit(main())
