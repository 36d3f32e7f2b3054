"""Reads tenon/plugin.h and tenon/ext/*.h: their structs with their members, and their constants.

The header is read after the preprocessor, so that members and constants made by macros are seen, and
every line of a struct must be understood: a new member cannot be overlooked.
"""

import re
import subprocess
import sys


def preprocessed(header, compiler):
    """The header's own text: what it includes is left out."""
    include = header.rpartition("/tenon/")[0]
    text = subprocess.run(
        [*compiler, "-E", "-std=gnu11", "-I", include, header], check=True, capture_output=True, text=True
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
    sys.exit("plugin.h: a brace is not closed")


def declarations(body):
    """Splits at the semicolons that are in no braces or parentheses."""
    depth, start = 0, 0
    for i, c in enumerate(body):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(c, 0)
        if c == ";" and depth == 0:
            yield body[start:i].strip()
            start = i + 1
    if body[start:].strip():
        sys.exit(f"plugin.h: cannot read '{body[start:].strip()}'")


def member_name(struct, declaration):
    for pattern in (
        r".*\(\s*\*\s*(\w+)\s*\)\s*\(.*\)",  # a function pointer
        r"union \{.*\} (\w+)",
        r"[\w\s*]*?\b(\w+)(\[[^\]]*\])?",  # anything plain
    ):
        m = re.fullmatch(pattern, declaration)
        if m:
            return m[1]
    sys.exit(f"plugin.h: struct {struct}: cannot read member '{declaration}'")


def structs(text):
    understood = 0
    for m in re.finditer(r"typedef struct (\w+) \{", text):
        body, end = body_at(text, m.end() - 1)
        name = re.match(r"\} (\w+);", text[end:])
        if not name:
            sys.exit(f"plugin.h: struct {m[1]} is not named by its typedef")
        understood += 1 + body.count("union {")
        yield name[1], [(member_name(name[1], d), d) for d in declarations(body)]
    if understood != len(re.findall(r"\b(?:struct|union)(?: \w+)? ?\{", text)):
        sys.exit("plugin.h: a struct or union is declared in a form that is not understood")


def macros(header):
    """What is defined as a number or a string: name and value as it is written."""
    with open(header) as f:
        text = f.read().replace("\\\n", "")
        for name, value in re.findall(r"^#define (TN_\w+)[ ]+(\S.*)", text, re.M):
            if re.match(r'\(?[\d"]|UINT64_C\(|TN_ABI_|\(?TN_DTYPE', value):
                yield name, value
            elif value != "tenon_plugin_query_v1" and "__attribute__" not in value:
                sys.exit(f"{header}: cannot read the value of {name}, '{value}'")


def constants(text):
    for m in re.finditer(r"\benum[^;{]*\{", text):
        body, _ = body_at(text, m.end() - 1)
        for entry in filter(None, (e.strip() for e in body.split(","))):
            yield re.match(r"\w+", entry)[0]
