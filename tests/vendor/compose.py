#!/usr/bin/env python3
"""Puts the plugin of a chapter of the tutorial together: what `tenon new-plugin acme npu` writes,
and over it the files of the chapters up to this one.

usage: compose.py OUTPUT-FOLDER TEMPLATE CHAPTER...
"""

import pathlib
import sys

NAMES = {"yourvendor": "acme", "yourtype": "npu", "YOURTYPE": "NPU"}


def main():
    output, template, *chapters = map(pathlib.Path, sys.argv[1:])
    output.mkdir(parents=True, exist_ok=True)
    for folder in (template, *chapters):
        for path in sorted(folder.glob("*.[ch]")):
            text = path.read_text()
            if folder == template:
                for name, to in NAMES.items():
                    text = text.replace(name, to)
            (output / path.name).write_text(text)


main()
