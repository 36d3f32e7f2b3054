#!/usr/bin/env python3
"""The layout of tenon/plugin.h and tenon/ext/*.h, member by member, and what is a number there.

usage: offsets.py generate OUTPUT.c HEADER... -- COMPILER...   writes a program that prints it
       offsets.py compare PROGRAM GOLDEN                       fails when it prints anything else

Each member's declaration is printed too, since an argument more in a function pointer moves nothing.
plugin_h.py reads the header; the program itself checks that the members it knows leave no gap.
"""

import difflib
import subprocess
import sys

from plugin_h import constants, macros, preprocessed, structs

MAIN = """/* Made by offsets.py. */
%s
#include <stdio.h>

static size_t end;
static int gaps;

static void member(const char *type, const char *name, size_t offset, size_t size,
                   const char *text) {
    if (offset != end)
        gaps = printf("gap before %%s.%%s\\n", type, name);
    end = offset + size;
    printf("%%s.%%s %%zu %%zu  %%s\\n", type, name, offset, size, text);
}
static void whole(const char *type, size_t size) {
    if (size != end)
        gaps = printf("gap at the end of %%s\\n", type);
    printf("%%s %%zu\\n", type, size);
}
#define MEMBER(type, name, text) \\
    member(#type, #name, offsetof(type, name), sizeof(((type *)0)->name), text);
#define WHOLE(type) whole(#type, sizeof(type)); end = 0;
#define CONSTANT(name) printf("%%s = %%lld\\n", #name, (long long)(name));
#define TEXT(name) printf("%%s = %%s\\n", #name, name);
#define STATUS(NAME, value, name, text) printf("status %%d = %%s\\n", value, name);
#define DTYPE(NAME, value, name, bytes, category) \\
    printf("dtype %%d = %%s, %%d bytes, %%c\\n", value, name, bytes, category);

int main(void) {
    TN_STATUS_MAP(STATUS)
    TN_DTYPE_MAP(DTYPE)
    TN_DTYPE_RESERVED_MAP(DTYPE)
"""


def generate(output, *rest):
    split = rest.index("--")
    headers, compiler = rest[:split], rest[split + 1:]
    lines = [MAIN % "".join(f'#include <tenon/{h.rpartition("/tenon/")[2]}>\n' for h in headers)]
    for header in headers:
        text = preprocessed(header, compiler)
        for name, members in structs(text):
            lines += [f'    MEMBER({name}, {m}, "{d}")\n' for m, d in members]
            lines.append(f"    WHOLE({name})\n")
        lines += [f"    CONSTANT({c})\n" for c in constants(text)]
        lines += [f"    {'TEXT' if value[0] == chr(34) else 'CONSTANT'}({c})\n" for c, value in macros(header)]
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
