#!/usr/bin/env python3
"""Checks that who names the suites that run once names those that the build leaves out elsewhere.

usage: check_suites.py [--root FOLDER] SUITE...
"""

import argparse
import pathlib
import re
import sys

from tree import ROOT

SAID = {"CONTRIBUTING.md": re.compile(r"run once, in the plain build: (.*?)\.\s", re.S),
        "tools/test_summary.py": re.compile(r"^ONCE = \{(.*?)\}", re.M)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=ROOT, type=pathlib.Path)
    parser.add_argument("suites", nargs="+")
    args = parser.parse_args()

    problems = []
    for name, pattern in SAID.items():
        found = pattern.search((args.root / name).read_text())
        said = set(re.findall(r"[`\"](\w+)[`\"]", found[1])) if found else set()
        if said != set(args.suites):
            problems.append(f"{name}: names {', '.join(sorted(said)) or 'no suite'} as what runs once; "
                            f"meson.build has {', '.join(sorted(args.suites))}")
    print("\n".join(problems) or f"suites: {len(args.suites)} run once, and all say so")
    return 1 if problems else 0


sys.exit(main())
