#!/usr/bin/env python3
"""Checks what the formatter leaves alone: comments, and the conventions of CONTRIBUTING.md.

usage: check_style.py [--root FOLDER] [--write-guards]

Comments: a banner is one line of at most 96 columns; a list item goes on under its own text.
Conventions: a file's first comment does not begin with the file's name, and a public header's does;
include guards are made of the path; includes do not climb with ".."; locals that hold a value are not
const; a product in a macro, which the formatter takes for a pointer, is written a * b.

Projects that a reader copies out of the tree have conventions of their own. --write-guards puts guards
right, as a header's move asks for it.
"""

import argparse
import pathlib
import re
import sys

from tree import C_SUFFIXES, ROOT, files_of, is_project

HEADERS = (".h", ".hpp")
RELEASED = re.compile(r"tests/abi/plugin-.*\.h")  # as they were released

BANNER = re.compile(r"^\s*/\* -{3,}")
WHOLE_BANNER = re.compile(r"^\s*/\* ---- .+ -{4,} \*/$")
BANNER_COLUMNS = 96
COMMENT = re.compile(r"/\*.*?\*/", re.S)
COMMENT_LINE = re.compile(r"\s*(?:/\*|\*)?( *)(.*?)(?:\*/)?$")
ROW = re.compile(r"\S+( \S+)? {2,}")  # of a table: it begins anew
CLIMB = re.compile(r'^\s*#\s*include\s*"[^"]*\.\./')
CONST = re.compile(r"^(?:\s+|.*for \()const (?!char \*|void \*)(?:(?:unsigned|signed|long|short|struct) )*"
                   r"\w+ \w+ ?=(?!=)")
PRODUCT = re.compile(r"(?<!\bsizeof)(?<!\breturn)(?<!\bcase)(?<=[\w)\]]) \*\("
                     r"|\) \*\w"
                     r"|(?:= |return |[-+/] |\? )[\w.>\[\]-]+ \*\w")
GUARD = re.compile(r"^#ifndef (\w+)\n#define \1\n", re.M)


def broken_list_lines(comment):
    """Where, in the lines of a comment, a list item goes on without standing under its own text."""
    before_indent, before = 0, ""
    for number, line in enumerate(comment.split("\n")):
        spaces, text = COMMENT_LINE.match(line).groups()
        indent, text = len(spaces), text.rstrip()
        goes_on = before and not before.endswith((".", ":", ";", ")")) and re.match(r"[a-z]|-?\d", text)
        if goes_on and before_indent >= 2 > indent and not ROW.match(text):
            yield number
        before_indent, before = indent, text


def problems_of_comments(text):
    for number, line in enumerate(text.splitlines(), 1):
        if BANNER.match(line) and (not WHOLE_BANNER.match(line) or len(line) > BANNER_COLUMNS):
            yield number, f"a banner is /* ---- title ----...---- */, one line of at most {BANNER_COLUMNS} columns"
    for comment in COMMENT.finditer(text):
        first = text.count("\n", 0, comment.start()) + 1
        for number in broken_list_lines(comment[0]):
            yield first + number, "this line of a list item does not stand under the item's text"


def include_path(path):
    """What a public header is included as; None for any other file."""
    return pathlib.Path(*path.parts[path.parts.index("include") + 1:]) if "include" in path.parts else None


def guard_of(path):
    """The include guard of a header: of a public one's include path, or of the path from the root."""
    return re.sub(r"\W", "_", str(include_path(path) or "tni" / path)).upper()


def problems_of_conventions(path, text):
    in_macro = False
    for number, line in enumerate(text.splitlines(), 1):
        in_macro = in_macro or line.lstrip().startswith("#define")
        if CLIMB.match(line):
            yield number, 'an include is a path from the root, not through ".."'
        if CONST.match(line):
            yield number, "a local that holds a value is not marked const"
        if in_macro and PRODUCT.search(line):
            yield number, "a product is written a * b; here it looks like a pointer"
        in_macro = in_macro and line.endswith("\\")
    head, public = re.match(r"/\* (\S+?):? ", text), include_path(path)
    if public and path.suffix in HEADERS and (not head or head[1] != str(public)):
        yield 1, f"the first comment of a public header begins with '{public}:'"
    if not public and head and pathlib.Path(head[1]).name == path.name:
        yield 1, "the first comment says why the file exists; its name is known"
    guard = GUARD.search(text)
    needs_guard = path.parent.name != "device"  # device code is pasted together
    if path.suffix in HEADERS and (guard[1] != guard_of(path) if guard else needs_guard):
        where = text.count("\n", 0, guard.start()) + 1 if guard else 1
        yield where, f"the include guard is {guard_of(path)}; --write-guards writes it"


def write_guard(path, full):
    text = full.read_text()
    old = GUARD.search(text)
    if old and old[1] != guard_of(path):
        full.write_text(re.sub(rf"\b{old[1]}\b", guard_of(path), text))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=ROOT, type=pathlib.Path)
    parser.add_argument("--write-guards", action="store_true")
    args = parser.parse_args()
    root = args.root.resolve()

    files = [path for path in files_of(root, C_SUFFIXES) if not RELEASED.fullmatch(str(path))]
    problems = []
    for path in files:
        own_conventions = is_project(path)
        if args.write_guards and path.suffix in HEADERS and not own_conventions:
            write_guard(path, root / path)
        text = (root / path).read_text()
        found = [*problems_of_comments(text), *(() if own_conventions else problems_of_conventions(path, text))]
        problems += (f"{path}:{number}: {words}" for number, words in sorted(found))
    print("\n".join(problems) or f"style: {len(files)} files")
    return 1 if problems or not files else 0


sys.exit(main())
