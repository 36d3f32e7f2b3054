#!/usr/bin/env python3
"""Prints what the tests of one build need, for ninja: test_targets.py BUILD      (asan, tsan)

A build with sanitizers takes minutes, and its tests need not all of it.
"""

import json
import pathlib
import sys

from test_summary import LEFT_OUT, suites_of

build = sys.argv[1]
folder = pathlib.Path(f"build-{build}").resolve()
tests = json.loads((folder / "meson-info/intro-tests.json").read_text())
targets = json.loads((folder / "meson-info/intro-targets.json").read_text())
needed = {target for test in tests if not suites_of(test) & LEFT_OUT[build] for target in test["depends"]}
for target in targets:
    if target["id"] in needed:
        print(*(pathlib.Path(name).relative_to(folder) for name in target["filename"]), sep="\n")
