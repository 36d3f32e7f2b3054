"""Every relative link of a page, and every page, sample or source that a header names, is installed.

usage: installed_links.py DOC HEADERS
"""

import pathlib
import re
import sys

LINK = re.compile(r"\[[^\]\[]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.S | re.M)
NAMED = re.compile(r"(?<![\w/])(?:docs|samples|plugins/sim)/[\w/.-]*\w")

doc, headers = map(pathlib.Path, sys.argv[1:])
problems, n_links, n_named = [], 0, 0
for page in sorted(doc.rglob("*.md")):
    for match in LINK.finditer(CODE.sub("", page.read_text())):
        target = match[1].partition("#")[0]
        if not target or re.match(r"\w+:", target):
            continue
        n_links += 1
        path = (page.parent / target).resolve()
        if not path.exists() or doc.resolve() not in path.parents:
            problems.append(f"{page}: the link to '{match[1]}' leads to nothing that is installed")
for header in sorted(headers.rglob("*.h*")):
    for match in NAMED.finditer(header.read_text()):
        n_named += 1
        if not (doc / match[0]).exists():
            problems.append(f"{header}: '{match[0]}' is not installed")
print("\n".join(problems) or f"{n_links} links of pages and {n_named} paths in headers lead to what is installed")
sys.exit(1 if problems or not n_links or not n_named else 0)
