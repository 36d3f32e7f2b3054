#!/usr/bin/env python3
"""Checks every listing of every page in C: it is what a source says, or it compiles and runs.

usage: check_listings.py [--root FOLDER] [--write] [--cc COMPILER... [--flag=FLAG ...]]

What stands between ```c and ``` is one of three, and between ```cpp and ``` one of the first two. A copy, under a line such as

    <!-- from code/2-memory/memory.c: alloc free_memory -->

where the path is from the page's folder and the names are functions, structs, tables or macros that
start in the first column of the file, each listed with the comment above it; without names it is the
whole file. Code of the template is shown under the names that `tenon new-plugin acme npu` gives it.
--write brings copies up to date.

A sketch, under <!-- sketch: REASON -->, which nothing looks at. Anything else is run (where --cc
says by what it is compiled), in a process of its own; it must end without a standing error and print
what a ```text block right after it says. It is

    a program       where it has a main function;
    declarations    after ```c top: functions, types and the like, known to the rest of the page;
    statements      else: the body of a function, run in a scope.

A comment <!-- given: STATEMENTS --> before it sets up what it takes for granted. The same listing on
two pages is run once.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from tree import ROOT, files_of

LISTING = re.compile(r"(?P<before>(?:<!--(?:(?!-->).)*-->\s*)*)^```(?P<fence>cpp|c)(?P<top> top)?\n(?P<text>.*?)^```$"
                     r"(?P<after>\s*^```text\n(?P<output>.*?)^```$)?", re.S | re.M)
MARK = re.compile(r"<!-- (from|given|sketch):? *(.*?) *-->", re.S)
NAMES = {"yourvendor": "acme", "yourtype": "npu", "YOURTYPE": "NPU"}
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-variable",
         "-Wno-unused-function"]

HEAD = """\
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>
#include <tenon/validation.h>
"""

FUNCTION = """\
static tn_status listing_{line}(void) {{
    TN_SCOPE;
    {given}
    {{
#line {line} "{page}"
{text}
    }}
    return tn_error_status();
}}
"""

MAIN = """\
int main(int argc, char **argv) {{
    int line = argc > 1 ? atoi(argv[1]) : 0;
    tn_status status = TN_ERR_INTERNAL;
{cases}
    fflush(stdout);
    if (status != TN_OK)
        fprintf(stderr, "%s\\n", tn_error_message());
    return status != TN_OK;
}}
"""


class Listing:
    def __init__(self, page, line, match):
        self.page, self.line, self.text, self.fence = page, line, match["text"], match["fence"]
        self.marks = dict(MARK.findall(match["before"]))
        self.is_top, self.output = bool(match["top"]), match["output"]
        self.is_program = re.search(r"^int main\(", self.text, re.M) is not None
        self.is_run = not {"from", "sketch"} & self.marks.keys()
        self.place = f"{page}:{line}"


def listings_of(page, problems):
    text, found, end = page.read_text(), [], 0
    for match in LISTING.finditer(text):
        problems += lost_marks(page, text, end, match.start())
        end = match.end()
        found.append(Listing(page, text.count("\n", 0, match.start("text")) + 1, match))
    problems += lost_marks(page, text, end, len(text))
    return found


def lost_marks(page, text, start, end):
    for mark in MARK.finditer(text, start, end):
        yield f"{page}:{text.count(chr(10), 0, mark.start()) + 1}: this mark stands before no listing"


# ---- copies -------------------------------------------------------------------------------------


def is_start(line, name):
    """Does a definition of `name` start in this line?"""
    if line[:1] in ("", " ", "}", "/", "*"):
        return False
    if line.startswith("#"):
        return re.match(rf"#define {name}\b", line) is not None
    return re.search(rf"\b{name}(\(| =( |$)| \{{|$)", line) is not None


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
            return i + 1 if "{" in lines[i] or re.search(r" =( |$)", lines[start]) else None
    return None


def definition(lines, name):
    """The lines of `name` with the comment right above, or None."""
    for start, line in enumerate(lines):
        end = end_of(lines, start) if is_start(line, name) else None
        if end is None:
            continue
        first = start
        if first and lines[first - 1].startswith("template <"):
            first -= 1
        if first and lines[first - 1].endswith("*/"):
            first -= 1
            while not lines[first].startswith("/*"):
                first -= 1
        return lines[first:end]
    return None


def original(listing):
    """What the source says that the listing is from."""
    path, _, names = listing.marks["from"].partition(":")
    text = (listing.page.parent / path).read_text()
    for name, to in NAMES.items():
        text = text.replace(name, to)
    if not names:
        return text
    lines, parts = text.splitlines(), []
    for name in names.split():
        part = definition(lines, name)
        if part is None:
            raise LookupError(f"{path} has no definition of '{name}'")
        parts.append("\n".join(part) + "\n")
    return "\n".join(parts)


def problems_of_copies(listings, write):
    for x in (x for x in listings if "from" in x.marks):
        try:
            text = original(x)
        except (OSError, LookupError) as error:
            yield f"{x.place}: {error}"
            continue
        if text != x.text and write:
            x.page.write_text(x.page.read_text().replace(f"```{x.fence}\n{x.text}```",
                                                                f"```{x.fence}\n{text}```", 1))
        elif text != x.text:
            yield f"{x.place}: the listing is not what the source says; run tools/check_listings.py --write"


# ---- what is run --------------------------------------------------------------------------------


def compile_c(compiler, source, folder, name):
    """The program, or the compiler's words."""
    file, program = folder / f"{name}.c", folder / name
    file.write_text(source)
    result = subprocess.run([*compiler[0], str(file), "-o", str(program), *FLAGS, *compiler[1], "-lm", "-pthread"],
                            capture_output=True, text=True)
    return (program, "") if result.returncode == 0 else (None, result.stderr)


