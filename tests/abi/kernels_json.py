#!/usr/bin/env python3
"""Reads kernels.json as a binding would, and writes a program that compares it with tenon/kernels.h.

usage: kernels_json.py kernels.json OUTPUT.c"""

import json
import sys

PROGRAM = """/* Made by kernels_json.py. */
#include <tenon/kernels.h>
#include <tenon/plugin.h>

#include <stdio.h>
#include <string.h>

static int n_wrong;
#define SAME(name, is_same) \\
    if (!(is_same)) \\
        n_wrong++, printf("%s: another %s\\n", name, #is_same);
#define LIST(name, type, header, ...) \\
    SAME(name, sizeof((const type[])header) == sizeof((const type[])__VA_ARGS__) && \\
                   memcmp((const type[])header, (const type[])__VA_ARGS__, \\
                          sizeof((const type[])header)) == 0)

typedef struct entry {
    const char *symbol, *schema, *kind;
    uint64_t hash;
    int small;
} entry;
#define ENTRY(name, hash, small, kind, schema) {#name, schema, #kind, hash, small},
static const entry header[] = {TN_KERNEL_TABLE(ENTRY)};
"""


def text(value):
    return json.dumps(value)


def main(source, output):
    with open(source) as f:
        kernels = json.load(f)["kernels"]
    lines = [PROGRAM, "static const entry in_json[] = {\n"]
    checks = []
    for k in kernels:
        name, symbol = text(k["name"]), k["name"].replace(".", "_")
        lines.append(f'    {{"{symbol}", {text(k["schema"])}, "{k["kind"]}", UINT64_C({k["hash"]}), {int(k["small"])}}},\n')
        checks.append(f"SAME({name}, strcmp(TN_KERNEL_{symbol}, {name}) == 0)")
        checks.append(f"SAME({name}, TN_KERNEL_HASH_{symbol} == UINT64_C({k['hash']}))")
        checks += [f"SAME({name}, TN_ARG_{symbol}_{a['name']} == {i})" for i, a in enumerate(k["args"])]
        for which, things in (("ARG", k["args"]), ("OUT", k["outs"])):
            codes = ", ".join(str(t["type"]) for t in things)
            checks.append(f"LIST({name}, int, TN_KERNEL_{which}_TYPES_{symbol}, {{{codes}}})")
        masks = ", ".join(" | ".join(f"TN_DTYPE_BIT(TN_{d.upper()})" for d in dtypes) for dtypes in k["dtypes"])
        checks.append(f"LIST({name}, uint64_t, TN_KERNEL_DTYPES_{symbol}, {{{masks}}})")
        if not k["doc"]:
            sys.exit(f"{k['name']} has no doc")
    lines.append("};\n\nint main(void) {\n    enum { N = sizeof header / sizeof *header };\n"
                 "    SAME(\"table\", sizeof header == sizeof in_json)\n"
                 "    for (int i = 0; i < N && !n_wrong; i++) {\n"
                 "        const entry *h = &header[i], *j = &in_json[i];\n"
                 "        SAME(h->symbol, !strcmp(h->symbol, j->symbol) && !strcmp(h->schema, j->schema))\n"
                 "        SAME(h->symbol, !strcmp(h->kind, j->kind) && h->hash == j->hash && h->small == j->small)\n"
                 "    }\n")
    lines += [f"    {check}\n" for check in checks]
    lines.append("    return n_wrong != 0;\n}\n")
    with open(output, "w") as f:
        f.write("".join(lines))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
