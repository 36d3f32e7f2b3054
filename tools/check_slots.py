#!/usr/bin/env python3
"""Checks that every function pointer of the plugin ABI carries a contract and its three tags.

usage: check_slots.py HEADER...

A slot is a member `type (*name)(...)` of a struct. The comment right above it must say something
and end with a thread tag, a state tag and [required] or [optional].
"""

import pathlib
import re
import sys

TAGS = [("[any-thread]", "[one-thread]"),
        ("[loaded]", "[plugin init]", "[device open]"),
        ("[required]", "[optional]")]
STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)^\} \1;", re.S | re.M)
SLOT = re.compile(r"(?P<comment>/\*(?:(?!\*/).)*\*/)?\s*(?:const )?\w+ \*?\(\*(?P<name>\w+)\)\(", re.S)


def problems_of(path):
    text = path.read_text()
    n_slots, problems = 0, []
    for struct in STRUCT.finditer(text):
        for slot in SLOT.finditer(struct[2]):
            n_slots += 1
            line = text.count("\n", 0, struct.start(2) + slot.start("name")) + 1
            where = f"{path}:{line}: {struct[1]}.{slot['name']}"
            comment = " ".join((slot["comment"] or "").replace("*", " ").split())
            missing = [" or ".join(group) for group in TAGS
                       if sum(comment.count(tag) for tag in group) != 1]
            if missing:
                problems.append(f"{where}: the comment above it lacks {', '.join(missing)}")
            elif len(comment.split("[")[0]) < 20:
                problems.append(f"{where}: the comment above it states no contract")
    return n_slots, problems


def main():
    results = [problems_of(pathlib.Path(name)) for name in sys.argv[1:]]
    n_slots = sum(n for n, _ in results)
    problems = [p for _, found in results for p in found]
    print("\n".join(problems) or f"slots: {n_slots}, each with its contract and tags")
    return 1 if problems or not n_slots else 0


sys.exit(main())
