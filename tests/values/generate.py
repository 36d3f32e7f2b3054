#!/usr/bin/env python3
"""Writes the expected results: tests/values/data/SECTION.txt, a line for each call, and SECTION.bin.gz, the
results in the order of the lines.

usage: generate.py [OPERATOR...]

Needs PyTorch (pip install torch). Two runs give the same bytes. With operators nothing is written; their
lines are printed.
"""

import collections
import gzip
import itertools
import pathlib
import re
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "core/ops/generate"), str(ROOT / "plugin-sdk")]

import torch  # noqa: E402

import calls  # noqa: E402
import emit_aten  # noqa: E402
import expect  # noqa: E402
import generate_kernels  # noqa: E402
import rules  # noqa: E402
import samples  # noqa: E402
import table as tables  # noqa: E402
from inputs import Tensor  # noqa: E402

OPERATORS = ROOT / "core/ops/operators.toml"


def samples_of(table, entry):
    """Those of operators.toml."""
    given = entry.get("calls") or entry["samples"]
    return table.sample_classes.get(given, []) if isinstance(given, str) else given


def argument_lists(table, entry, name):
    """Those and what samples.py adds."""
    extra = samples.SHAPES.get(name) or samples.EXTRA.get(name, [])
    for word, python in samples.WORDS.items():
        extra = [re.sub(rf"(?<![\w-]){re.escape(word)}", python, s) for s in extra]
    return list(samples_of(table, entry)) + extra


def form_calls(op, forms, args, seen):
    """The call itself; for some of each dtypes, those of its in-place and out forms."""
    call = calls.Call(op, args)
    yield call
    dtypes = tuple(t.dtype for t in call.tensors)
    seen[dtypes] += 1
    if seen[dtypes] < 3 and (len(set(dtypes)) < 2 or len(seen) % 3 == 0):
        for form in calls.written_forms(forms, args):
            yield calls.Call(form, list(args))


class Writer:
    """The two files of a section."""

    def __init__(self):
        self.lines, self.blob, self.counts = [], bytearray(), collections.Counter()

    def add(self, call, results, gradients, tangents):
        self.lines.append(line(call, results, gradients, tangents))
        for r in results + (gradients or []) + (tangents or []):
            self.blob += r.blob() if isinstance(r, expect.Result) else b""
        self.counts["calls"] += 1
        self.counts["gradients"] += gradients is not None
        self.counts["tangents"] += tangents is not None
        self.counts["differs"] += bool(call.differs)


def line(call, results, gradients, tangents):
    words = [f"{call} ->", " ".join(map(str, results))]
    if gradients is not None:
        words += ["grad", " ".join(map(str, gradients))]
    if tangents is not None:
        words += ["jvp", " ".join(map(str, tangents))]
    if call.differs:
        words.append(f"differs={call.differs}")
    return " ".join(words)


class Shape:
    """A result of which the shape and dtype alone are expected."""

    def __init__(self, result):
        self.text = str(result).split("~")[0] + "?"

    def __str__(self):
        return self.text


def is_tame(entry, kernels):
    """Are large values and infinities none of its formula's matter?"""
    kernel = next((k for k in kernels if k.name == entry.get("kernel")), None)
    return entry["schema"].startswith(samples.TAME) or kernel is not None and not kernel.has_extremes


def check_core(table):
    """The list of core_aten.toml is that of this PyTorch."""
    listed = emit_aten.load(ROOT / "core/ops/core_aten.toml", table)
    core = {name.removeprefix("aten::") for name in torch._C._dispatch_get_all_op_names()
            if name.startswith("aten::") and is_core(name)}
    if core != set(listed["overloads"]) or not torch.__version__.startswith(listed["pytorch"]):
        raise SystemExit(f"core_aten.toml is not what PyTorch {torch.__version__} tags as core: it lacks "
                         f"{sorted(core - set(listed['overloads']))}, and has {sorted(set(listed['overloads']) - core)} too many")


