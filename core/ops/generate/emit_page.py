"""operators.md: the page that lists every operator."""

HEAD = """\
# Operators

<!-- Made by core/ops/generate/generate.py from core/ops/operators.toml. -->

Every operator of Tenon: {n}, from {n_entries} entries of the table. `tenon ops NAME` prints the same of
one of them, and who answers its calls.

* **C** has a function for each form: `tn_add(a, b)` returns a new tensor, `tn_add_(a, b)` writes into
  the first argument, `tn_add_out(a, b, ..., out)` into the last. Arguments stand in the order of the
  schema; those with a default may be left out from the right.
* **runs**: the kernel operator that a device's plugin implements (those of the small set every device
  has), and what runs where a device lacks it. A view makes a tensor over the same storage, a composite
  calls other operators; neither reaches a device.
* **autocast**: what a thread under [autocast](autocast.md) casts the arguments to; nothing where it says nothing.
* **gradient**: by a formula of its own, through the operators it calls, or none, with the reason.

"""


def cell(text):
    return text.replace("|", "\\|")


def runs(entry, small):
    run = entry.get("run", "")
    lines = "; ".join(line.rstrip(";") for line in run.strip().splitlines())  # a row of a table is one line
    others = "other operators" if run.startswith("c:") else f"`{lines}`"
    if entry["kind"] == "view":
        return "view"
    if entry["kind"] == "composite":
        return f"composite: {others}"
    kernel = f"{entry['kind']}, kernel `{entry['kernel']}`" + (" (small set)" if entry["kernel"] in small else "")
    of = " of integers" if entry.get("run_for") else ""
    return kernel + (f"; else{of} {others}" if run else "")


def gradient(entry):
    if "constant" in entry:
        text = f"none: {entry['constant']}"
    else:
        text = "formula" if "grad" in entry else "through its calls"
    if "why_not_second" in entry:
        text += f"; not twice: {entry['why_not_second']}"
    return text


def row(entry, ops, small):
    names = "<br>".join(f"`tn_{op.c_name}`" for op in ops)
    return (f"| {names} | `{cell(entry['schema'])}` | {cell(entry['doc'])} | {cell(runs(entry, small))} "
            f"| {entry.get('autocast', '')} | {cell(gradient(entry))} |\n")


def page(table, sections, kernels):
    small = {k.name for k in kernels if k.small}
    out = [HEAD.format(n=len(table.ops), n_entries=len(table.entries))]
    last = None
    for entry in table.entries:
        heading = sections[entry["schema"]]
        if heading != last:
            last = heading
            out.append(f"\n## {heading[0].upper()}{heading[1:]}\n\n"
                       "| C | schema | what it does | runs | autocast | gradient |\n| --- | --- | --- | --- | --- | --- |\n")
        out.append(row(entry, [op for op in table.ops if op.entry is entry], small))
    return "".join(out).replace("\n\n\n", "\n\n")
