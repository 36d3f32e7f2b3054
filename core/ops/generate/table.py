"""operators.toml, its sections and kernels.toml, read and checked. A hole in the table stops the build here."""

import pathlib
import sys
import tomllib
from dataclasses import dataclass, field

import schema as schemas

FIELDS = {"schema", "c", "forms", "kind", "types", "kernel", "rename", "constants", "choices", "infer", "run", "run_for", "grad",
          "attrs", "calls", "constant", "nondifferentiable_outputs", "cross_device", "samples", "why_not_second",
          "tolerance", "check", "wide", "autocast", "moves", "doc"}
KINDS = ("pointwise", "general", "view", "composite")
TYPES = ("promote", "float", "same", "whole")
FORMS = ("functional", "inplace", "out")
TOLERANCES = ("exact", "ulp2", "ulp4", "sum", "dot", "composite")
MOVED = ("tensor", "tensors", "scalar")
AUTOCASTS = ("low", "f32", "widest")
CHECKS = ("geometry", "data", "cancels")


@dataclass
class Op:
    """One form of one entry: what the dispatcher knows as an operator."""

    entry: dict
    form: str
    schema: schemas.Schema
    functional: schemas.Schema  # of the entry as written

    @property
    def c_name(self):
        """The written rule: base, overload in lower case unless Tensor, then _ or _out."""
        base, overload = self.functional.base, self.functional.overload
        name = self.entry.get("c") or base + ("_" + overload.lower() if overload not in ("", "Tensor") else "")
        return name + {"functional": "", "inplace": "_", "out": "_out"}[self.form]

    @property
    def functional_c_name(self):
        return Op(self.entry, "functional", self.functional, self.functional).c_name

    @property
    def native_inplace(self):
        return self.functional.base.endswith("_")

    @property
    def kind(self):
        return self.entry["kind"]

    @property
    def n_outs(self):
        return len(self.schema.rets)

    @property
    def returns_list(self):
        return self.n_outs == 1 and self.schema.rets[0].type == "Tensor[]"

    def returns_written(self):
        """Does it return an argument that it writes?"""
        return self.n_outs == 1 and self.schema.rets[0].alias.endswith("!")


@dataclass
class Table:
    entries: list
    headings: list  # of the section of each entry
    ops: list = field(default_factory=list)
    sample_classes: dict = field(default_factory=dict)

    def by_c_name(self, name):
        return next((op for op in self.ops if op.c_name == name), None)


def fail(entry, why):
    sys.exit(f"operators.toml: {entry.get('schema', '?')}: {why}")


def form_schema(entry, functional, form):
    """The schema text of a form, from the functional one."""
    if form == "functional":
        return functional
    args = functional.text[functional.text.index("(") + 1:functional.text.rindex(") ->")]
    if form == "inplace":
        first = functional.args[0]
        if first.type != "Tensor":
            fail(entry, "an in-place form needs a Tensor as first argument")
        args = args.replace("Tensor ", "Tensor(a!) ", 1)
        name = functional.base + "_" + (f".{functional.overload}" if functional.overload else "")
        return schemas.parse(f"{name}({args}) -> Tensor(a!)")
    if len(functional.rets) != 1:
        fail(entry, "an out form needs one result")
    overload = "out" if functional.overload in ("", "Tensor") else functional.overload + "_out"
    star = "" if ", *, " in args else ", *"
    return schemas.parse(f"{functional.base}.{overload}({args}{star}, Tensor(a!) out) -> Tensor(a!)")


def moved(entry):
    """The arguments of a kernel whose elements the result's are."""
    return entry["moves"].split(", ") if isinstance(entry.get("moves"), str) else []


def section_file(path, name):
    return pathlib.Path(path).parent / "operators" / f"{name}.toml"


def check_files(path, sections):
    """Is every file of the folder a section, and the other way round?"""
    there = {file.stem for file in section_file(path, "any").parent.glob("*.toml")}
    if odd := there ^ set(sections):
        sys.exit(f"{path}: [sections] and the files of operators/ differ in {', '.join(sorted(odd))}")