def check_run(listing, command):
    """What is wrong with the listing, or nothing."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        return [f"{listing.place}: failed ({result.returncode}): {result.stderr.strip()}"]
    if listing.output is not None and result.stdout != listing.output:
        return [f"{listing.place}: prints\n{result.stdout}but the page says\n{listing.output}"]
    return []


def problems_of_runs(listings, compiler, folder):
    """Of one page: its programs one by one, all else as one program."""
    problems, parts, cases = [], [HEAD], []
    for x in listings:
        if x.is_program:
            program, words = compile_c(compiler, f'#line {x.line} "{x.page}"\n{x.text}', folder, f"program_{x.line}")
            problems += check_run(x, [program]) if program else [f"{x.place}:\n{words}"]
        elif x.is_top:
            parts.append(f'#line {x.line} "{x.page}"\n{x.text}')
        else:
            given = x.marks.get("given", "").replace("\n", " ")
            parts.append(FUNCTION.format(line=x.line, page=x.page, text=x.text, given=given))
            cases.append(x)
    if not cases:
        return problems
    calls = "\n".join(f"    if (line == {x.line})\n        status = listing_{x.line}();" for x in cases)
    program, words = compile_c(compiler, "".join(parts) + MAIN.format(cases=calls), folder, "page")
    if not program:
        return problems + [words]
    return problems + [problem for x in cases for problem in check_run(x, [program, str(x.line)])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=ROOT, type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--cc", nargs="+")
    parser.add_argument("--flag", action="append", default=[])
    args = parser.parse_args()
    root = args.root.resolve()

    n_listings, problems, seen = 0, [], set()
    for page in files_of(root, {".md"}):
        listings = listings_of(root / page, problems)
        n_listings += len(listings)
        problems += problems_of_copies(listings, args.write)
        problems += [f"{x.place}: a listing in C++ is a copy of what is built elsewhere" for x in listings
                     if x.fence == "cpp" and x.is_run]
        to_run = [x for x in listings if x.is_run and x.fence == "c" and (x.is_top or x.text not in seen)]
        seen |= {x.text for x in to_run}
        if args.cc and to_run:
            with tempfile.TemporaryDirectory() as folder:
                problems += problems_of_runs(to_run, (args.cc, args.flag), pathlib.Path(folder))
    print("\n".join(problems) or f"listings: {n_listings}, copies as the sources say"
          + (", the others run" if args.cc else "; the others were not run"))
    return 1 if problems or not n_listings else 0


sys.exit(main())
