#!/usr/bin/env python3
"""The layout of tenon/plugin.h, member by member.

usage: offsets.py generate HEADER OUTPUT.c COMPILER...   writes a program that prints the layout
       offsets.py compare PROGRAM GOLDEN                 fails when it prints anything else

Each member's declaration is printed too, since an argument more in a function pointer moves nothing.
The header is read after the preprocessor, so that members and constants made by macros are seen,
and every line of a struct must be understood: a new member cannot be overlooked. The program itself
checks that the members it knows leave no gap.
"""

import difflib
import re
import subprocess
import sys


def preprocessed(header, compiler):
    """The header's own text: what it includes is left out."""
    text = subprocess.run(
        [*compiler, "-E", "-std=gnu11", header], check=True, capture_output=True, text=True
    ).stdout
    own, lines = False, []
    for line in text.splitlines():
        marker = re.match(r'# \d+ "(.*)"', line)
        if marker:
            own = marker[1] == header
        elif own:
            lines.append(line)
    return " ".join(" ".join(lines).split())


def body_at(text, start):
    """What stands between the brace at `start` and the one that closes it, and where that is."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[start + 1 : i], i
    sys.exit("offsets.py: a brace is not closed")


def declarations(body):
    """Splits at the semicolons that are in no braces or parentheses."""
    depth, start = 0, 0
    for i, c in enumerate(body):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(c, 0)
        if c == ";" and depth == 0:
            yield body[start:i].strip()
            start = i + 1
    if body[start:].strip():
        sys.exit(f"offsets.py: cannot read '{body[start:].strip()}'")


def member_name(struct, declaration):
    for pattern in (
        r".*\(\s*\*\s*(\w+)\s*\)\s*\(.*\)",  # a function pointer
        r"union \{.*\} (\w+)",
        r"[\w\s*]*?\b(\w+)(\[[^\]]*\])?",  # anything plain
    ):
        m = re.fullmatch(pattern, declaration)
        if m:
            return m[1]
    sys.exit(f"offsets.py: struct {struct}: cannot read member '{declaration}'")


def structs(text):
    understood = 0
    for m in re.finditer(r"typedef struct (\w+) \{", text):
        body, end = body_at(text, m.end() - 1)
        name = re.match(r"\} (\w+);", text[end:])
        if not name:
            sys.exit(f"offsets.py: struct {m[1]} is not named by its typedef")
        understood += 1 + body.count("union {")
        yield name[1], [(member_name(name[1], d), d) for d in declarations(body)]
    if understood != len(re.findall(r"\b(?:struct|union)(?: \w+)? ?\{", text)):
        sys.exit("offsets.py: a struct or union is declared in a form that is not understood")


def constants(text):
    for m in re.finditer(r"\benum[^;{]*\{", text):
        body, _ = body_at(text, m.end() - 1)
        for entry in filter(None, (e.strip() for e in body.split(","))):
            yield re.match(r"\w+", entry)[0]


MAIN = """/* Made by offsets.py. */
#include <tenon/plugin.h>

#include <stdio.h>

static size_t end;
static int gaps;

static void member(const char *type, const char *name, size_t offset, size_t size,
                   const char *text) {
    if (offset != end)
        gaps = printf("gap before %s.%s\\n", type, name);
    end = offset + size;
    printf("%s.%s %zu %zu  %s\\n", type, name, offset, size, text);
}
static void whole(const char *type, size_t size) {
    if (size != end)
        gaps = printf("gap at the end of %s\\n", type);
    printf("%s %zu\\n", type, size);
}
#define MEMBER(type, name, text) \\
    member(#type, #name, offsetof(type, name), sizeof(((type *)0)->name), text);
#define WHOLE(type) whole(#type, sizeof(type)); end = 0;
#define CONSTANT(name) printf("%s = %lld\\n", #name, (long long)(name));

int main(void) {
    printf("TN_ABI_VERSION = %u.%u\\n", TN_ABI_MAJOR, TN_ABI_MINOR);
    printf("TN_PLUGIN_QUERY_NAME = %s\\n", TN_PLUGIN_QUERY_NAME);
"""


def generate(header, output, *compiler):
    text = preprocessed(header, compiler)
    lines = [MAIN]
    for name, members in structs(text):
        lines += [f'    MEMBER({name}, {m}, "{d}")\n' for m, d in members]
        lines.append(f"    WHOLE({name})\n")
    lines += [f"    CONSTANT({c})\n" for c in constants(text)]
    lines.append("    return gaps != 0;\n}\n")
    with open(output, "w") as f:
        f.write("".join(lines))


def compare(program, golden):
    run = subprocess.run([program], capture_output=True, text=True)
    with open(golden) as f:
        wanted = f.read()
    if run.returncode == 0 and run.stdout == wanted:
        return
    sys.stdout.writelines(
        difflib.unified_diff(
            wanted.splitlines(True), run.stdout.splitlines(True), golden, "tenon/plugin.h"
        )
    )
    sys.exit(
        "\nThe layout of tenon/plugin.h has changed. Moving or changing what is there breaks every"
        "\nplugin that was built; members are only added at the end, with a new minor version and"
        f"\nnew files in tests/abi. Before 1.0, if it is meant: {program} > {golden}"
    )


if __name__ == "__main__":
    if len(sys.argv) >= 5 and sys.argv[1] == "generate":
        generate(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "compare":
        compare(*sys.argv[2:])
    else:
        sys.exit(__doc__)
