#!/usr/bin/env python3
"""Checks who may know whom, over the #include lines of the tracked sources.

usage: check_layers.py [--root FOLDER]

    plugin-sdk  <-  base  <-  dispatcher  <-  loader  <-  core  <-  cli, samples, tests, bench
         ^--- plugins (each knows itself, plugins/shared and plugin-sdk)

plugin-sdk/conformance/worker/core is a program above core: public headers and the suite's own. Samples and
the command line include public headers only (and their own). Public headers include
public headers of their layer or a lower one. Headers of the system are not looked at.
"""

import argparse
import pathlib
import re
import sys

LAYERS = ["plugin-sdk", "base", "dispatcher", "loader", "core"]
OUTSIDE = ["cli", "samples", "tests", "bench", "tools"]
TEMPLATE = pathlib.Path("plugin-sdk/template")
SUITE = pathlib.Path("plugin-sdk/conformance")  # knows plugin.h alone
CORE_WORKER = SUITE / "worker" / "core"  # except for this program, which stands above core
SHARED = ("plugins", "shared")
PUBLIC_ONLY = {"cli", "samples"}
GENERATED = {"tenon/kernels.h": "plugin-sdk", "tenon/requirements.h": "plugin-sdk", "tenon/ops.h": "core"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".c", ".h", ".inc", ".def"}


def sources(root):
    for top in LAYERS + ["plugins"] + OUTSIDE:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path.relative_to(root)


def is_public(path):
    return "include" in path.parts


def resolve(root, source, name, by_angle):
    """The file an #include means, relative to the root, or None for one of the system."""
    candidates = [] if by_angle else [source.parent / name]
    if source.is_relative_to(SUITE):
        candidates += [SUITE / name]
    candidates += [pathlib.Path(name)]
    candidates += [pathlib.Path(layer) / "include" / name for layer in LAYERS]
    for candidate in candidates:
        # Normalised by hand: "../x" must not leave the tree through a symbolic link.
        full = (root / candidate).resolve()
        if full.is_file() and full.is_relative_to(root):
            return full.relative_to(root)
    if name in GENERATED:
        return pathlib.Path(GENERATED[name]) / "include" / name
    return None


def why_not(source, target):
    """Why `source` must not include `target`; None when it may."""
    here, there = source.parts[0], target.parts[0]
    if source.parent == TEMPLATE:  # the project of a vendor
        if is_public(target) or target.parent == TEMPLATE:
            return None
        return f"the template may include its own folder and public headers, not {target}"
    if source.is_relative_to(CORE_WORKER):
        if is_public(target) or target.is_relative_to(SUITE):
            return None
        return f"the suite's worker for core may include public headers and the suite's, not {target}"
    if target.is_relative_to(CORE_WORKER):
        return None if here == "tests" else f"{here} must not know a program above core: {target}"
    if here == "plugins":
        own = source.parts[:2]
        if target.parts[:2] in (own, SHARED) or (there == "plugin-sdk" and is_public(target)):
            return None
        return f"a plugin may include its own folder, plugins/shared and plugin-sdk's headers, not {target}"
    if there == "plugins":
        return None if here == "tests" else f"{here} must not know a plugin: {target}"
    if here in OUTSIDE:
        if here in PUBLIC_ONLY and not is_public(target) and there != here:
            return f"{here} may include public headers only, not {target}"
        if there in OUTSIDE and there != here and here in PUBLIC_ONLY:
            return f"{here} must not know {there}: {target}"
        return None
    if there in OUTSIDE:
        return f"{here} must not know {there}: {target}"
    if LAYERS.index(there) > LAYERS.index(here):
        return f"{here} is below {there} and must not include {target}"
    if is_public(source) and not is_public(target):
        return f"a public header may include public headers only, not {target}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent,
                        type=pathlib.Path)
    root = parser.parse_args().root.resolve()

    n_files, problems = 0, []
    for source in sources(root):
        n_files += 1
        for number, line in enumerate((root / source).read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = resolve(root, source, match[2], match[1] == "<")
            reason = target and why_not(source, target)
            if reason:
                problems.append(f"{source}:{number}: {reason}")
            if target is None and match[2].startswith("tenon/"):
                problems.append(f"{source}:{number}: there is no header <{match[2]}>")
    print("\n".join(problems) or f"layers: {n_files} files, each includes only what it may")
    return 1 if problems or not n_files else 0


sys.exit(main())
