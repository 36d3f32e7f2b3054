#!/usr/bin/env python3
"""Makes docs/vendor/requirements.md from plugin-sdk/requirements.toml, which it checks first; with
--header tenon/requirements.h, the names of the requirements.

usage: generate_requirements.py [--check] requirements.toml OUTPUT.md HEADER...
       generate_requirements.py --header requirements.toml OUTPUT.h

Every function pointer of the headers, and the entry, must be bound by a requirement, and every slot
that a requirement names must be there. With --check nothing is written; the exit code says whether
the page is current.
"""

import pathlib
import re
import sys
import textwrap
import tomllib

STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)^\} \1;", re.S | re.M)
FUNCTION = re.compile(r"\(\*(\w+)\)\(")
MEMBER = re.compile(r"(\w+)(?:\[\w+\])?;")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
ENTRY = "tenon_plugin_query_v1"

PAGE_HEAD = """\
# Requirements on plugins

<!-- Made by tools/generate_requirements.py from plugin-sdk/requirements.toml. -->

What a plugin must do, one sentence each. The contracts themselves stand in `tenon/plugin.h`, at the
slot; this page gives them numbers, for messages, reports and bug trackers, and names, for sources. A
number is never given to another requirement.

*Checked by* has the cases of the standard set that look for a breach, as patterns for
`tenon-conform run --filter`. They see what can be seen from outside; the sentence asks for all it says.
"""

HEADER = """\
/* tenon/requirements.h: the requirements on plugins by name, for what checks them. Made from
 * requirements.toml. */
#ifndef TENON_REQUIREMENTS_H
#define TENON_REQUIREMENTS_H

typedef enum tn_requirement {{
    TNP_NONE = 0,
{}}} tn_requirement;

/* X(name, number) for each of them. */
#define TN_REQUIREMENT_MAP(X) \\
{}

#endif
"""


def slots_of(headers):
    """(the slots that must be answered, everything that may be named)."""
    required, known = {ENTRY}, {ENTRY}
    for header in headers:
        text = COMMENT.sub("", header.read_text())
        known |= set(re.findall(r"\bTN_\w+", text))
        for name, body in STRUCT.findall(text):
            functions = {f"{name}.{member}" for member in FUNCTION.findall(body)}
            required |= functions
            known |= functions | {f"{name}.{member}" for member in MEMBER.findall(body)} | {name}
    return required, known


def problems_of(groups, headers):
    required, known = slots_of(headers)
    entries = [entry for group in groups for entry in group["requirement"]]
    numbers = [entry["id"] for entry in entries]
    problems = [f"TNP-{n} stands twice" for n in sorted({n for n in numbers if numbers.count(n) > 1})]
    problems += [f"TNP-{n} is gone; keep its entry, with `withdrawn`"
                 for n in range(1, max(numbers, default=0)) if n not in numbers]
    names = [entry.get("name", "") for entry in entries]
    problems += [f"name {name} stands twice" for name in sorted({n for n in names if n and names.count(n) > 1})]
    for entry in entries:
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", entry.get("name", "")):
            problems.append(f"TNP-{entry['id']}: needs a name in upper case")
        unknown = set(entry) - {"id", "name", "slots", "text", "withdrawn", "cases", "unchecked"}
        if unknown:
            problems.append(f"TNP-{entry['id']}: unknown field {sorted(unknown)}")
        problems += [f"TNP-{entry['id']}: there is no {slot}"
                     for slot in entry["slots"] if slot not in known]
        if not entry["text"].endswith(".") or not entry["slots"]:
            problems.append(f"TNP-{entry['id']}: needs a sentence and at least one slot")
        if "withdrawn" not in entry and bool(entry.get("cases")) == bool(entry.get("unchecked")):
            problems.append(f"TNP-{entry['id']}: needs either the cases that check it or `unchecked`, why none does")
    answered = {slot for entry in entries if "withdrawn" not in entry for slot in entry["slots"]}
    problems += [f"{slot}: no requirement binds it" for slot in sorted(required - answered)]
    return problems


def checks(entry):
    if "unchecked" in entry:
        return f"<br>Not checked: {entry['unchecked']}."
    return "<br>Checked by: " + ", ".join(f"`{case}`" for case in entry["cases"])


def row(entry):
    slots = ", ".join(f"`{slot.removeprefix('tn_')}`" for slot in entry["slots"])
    if "withdrawn" in entry:
        text = f"*Withdrawn: {entry['withdrawn']}*"
    else:
        text = entry["text"] + checks(entry)
    text = re.sub(r"(?<=\d)\^(\d+)", r"<sup>\1</sup>", text).replace("|", "\\|")
    return f"| <a id=\"tnp-{entry['id']}\"></a>TNP-{entry['id']}<br>`{entry['name']}` | {text} | {slots} |\n"


def page(groups):
    out = [PAGE_HEAD]
    for group in groups:
        out.append(f"\n## {group['title']}\n\n| number | requirement | slots |\n| --- | --- | --- |\n")
        out += [row(entry) for entry in group["requirement"]]
    return "".join(out)


def header(groups):
    """Each name with its number and its sentence."""
    out = []
    for group in groups:
        out.append(f"\n    /* ---- {group['title']} ---- */\n")
        for entry in group["requirement"]:
            lines = textwrap.wrap(entry["text"], 95, initial_indent="    /* ", subsequent_indent="     * ")
            out.append("\n".join(lines) + f" */\n    TNP_{entry['name']} = {entry['id']},\n")
    rows = [f"    X({entry['name']}, {entry['id']})" for group in groups for entry in group["requirement"]]
    return HEADER.format("".join(out), " \\\n".join(rows))


def main():
    args = sys.argv[1:]
    if args[:1] == ["--header"]:
        if len(args) != 3:
            sys.exit(__doc__)
        groups = tomllib.loads(pathlib.Path(args[1]).read_text())["group"]
        pathlib.Path(args[2]).write_text(header(groups))
        return
    check = args[:1] == ["--check"]
    if len(args) < 3 + check:
        sys.exit(__doc__)
    source, output, *headers = map(pathlib.Path, args[check:])
    groups = tomllib.loads(source.read_text())["group"]
    problems = problems_of(groups, headers)
    if problems:
        sys.exit("\n".join(f"{source.name}: {problem}" for problem in problems))
    text = page(groups)
    if not check:
        output.write_text(text)
    elif not output.exists() or output.read_text() != text:
        sys.exit(f"{output} is not what {source} says; run: tools/generate_requirements.py {source} "
                 f"{output} {' '.join(map(str, headers))}")
    else:
        n = sum(len(group["requirement"]) for group in groups)
        print(f"{output.name}: current; {n} requirements answer every slot")


main()
