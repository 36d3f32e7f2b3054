#!/usr/bin/env python3
"""Checks what shared objects export and need.

usage: check_exports.py library LIBTENON [RELEASED.txt...]
       check_exports.py list LIBTENON
       check_exports.py plugin PLUGIN...

The library exports nothing but tn_*, each name with a version, and all that a released one did. `list` prints
that: a name and its version in each line. A plugin exports its one entry and needs no symbol of ours.
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
    words = (line.split() for line in out.stdout.splitlines() if line)
    names = {word[-1].split("@")[0] for word in words if word[-2] != "A"}  # A: the name of a version
    return {name for name in names if not TOOLS.match(name)}


def versions(path):
    """What the library exports, with its version: "tn_add TENON_1"."""
    out = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True)
    words = (line.split() for line in out.stdout.splitlines() if line)
    return sorted(word[-1].replace("@@", " ").replace("@", " ") for word in words if word[-2] != "A")


def problems_of_library(path, released):
    exported = symbols(path, "--defined-only")
    there = versions(path)
    missing = {line for page in released for line in pathlib.Path(page).read_text().splitlines()} - set(there)
    unversioned = [name for name in there if name.startswith("tn_") and " TENON_" not in name]
    problems = [f"{path}: {name.replace(' ', '@')} was released, and is gone" for name in sorted(missing)]
    problems += [f"{path}: {name} has no version; core/tenon.map.in gives it one" for name in unversioned]
    problems += [f"{path}: exports {n}, which is not tn_*"
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
    if kind == "list":
        print("\n".join(name for name in versions(paths[0]) if name.startswith("tn_")))
        return 0
    if kind == "library":
        problems = problems_of_library(paths[0], paths[1:])
    else:
        problems = [p for path in paths for p in problems_of_plugin(pathlib.Path(path))]
    print("\n".join(problems) or f"symbols: {kind}: as they must be")
    return 1 if problems or not paths else 0


sys.exit(main())
