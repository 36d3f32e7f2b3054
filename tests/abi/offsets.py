#!/usr/bin/env python3
"""The layout of tenon/plugin.h, member by member.

usage: offsets.py generate HEADER OUTPUT.c COMPILER...   writes a program that prints the layout
       offsets.py compare PROGRAM GOLDEN                 fails when it prints anything else

Each member's declaration is printed too, since an argument more in a function pointer moves nothing.
plugin_h.py reads the header; the program itself checks that the members it knows leave no gap.
"""

import difflib
import subprocess
import sys

from plugin_h import constants, preprocessed, structs

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
