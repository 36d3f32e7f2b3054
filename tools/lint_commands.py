#!/usr/bin/env python3
"""Writes the compile commands that the analyzers are to follow: each source of ours once.

usage: lint_commands.py BUILD-FOLDER OUTPUT/compile_commands.json

Beside it cppcheck.json is for cppcheck, which gets no headers of other libraries: of Debian's Python.h it cannot find
the half that lies in a folder of the architecture's.

Taken from the build's: what a file is compiled for first. Left out are the tests and the benchmarks,
generated sources, C++ (the bridge to PyTorch, whose headers take an analyzer a minute for each file), and options that only GCC knows; -iquote, which cppcheck does not know, is -I here.
The largest come first, so that no analyzer ends alone.
"""

import json
import pathlib
import re
import shlex
import sys

from tree import ROOT

FOLDERS = ("base", "dispatcher", "loader", "core", "nn", "cli", "samples", "plugins", "plugin-sdk", "python")
ELSEWHERE = re.compile(r"-(I|isystem)/.*") # but for the tree itself
GCC_ONLY = re.compile(r"-Wno-stringop-overflow|-fno-semantic-interposition|-fno-thread-jumps|-f(lto|ipa)\S*")


def main():
    build, output = map(pathlib.Path, sys.argv[1:])
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if not source.is_relative_to(ROOT) or source.relative_to(ROOT).parts[0] not in FOLDERS or source.suffix != ".c":
            continue
        arguments = [a.replace("-iquote", "-I") for a in shlex.split(entry["command"]) if not GCC_ONLY.fullmatch(a)]
        commands.setdefault(source, {"directory": entry["directory"], "file": str(source),
                                     "command": shlex.join(arguments)})
    def is_ours(argument):
        return not ELSEWHERE.fullmatch(argument) or argument.startswith(f"-I{ROOT}")

    largest_first = sorted(commands, key=lambda source: -source.stat().st_size)
    output.parent.mkdir(exist_ok=True)
    ordered = [commands[source] for source in largest_first]
    output.write_text(json.dumps(ordered, indent=1))
    ours = [entry | {"command": shlex.join(filter(is_ours, shlex.split(entry["command"])))} for entry in ordered]
    (output.parent / "cppcheck.json").write_text(json.dumps(ours, indent=1))
    print("\n".join(map(str, largest_first)))


main()
