#!/usr/bin/env python3
"""Makes docs/environment.md from base/env.def.

usage: generate_env_doc.py [--check] env.def OUTPUT.md

With --check nothing is written; the exit code says whether the page is current.
"""

import pathlib
import re
import sys

ENTRY = re.compile(r'^X\((\w+), "([^"]*)", "([^"]*)", ([01]), "([^"]*)", "((?:[^"\\]|\\.)*)"\)$')

HEAD = """\
# Environment variables

<!-- Made by tools/generate_env_doc.py from base/env.def. -->

Every environment variable that Tenon reads. `tenon env` prints them with their current values.

What is wrong is said once, on standard error, unless `TENON_LOG=off` or the program takes the log: a value that
is not allowed, and then the default is used; a folder or file that cannot be; a name that is nearly one of
these; an option that a plugin does not have.

| variable | type | default | meaning |
| --- | --- | --- | --- |
"""

TAIL = """
Variables marked * select code or files. A program with raised privileges (set-uid, set-gid,
capabilities) ignores them, and says so in its log.

A plugin's own options are `TENON_<TYPE>_<OPTION>`: option `threads` of plugins for type `cpu` is
`TENON_CPU_THREADS`. The plugin's page lists them: [the CPU](cpu.md), [OpenCL](opencl.md), [CUDA](cuda.md),
[the simulated chip](sim.md).
"""


def page(definitions):
    rows = []
    for number, line in enumerate(definitions.splitlines(), 1):
        if not line.startswith("X("):
            continue
        match = ENTRY.match(line)
        if not match:
            sys.exit(f"env.def:{number}: not of the form X(NAME, \"type\", \"default\", 0|1, \"allowed\", \"help\")")
        name, kind, default, overrides, allowed, text = match.groups()
        star = " *" if overrides == "1" else ""
        shown = f"`{default}`" if default else ""
        text = (f"{text} ({allowed})" if allowed else text).replace("|", "\\|")
        rows.append(f"| `TENON_{name}`{star} | {kind} | {shown} | {text} |\n")
    return HEAD + "".join(rows) + TAIL


def main():
    args = sys.argv[1:]
    check = args[:1] == ["--check"]
    if len(args) != 2 + check:
        sys.exit(__doc__)
    source, output = map(pathlib.Path, args[check:])
    text = page(source.read_text())
    if not check:
        output.write_text(text)
    elif not output.exists() or output.read_text() != text:
        sys.exit(f"{output} is not what {source} says; run: tools/generate_env_doc.py {source} {output}")
    else:
        print(f"{output.name}: current")


main()
