#!/usr/bin/env python3
"""Checks that the listings of pages are what the sources say.

usage: check_listings.py [--write] PAGE.md...

A listing is a code block under a line such as

    <!-- from code/2-memory/memory.c: alloc free_memory -->

The path is from the page's folder; the names are functions, structs, tables or macros that start in
the first column of the file, each listed with the comment above it. Without names it is the whole
file. Code of the template is shown under the names that `tenon new-plugin acme npu` gives it. With
--write the listings are brought up to date.
"""

import pathlib
import re
import sys

LISTING = re.compile(r"(<!-- from (\S+?)(?:: ([\w ]+?))? -->\n```\w*\n)(.*?)(```\n)", re.S)
MARK = "<!-- from "
NAMES = {"yourvendor": "acme", "yourtype": "npu", "YOURTYPE": "NPU"}


def is_start(line, name):
    """Does a definition of `name` start in this line?"""
    if line[:1] in ("", " ", "}", "/", "*"):
        return False
    if line.startswith("#"):
        return re.match(rf"#define {name}\b", line) is not None
    return re.search(rf"\b{name}(\(| = | \{{|$)", line) is not None


def end_of(lines, start):
    """The line after the definition that starts there; None for a declaration."""
    if lines[start].startswith("#"):
        end = start
        while lines[end].endswith("\\"):
            end += 1
        return end + 1
    for i in range(start, len(lines)):
        if re.search(r"\{$", lines[i]):
            closing = next((j for j in range(i, len(lines)) if lines[j].startswith("}")), None)
            return closing + 1 if closing else None
        if lines[i].endswith(";"):
            return i + 1 if "{" in lines[i] else None
    return None


def definition(lines, name):
    """The lines of `name` with the comment right above, or None."""
    for start, line in enumerate(lines):
        end = end_of(lines, start) if is_start(line, name) else None
        if end is None:
            continue
        first = start
        if start and lines[start - 1].endswith("*/"):
            first = start - 1
            while not lines[first].startswith("/*"):
                first -= 1
        return lines[first:end]
    return None


def listing(source, names):
    text = source.read_text()
    for name, to in NAMES.items():
        text = text.replace(name, to)
    if not names:
        return text
    lines, parts = text.splitlines(), []
    for name in names.split():
        part = definition(lines, name)
        if part is None:
            raise LookupError(f"{source.name} has no definition of '{name}'")
        parts.append("\n".join(part) + "\n")
    return "\n".join(parts)


def renewed(page, problems):
    """The page's text with every listing as its source has it."""
    text = page.read_text()

    def renew(match):
        head, path, names, _, tail = match.groups()
        try:
            return head + listing(page.parent / path, names) + tail
        except (OSError, LookupError) as error:
            problems.append(f"{page}: {error}")
            return match[0]

    new = LISTING.sub(renew, text)
    if text.count(MARK) != len(LISTING.findall(text)):
        problems.append(f"{page}: a '{MARK}... -->' is not followed by a code block")
    return text, new


def main():
    args = sys.argv[1:]
    write = args[:1] == ["--write"]
    pages = [pathlib.Path(name) for name in args[write:]]
    n_listings, problems = 0, []
    for page in pages:
        text, new = renewed(page, problems)
        n_listings += text.count(MARK)
        if write:
            page.write_text(new)
        elif new != text:
            problems.append(f"{page}: listings are not what the sources say; run "
                            f"tools/check_listings.py --write {page}")
    print("\n".join(problems) or f"listings: {n_listings} in {len(pages)} pages, as the sources say")
    return 1 if problems or not n_listings else 0


sys.exit(main())
