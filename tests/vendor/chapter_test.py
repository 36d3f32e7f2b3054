#!/usr/bin/env python3
"""Builds the plugin of a chapter of docs/vendor, and runs the chapter's program on it.

The plugin is what `tenon new-plugin acme npu` writes, in C or in C++, and over it the files of the
chapters up to this one: what a reader has who followed the pages. Its try.c is the program.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

NAMES = {"yourvendor": "acme", "yourtype": "npu", "YOURTYPE": "NPU"}
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]


def compose(output, template, chapters):
    for folder in (template, *chapters):
        for path in sorted(path for path in folder.iterdir() if path.suffix in (".c", ".cpp", ".h")):
            text = path.read_text()
            if folder == template:
                for name, to in NAMES.items():
                    text = text.replace(name, to)
            (output / path.name).write_text(text)


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], **options)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command[:1]))} failed with {result.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--sanitize", default="none")
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--cpp", help="the compiler of C++; the plugin is in C++ then")
    parser.add_argument("--plugins", nargs="+", type=pathlib.Path, help="others that are to be there")
    parser.add_argument("--conform", type=pathlib.Path, help="tenon-conform, where it can run")
    parser.add_argument("--set", default="smoke", help="the set of cases that the plugin is to pass")
    parser.add_argument("--chapters", nargs="+", type=pathlib.Path)
    args = parser.parse_args()

    layers = {layer: [f"-I{root / layer / 'include'}" for root in (args.source, args.build)]
              for layer in ("plugin-sdk", "base", "dispatcher", "loader", "core")}
    includes = sum(layers.values(), [])
    flags = ["-O2", "-g", "-pthread", *WARNINGS]
    if args.sanitize != "none":
        flags.append(f"-fsanitize={args.sanitize}")
    c = [*args.compiler.split(), "-std=gnu11", *flags]
    compiler = [*args.cpp.split(), "-std=c++17", *flags] if args.cpp else c

    with tempfile.TemporaryDirectory() as holder:
        folder = pathlib.Path(holder)
        compose(folder, args.source / "plugin-sdk/template" / ("cpp" if args.cpp else "c"), args.chapters)
        program = folder / "try.c"
        sources = [path for path in sorted(folder.glob("*.cpp" if args.cpp else "*.c")) if path != program]
        plugin = folder / "libtenon_npu.so"
        # Vendors have the headers of plugin-sdk alone.
        run(*compiler, "-shared", "-fPIC", "-fvisibility=hidden", *layers["plugin-sdk"],
            f"-Wl,--version-script={args.source}/plugin-sdk/template/shared/plugin.map",
            '-DPLUGIN_VERSION="0.1.0"', "-o", plugin, *sources)
        core = args.build / "core"
        run(*c, *includes, "-o", folder / "try", program, f"-L{core}", "-ltenon", "-lm")
        paths = ":".join(str(path.resolve()) for path in [*args.plugins, plugin])
        libraries = ":".join(filter(None, [str(core), os.environ.get("LD_LIBRARY_PATH")]))
        run(folder / "try", env=os.environ | {"TENON_PLUGINS": paths, "LD_LIBRARY_PATH": libraries})
        if args.conform:
            classes = ("kernel", "same", "refuse", "contract", "process")
            filters = [word for name in classes for word in ("--filter", f"{name}/*")]
            run(args.conform, "run", plugin, "--set", args.set, "--quiet", *filters)


main()