def is_core(name):
    base, _, overload = name.removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, base, None)
    found = getattr(packet, overload or "default", None)
    return found is not None and torch.Tag.core in found.tags


def write_operator(table, kernels, entry, section, writer, notes):
    forms = [op for op in table.ops if op.entry is entry]
    op = next((o for o in forms if o.form == "functional"), forms[0])
    name = op.schema.name
    if name in samples.WITHOUT:
        writer.lines.append(f"# without: {name}: {samples.WITHOUT[name]}")
        return
    pointwise = calls.is_pointwise(op, section)
    differentiable = "constant" not in entry and not op.native_inplace and name not in samples.SHAPES
    # its own, so that a new operator changes no other's numbers
    seeds, seen, done = itertools.count(zlib.crc32(name.encode()) % 90000 + 1), collections.Counter(), set()
    for args in calls.spread(op, argument_lists(table, entry, name), section, is_tame(entry, kernels)):
        for call in form_calls(op, forms, calls.numbered(args, seeds), seen):
            key = re.sub(r"#\d+", "", str(call))
            if key in done:
                continue
            done.add(key)
            call.gradient = differentiable and call.op is op and any(t.is_float for t in call.tensors)
            write_call(call, op, pointwise, writer, notes)


def expect_of(call, functional, pointwise):
    """The call with what is expected of it. The functional form says what an out form is to write."""
    if call.op.form != "out":
        return call, *expect.expected(call, pointwise)
    same = calls.Call(functional, call.args)
    results, *_ = expect.expected(same, pointwise)
    out = Tensor("any", results[0].dtype, tuple(results[0].native.shape), "strided", 1)
    return calls.Call(call.op, call.complete()[:-1] + [out], differs=same.differs), results, None, None


def write_call(call, functional, pointwise, writer, notes):
    name = call.op.schema.name
    try:
        call, results, gradients, tangents = expect_of(call, functional, pointwise)
    except rules.LeftOut as rule:
        writer.counts[f"left out: {rule}"] += 1
        return
    except expect.REFUSALS as error:
        notes[name, f"{type(error).__name__}: " + str(error).split("\n")[0][:110]].append(str(call))
        writer.counts["refused by PyTorch"] += 1
        return
    if call.lacks_gradient:
        notes[name, "no gradient: " + call.lacks_gradient.split("\n")[0][:90]].append(str(call))
    writer.add(call, [Shape(r) for r in results] if functional.schema.name in samples.SHAPES else results, gradients, tangents)


def file_of(section):
    return re.sub(r"\W+", "_", section)


def main(only):
    rules.check_page((ROOT / "docs/values.md").read_text())
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    kernels = generate_kernels.load(ROOT / "plugin-sdk/kernels.toml")
    table = tables.load(OPERATORS, kernels)
    sections = tables.sections(table)
    if not only:
        check_core(table)
    writers, notes = {}, collections.defaultdict(list)
    for entry in table.entries:
        section = sections[entry["schema"]]
        writer = writers.setdefault(section, Writer())
        if not only or entry["schema"].split("(")[0] in only:
            write_operator(table, kernels, entry, section, writer, notes)
    total = sum((w.counts for w in writers.values()), collections.Counter())
    for (name, error), which in notes.items():
        print(f"refused {len(which)} of {name}: {error}: {which[0]}", file=sys.stderr)
    print(dict(total), file=sys.stderr)
    if only:
        print("\n".join(line for w in writers.values() for line in w.lines))
        return
    data = HERE / "data"
    data.mkdir(exist_ok=True)
    for section, writer in writers.items():
        head = f"# {section}: what PyTorch {torch.__version__.split('+')[0]} gives. Written by ../generate.py.\n"
        (data / f"{file_of(section)}.txt").write_text(head + "".join(line + "\n" for line in writer.lines))
        (data / f"{file_of(section)}.bin.gz").write_bytes(gzip.compress(bytes(writer.blob), 9, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
