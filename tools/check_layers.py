#!/usr/bin/env python3
"""Checks who may know whom, over the #include lines of the sources, and that README.md and
CONTRIBUTING.md say the same.

usage: check_layers.py [--root FOLDER] [--build FOLDER]

    plugin-sdk  <-  base  <-  dispatcher  <-  loader  <-  core  <-  nn  <-  cli, samples, tests, bench
         ^--- plugins (each knows itself, plugins/shared and plugin-sdk)

A folder includes what is to its left. nn, the command line and the samples include public headers alone
(and their own), and public headers include public headers. In plugin-sdk/conformance the runner
stands above the worker; worker/core is a program above core.

A quoted include is a path from the root, or from the build's for what is generated; in the
projects that a reader copies out of the tree, from the file's folder. One that leads nowhere is a problem.
"""

import argparse
import pathlib
import re
import sys

from tree import C_SUFFIXES, ROOT, files_of, is_project

LAYERS = ["plugin-sdk", "base", "dispatcher", "loader", "core", "nn"]
OUTSIDE = ["cli", "samples", "tests", "bench"]
PUBLIC_ONLY = ["nn", "cli", "samples"]
SHARED = [("plugins", "shared")]
TEMPLATES = [pathlib.Path("plugin-sdk/template") / language for language in ("c", "cpp")]
SUITE = pathlib.Path("plugin-sdk/conformance")
CORE_WORKER = SUITE / "worker" / "core"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def is_public(path):
    return "include" in path.parts


def resolve(root, build, source, name, by_angle):
    """The file an #include means, relative to its root, or None when there is none."""
    if by_angle:
        candidates = [pathlib.Path(layer) / "include" / name for layer in LAYERS]
    elif is_project(source):
        # A chapter of the tutorial replaces files of the template and of the chapters before it.
        chapters = sorted((root / "docs/vendor/code").glob("*"))
        candidates = [source.parent / name]
        if not source.is_relative_to("samples"):
            candidates += [p.relative_to(root) / name for p in chapters] + [folder / name for folder in TEMPLATES]
    else:
        candidates = [pathlib.Path(name)]
    for candidate in candidates:
        if any((base / candidate).is_file() for base in (root, build)):
            return candidate
    return None


def why_not_in_suite(source, target):
    """The same for the conformance suite; None also for what is no matter of its own."""
    if source.is_relative_to(CORE_WORKER):
        if is_public(target) or target.is_relative_to(SUITE / "worker") or target.parent == SUITE:
            return None
        return f"the suite's worker for core may include public headers and the worker's, not {target}"
    if target.is_relative_to(CORE_WORKER) and source.parts[0] != "tests":
        return f"{source.parts[0]} must not know a program above core: {target}"
    if target.is_relative_to(SUITE / "runner") and not source.is_relative_to(SUITE / "runner"):
        return None if source.parts[0] == "tests" else f"{source.parent} must not know the suite's runner: {target}"
    return None


def why_not(source, target):
    """Why `source` must not include `target`; None when it may."""
    here, there = source.parts[0], target.parts[0]
    if source.is_relative_to(CORE_WORKER) or target.is_relative_to(SUITE):
        return why_not_in_suite(source, target)
    if is_project(source):
        if is_public(target) or is_project(target):
            return None
        return f"what a reader copies may include its own folder and public headers, not {target}"
    if here == "plugins":
        if target.parts[:2] in (source.parts[:2], *SHARED) or (there == "plugin-sdk" and is_public(target)):
            return None
        return f"a plugin may include its own folder, plugins/shared and plugin-sdk's headers, not {target}"
    if there == "plugins":
        return None if here == "tests" else f"{here} must not know a plugin: {target}"
    if is_public(source) and not is_public(target):
        return f"a public header may include public headers only, not {target}"
    if here in PUBLIC_ONLY:
        return None if is_public(target) or there == here else f"{here} may include public headers only, not {target}"
    if there in OUTSIDE:
        return None if here in OUTSIDE else f"{here} must not know {there}: {target}"
    if here in LAYERS and LAYERS.index(there) > LAYERS.index(here):
        return f"{here} is below {there} and must not include {target}"
    return None


def problems_of(root, build, source):
    for number, line in enumerate((root / source).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        by_angle, name = match[1] == "<", match[2]
        target = resolve(root, build, source, name, by_angle)
        if target:
            reason = why_not(source, target)
        elif by_angle:
            reason = name.startswith("tenon/") and f"there is no header <{name}>"
        else:
            reason = f'"{name}" leads nowhere; a quoted include is a path from the ' + (
                "file's folder" if is_project(source) else "root")
        if reason:
            yield f"{source}:{number}: {reason}"


def problems_of_pages(root):
    """The two drawings of the layers must be this script's."""
    drawing = "\n".join(line.strip() for line in __doc__.splitlines() if "<-" in line or "^--" in line)
    if "  <-  ".join(LAYERS + [", ".join(OUTSIDE)]) not in drawing:
        yield "tools/check_layers.py: its own drawing is not what it checks"
    page = "\n".join(line.strip() for line in (root / "CONTRIBUTING.md").read_text().splitlines())
    if drawing not in page:
        yield f"CONTRIBUTING.md: the layers are not drawn as tools/check_layers.py has them:\n{drawing}"
    house = (root / "README.md").read_text().partition("## The house")[2].split("```")[1:2]
    words = re.findall(rf"\b({'|'.join(LAYERS)})\b", house[0] if house else "")
    floors = list(dict.fromkeys(reversed(words)))  # from the ground up
    if floors != LAYERS:
        yield f"README.md: the house has the floors {floors}; tools/check_layers.py has {LAYERS}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=ROOT, type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path)
    args = parser.parse_args()
    root, build = args.root.resolve(), args.build or args.root / "build"

    files = files_of(root, C_SUFFIXES)
    problems = [problem for source in files for problem in problems_of(root, build, source)]
    problems += problems_of_pages(root)
    print("\n".join(problems) or f"layers: {len(files)} files, each includes only what it may")
    return 1 if problems or not files else 0


sys.exit(main())
