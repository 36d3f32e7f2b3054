"""Writes levels/*.txt as C text: generate.py OUTPUT FILE.txt..., in the order of the files."""

import pathlib
import sys


def quoted(line: str) -> str:
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def main() -> None:
    output, *files = map(pathlib.Path, sys.argv[1:])
    lines = [
        "/* Generated from plugin-sdk/conformance/runner/levels. */",
        '#include "plugin-sdk/conformance/runner/run/levels.h"',
        "",
        "const tc_level_text tc_level_texts[] = {",
    ]
    for file in files:
        lines.append(f'    {{"{file.stem}",')
        lines += [f"     {quoted(line)}" for line in file.read_text().splitlines()]
        lines[-1] += "},"
    lines += ["    {0},", "};", ""]
    output.write_text("\n".join(lines))


main()
