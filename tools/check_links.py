#!/usr/bin/env python3
"""Checks that what pages and comments point to is there.

usage: check_links.py [--root FOLDER]

In pages (*.md): relative links lead to a file or folder, their anchors to a heading. In pages and in
the comments of sources: a path that begins with one of our folders names something that exists; *,
<name>, NAME and {a,b} in it stand for anything. An option TENON_<TYPE>_<OPTION> that the sources of
plugins/<type> name is on some page.
"""

import argparse
import pathlib
import re
import sys

from tree import C_SUFFIXES, ROOT, files_of

LINK = re.compile(r"\[[^\]\[]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.S | re.M)
HEADING = re.compile(r"^#+ +(.+?) *$", re.M)
C_COMMENT = re.compile(r"/\*.*?\*/|(?:^|\s)//[^\n]*", re.S)
HASH_COMMENT = re.compile(r"^\s*#[ !].*|\s# .*", re.M)
SOURCES = C_SUFFIXES | {".py", ".sh", ".toml", ".build", ".map"}


def anchors_of(path):
    """The anchors that the headings of a page get where it is shown."""
    found = []
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.S | re.M)
    for heading in HEADING.findall(text):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        found.append(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found


def problems_of_links(root, page, text):
    for match in LINK.finditer(text):
        target, _, anchor = match[1].partition("#")
        if re.match(r"\w+:", target):
            continue
        path = (root / page).parent / target if target else root / page
        if not path.exists():
            yield match.start(), f"the link to '{match[1]}' leads nowhere"
        elif anchor and (path.suffix != ".md" or anchor not in anchors_of(path)):
            yield match.start(), f"'{target or page}' has no heading for the anchor '#{anchor}'"


def stands_for_some(root, name):
    """Is there a file or a folder of this name, in which parts may stand for anything?"""
    pattern = re.sub(r"<[^>]*>|\{[^}]*\}|[A-Z]{3,}(?![\w.]*\.md)|\.\.\.", "*", name)
    return (root / name).exists() or any(root.glob(pattern))


def problems_of_paths(root, tops, text):
    path = re.compile(rf"(?<![\w/.\-<$])(?:{'|'.join(tops)})/[\w./*<>{{}},\-]*[\w*>}}]")
    for match in path.finditer(text):
        name = match[0].rstrip(".,-")
        if not stands_for_some(root, name):
            yield match.start(), f"there is no '{name}'"


def problems_of_options(path, text, pages):
    if path.parts[0] == "plugins" and len(path.parts) > 2:
        for match in re.finditer(rf"\bTENON_{path.parts[1].upper()}_[A-Z0-9_]+\b", text):
            if match[0] not in pages:
                yield match.start(), f"no page lists the option {match[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=ROOT, type=pathlib.Path)
    root = parser.parse_args().root.resolve()

    files = files_of(root, SOURCES | {".md"})
    n_pages, problems = sum(path.suffix == ".md" for path in files), []
    tops = sorted({path.parts[0] for path in files if len(path.parts) > 1 and path.parts[0][0] != "."})
    pages = "".join((root / path).read_text() for path in files if path.suffix == ".md")
    for path in files:
        text = (root / path).read_text()
        if path.suffix == ".md":
            plain = CODE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
            found = [*problems_of_links(root, path, plain), *problems_of_paths(root, tops, text)]
        else:
            pattern = C_COMMENT if path.suffix in C_SUFFIXES else HASH_COMMENT
            found = [(comment.start() + at, words) for comment in pattern.finditer(text)
                     for at, words in problems_of_paths(root, tops, comment[0])]
            found += problems_of_options(path, text, pages)
        problems += (f"{path}:{text.count(chr(10), 0, at) + 1}: {words}" for at, words in found)
    print("\n".join(problems) or f"links: {n_pages} pages and the comments of sources, all lead somewhere")
    return 1 if problems or not n_pages else 0


sys.exit(main())