def load(path, kernels):
    kernel_kinds = {kernel.name: kernel.kind for kernel in kernels}
    data = tomllib.loads(pathlib.Path(path).read_text())
    check_files(path, data["sections"])
    table = Table([], [], sample_classes=data["samples"])
    for name, heading in data["sections"].items():
        defaults = tomllib.loads(section_file(path, name).read_text())
        entries = [defaults | entry for entry in defaults.pop("op")]
        table.entries += entries
        table.headings += [heading] * len(entries)
    for entry in table.entries:
        unknown = set(entry) - FIELDS
        if unknown:
            fail(entry, f"unknown fields {sorted(unknown)}")
        for name in ("schema", "samples", "doc"):
            if name not in entry:
                fail(entry, f"has no '{name}'")
        try:
            functional = schemas.parse(entry["schema"])
        except ValueError as error:
            fail(entry, str(error))
        name = Op(entry, "functional", functional, functional).c_name
        if "kernel" in entry:
            if entry["kernel"] not in kernel_kinds:
                fail(entry, f"no kernel operator '{entry['kernel']}'")
            entry.setdefault("kind", "pointwise" if kernel_kinds[entry["kernel"]] == "pointwise" else "general")
        entry.setdefault("kind", "composite")
        if entry["kind"] == "general":
            entry.setdefault("infer", f"tni_infer_{name}")
        elif "infer" in entry:
            fail(entry, "'infer' is for kernels that are not pointwise")
        if entry["kind"] in ("view", "composite"):
            entry.setdefault("run", f"c:tni_run_{name}")
        if "run" in entry:
            entry["run"] = "; ".join(entry["run"].splitlines())
        entry.setdefault("types", "promote")
        entry.setdefault("forms", "functional")
        entry.setdefault("tolerance", "exact")
        for value, allowed, name in ((entry["kind"], KINDS, "kind"), (entry["types"], TYPES, "types"),
                                     (entry["tolerance"], TOLERANCES, "tolerance")):
            if value not in allowed:
                fail(entry, f"{name} '{value}' is not one of {allowed}")
        if entry.get("autocast", AUTOCASTS[0]) not in AUTOCASTS:
            fail(entry, f"autocast '{entry['autocast']}' is not one of {AUTOCASTS}")
        if wrong := [name for name in moved(entry) if not (arg := functional.arg(name)) or arg.kind not in MOVED]:
            fail(entry, f"moves: {wrong} are no arguments that have elements")
        if moved(entry) and ("kernel" not in entry or [ret.type for ret in functional.rets] != ["Tensor"]):
            fail(entry, "moves: names arguments of kernels with one result")
        if set(entry.get("check", [])) - set(CHECKS):
            fail(entry, f"check has some of {CHECKS}")
        if (entry["kind"] in ("pointwise", "general")) != ("kernel" in entry):
            fail(entry, "pointwise and general operators have a kernel, the others have none")
        if "grad" in entry and "constant" in entry:
            fail(entry, "has a 'grad' and says why it has none")
        if not ({"grad", "constant"} & set(entry)) and "run" not in entry:
            fail(entry, "has no 'grad', no 'run' to differentiate through, and no 'constant' that says why")
        if isinstance(entry["samples"], str) and not entry["samples"].startswith("none: ") \
                and entry["samples"] not in table.sample_classes:
            fail(entry, f"no sample class '{entry['samples']}'")
        words = {a.name for a in functional.args if a.kind == "str"}
        if set(entry.get("choices", {})) - words or len(words) > 1:
            fail(entry, "'choices' are of a string argument, and there is one at most")
        for form in entry["forms"].split():
            if form not in FORMS:
                fail(entry, f"form '{form}' is not one of {FORMS}")
            table.ops.append(Op(entry, form, form_schema(entry, functional, form), functional))
    for op in table.ops:
        if sum(o.c_name == op.c_name for o in table.ops) > 1:
            fail(op.entry, f"the C name {op.c_name} stands twice")
        if sum(o.schema.name == op.schema.name for o in table.ops) > 1:
            fail(op.entry, f"the operator {op.schema.name} stands twice")
    return table


def sections(table):
    """{schema: heading} of each entry."""
    return {entry["schema"]: heading for entry, heading in zip(table.entries, table.headings, strict=True)}
