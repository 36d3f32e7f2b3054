"""core-aten.md: which operator of Tenon answers each of Core ATen's, from core_aten.toml."""

import sys
import tomllib

HEAD = """\
# Core ATen

<!-- Made by core/ops/generate/generate.py from core/ops/core_aten.toml and operators.toml. -->

PyTorch tags {n} overloads as `core`: those into which it decomposes the others, and which it asks a backend for. Of
those of PyTorch {pytorch} Tenon has {n_same} under their own name and {n_renamed} under another, {n_functions} are functions of the
C API that make no tensor, and {n_absent} are absent. Results are compared with PyTorch's ([values](values.md)).

| overload | Tenon | runs |
| --- | --- | --- |
"""


def load(path, table):
    """The list, with every overload accounted for once."""
    with open(path, "rb") as f:
        listed = tomllib.load(f)
    listed["overloads"] = listed["overloads"].split()
    ours = {op.schema.name: op for op in table.ops}
    named = {**listed["renamed"], **listed["functions"], **listed["absent"]}
    holes = [name for name in listed["overloads"] if name not in named and name not in ours]
    unknown = sorted((set(named) | set(listed["narrower"])) - set(listed["overloads"]))
    lost = [name for names in listed["renamed"].values() for name in names.split(", ") if name not in ours]
    for what, names in (("no operator, and no word why", holes), ("no overload of Core ATen", unknown),
                        ("no operator of the table", lost)):
        if names:
            sys.exit(f"core_aten.toml: {what}: {', '.join(names)}")
    return listed


def how(entry):
    return {"view": "view", "composite": "other operators"}.get(entry["kind"]) or f"kernel `{entry.get('kernel')}`"


def page(path, table):
    listed = load(path, table)
    ours = {op.schema.name: op for op in table.ops}
    rows = []
    for name in listed["overloads"]:
        note = f"; {listed['narrower'][name]}" if name in listed["narrower"] else ""
        if name in listed["absent"]:
            rows.append(f"| `{name}` | absent: {listed['absent'][name]} | |")
        elif name in listed["functions"]:
            rows.append(f"| `{name}` | `{listed['functions'][name]}` of the C API | |")
        else:
            names = listed["renamed"].get(name, name).split(", ")
            answers = ", ".join(f"`tn_{ours[n].c_name}`" for n in names)
            rows.append(f"| `{name}` | {answers}{note} | {how(ours[names[0]].entry)} |")
    count = {part: len(listed[part]) for part in ("renamed", "functions", "absent")}
    n = len(listed["overloads"])
    return HEAD.format(n=n, pytorch=listed["pytorch"], n_same=n - sum(count.values()), n_renamed=count["renamed"],
                       n_functions=count["functions"], n_absent=count["absent"]) + "\n".join(rows) + "\n"
