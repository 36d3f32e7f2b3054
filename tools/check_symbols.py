#!/usr/bin/env python3
"""Checks that what a folder's files share with each other bears the folder's prefix.

usage: check_symbols.py [--root FOLDER] BUILD-FOLDER

Looks with nm at the object files of BUILD-FOLDER/compile_commands.json that are of C: C++ has
namespaces. The prefixes are the table of CONTRIBUTING.md; a folder has those of the longest path
there, and one that no row covers is asked for nothing: what a program calls its functions is no
matter to another.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

from tree import ROOT

HEAD = "| folder | shared between its files |"
ENTRIES = {"main", "LLVMFuzzerTestOneInput"}
ENTRY = re.compile(r"tenon_plugin_query_v\d+")
# What sanitizers add by themselves.
TOOLS = re.compile(r"__(asan|odr_asan|ubsan|tsan|start|stop)\w*")


def prefixes_of(page):
    """{folder: (prefix, ...)} as the table has it."""
    rows = page.read_text().partition(HEAD)[2].splitlines()[2:]
    table = {}
    for row in rows:
        if not row.startswith("|"):
            break
        folders, prefixes = row.strip("| ").split(" | ")
        for folder in re.findall(r"`([^`]+)`", folders):
            table[pathlib.Path(folder)] = tuple(p.rstrip("*") for p in re.findall(r"`([^`]+\*)`", prefixes))
    return table


def shared_symbols(objects):
    """{object: names of what it defines for other files}."""
    out = subprocess.run(["nm", "--defined-only", "--extern-only", "-A", *objects], check=True,
                         capture_output=True, text=True).stdout
    symbols = {}
    for line in out.splitlines():
        path, _, rest = line.partition(":")
        symbols.setdefault(path, []).append(rest.split()[-1])
    return symbols


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=ROOT, type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    args = parser.parse_args()
    root, build = args.root.resolve(), args.build.resolve()
    table = prefixes_of(root / "CONTRIBUTING.md")

    sources = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        source, output = ((build / command[key]).resolve() for key in ("file", "output"))
        if output.is_file() and source.suffix != ".cpp":
            # A generated source belongs to the folder that it is generated for.
            sources[str(output)] = source.relative_to(build if source.is_relative_to(build) else root)
    problems, n_symbols = set(), 0
    for path, names in shared_symbols(list(sources)).items() if sources else ():
        folder = next((f for f in sources[path].parents if f in table), None)
        for name in names if folder else ():
            n_symbols += 1
            if not (name.startswith(table[folder]) or name in ENTRIES or ENTRY.fullmatch(name) or TOOLS.fullmatch(name)):
                problems.add(f"{sources[path]}: '{name}' is shared and does not begin with "
                             f"{' or '.join(table[folder])}, as CONTRIBUTING.md has it for {folder}")
    print("\n".join(sorted(problems)) or f"symbols: {n_symbols}, each with the prefix of its folder")
    return 1 if problems or not n_symbols else 0


sys.exit(main())
