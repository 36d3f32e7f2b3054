#!/usr/bin/env python3
"""Compiles and runs the C listings of the documentation, so that they cannot drift.

usage: listings_test.py --cc COMPILER [--flag=FLAG ...] PAGE.md ...

What stands between ```c and ``` is
  a program       where it has a main function;
  declarations    after ```c top: functions, types and the like, known to the rest of the page;
  statements      else: the body of a function, run in a scope.
A comment of the form <!-- given: STATEMENTS --> before a listing sets up what it takes for granted.
A listing is run once, in a process of its own: it must end without a standing error and, where a
```text block follows it directly, print just that. The same listing on two pages is run once.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(.*)$")
GIVEN = re.compile(r"<!-- given:(.*?)-->", re.DOTALL)

HEAD = """\
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>
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
    tn_status status = TN_INTERNAL;
{cases}
    fflush(stdout);
    if (status != TN_OK)
        fprintf(stderr, "%s\\n", tn_error_message());
    return status != TN_OK;
}}
"""


class Listing:
    def __init__(self, page, line, info, text, given):
        self.page, self.line, self.info, self.text, self.given = page, line, info, text, given
        self.expected = None

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def is_program(self):
        return re.search(r"^int main\(", self.text, re.MULTILINE) is not None


def listings_of(path):
    """The C listings of a page, in order, each with what it should print."""
    found, between, block, info = [], "", None, ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if block is None and fence:
            block, info, first = [], fence[1].strip(), number + 1
        elif block is None:
            between += line + "\n"
        elif line == "```":
            text = "\n".join(block)
            if info in ("c", "c top"):
                given = "".join(GIVEN.findall(between)).replace("\n", " ").strip()
                found.append(Listing(path, first, info, text, given))
            elif info == "text" and found and not between.strip():
                found[-1].expected = text + "\n"
            block, between = None, ""
        else:
            block.append(line)
    return found


def compile_c(compiler, source, folder, name):
    """The program, or the compiler's words."""
    file, program = folder / f"{name}.c", folder / name
    file.write_text(source)
    result = subprocess.run([*compiler[0], str(file), "-o", str(program), *compiler[1]],
                            capture_output=True, text=True)
    return (program, "") if result.returncode == 0 else (None, result.stderr)


def check_run(listing, command):
    """What is wrong with the listing, or nothing."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        return [f"{listing.place}: failed ({result.returncode}): {result.stderr.strip()}"]
    if listing.expected is not None and result.stdout != listing.expected:
        return [f"{listing.place}: prints\n{result.stdout}but the page says\n{listing.expected}"]
    return []


def check_page(listings, compiler, folder):
    problems = []
    statements = [x for x in listings if x.info == "c" and not x.is_program]
    for listing in listings:
        if listing.is_program:
            program, words = compile_c(compiler, f'#line {listing.line} "{listing.page}"\n{listing.text}\n',
                                       folder, f"program_{listing.line}")
            problems += check_run(listing, [program]) if program else [f"{listing.place}:\n{words}"]
    if not any(not x.is_program for x in listings):
        return problems
    parts = [HEAD]
    for x in listings:
        if x.info == "c top":
            parts.append(f'#line {x.line} "{x.page}"\n{x.text}\n')
        elif not x.is_program:
            parts.append(FUNCTION.format(line=x.line, page=x.page, text=x.text, given=x.given))
    cases = "\n".join(f"    if (line == {x.line})\n        status = listing_{x.line}();" for x in statements)
    program, words = compile_c(compiler, "".join(parts) + MAIN.format(cases=cases), folder, "page")
    if not program:
        return problems + [words]
    for x in statements:
        problems += check_run(x, [program, str(x.line)])
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", required=True, nargs="+")
    parser.add_argument("--flag", action="append", default=[])
    parser.add_argument("--pages", required=True, nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    compiler = (args.cc, ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
                          "-Wno-unused-variable", "-Wno-unused-function", *args.flag, "-lm", "-pthread"])
    problems, n, seen = [], 0, set()
    for page in map(pathlib.Path.resolve, args.pages):
        listings = [x for x in listings_of(page) if x.info == "c top" or x.text not in seen]
        seen |= {x.text for x in listings}
        n += len(listings)
        with tempfile.TemporaryDirectory() as folder:
            problems += check_page(listings, compiler, pathlib.Path(folder)) if listings else []
    print("\n".join(problems) or f"{n} listings on {len(args.pages)} pages")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
