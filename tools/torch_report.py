#!/usr/bin/env python3
"""Runs PyTorch's own tests of operators, modules and optimizers on devices of Tenon, and writes docs/reports/torch.md.

usage: torch_report.py BUILD DEVICES [options of `python -m tenon_torch.suite`]

DEVICES is a list as TENON_TORCH_DEVICES has it. With options the page is left alone: they choose a part. tests/torch/expected.txt says
what does not pass and why; what it does not say is an error.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reports/torch.md"
EXPECTED = ROOT / "tests/torch/expected.txt"


def environment(build, devices):
    plugins = [str(p.parent) for p in sorted((build / "plugins").glob("*/libtenon_*.so"))]
    here = {name: value for name, value in os.environ.items() if name != "TENON_FALLBACK"}  # the page says that nothing fell back
    return {**here, "PYTHONPATH": f"{build}/python:{build}/python/torch", "TENON_PLUGIN_PATH": ":".join(plugins),
            "TENON_TORCH_DEVICES": devices, "PYTHONWARNINGS": "ignore"}


def run(build, devices, more):
    """Of each device what its tests said, and whether all was as expected."""
    logs, good = {}, True
    for index, device in enumerate(devices.split(",")):
        log = build / f"torch-{device.replace(':', '')}.jsonl"
        command = [sys.executable, "-m", "tenon_torch.suite", "--device", str(index), "--expect", EXPECTED, "--log", log, *more]
        good &= subprocess.run(command, env=environment(build, devices), check=False).returncode == 0
        logs[device] = [json.loads(line) for line in log.read_text().splitlines()]
    return logs, good


def table(logs):
    lines = ["| device | | tests | passed | failed | share | operator or dtype absent | nothing to run |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for device, records in logs.items():
        for kind in dict.fromkeys(r["kind"] for r in records):
            n = collections.Counter(r["status"] for r in records if r["kind"] == kind)
            share = 100 * n["passed"] / max(n["passed"] + n["failed"], 1)
            lines.append(f"| {device} | {kind} | {n.total()} | {n['passed']} | {n['failed']} | {share:.1f} % | {n['absent']} | {n['none']} |")
    return lines


def failures(logs):
    rows = collections.defaultdict(set)
    for device, records in logs.items():
        for r in records:
            if r["status"] == "failed":
                rows[r["name"], r["reason"] or r["text"][:120]].add((r["dtype"], device, r["kind"]))
    lines = ["| test | dtypes | where | why |", "| --- | --- | --- | --- |"]
    for (name, reason), places in sorted(rows.items()):
        dtypes, where = sorted({p[0] for p in places}), sorted({f"{p[1]} {p[2]}" for p in places})
        lines.append(f"| `{name}` | {', '.join(dtypes)} | {', '.join(where)} | {reason.replace('|', '/')} |")
    return lines


def absent(records):
    """What is missing, and how many tests ask for it."""
    n = collections.Counter(r["text"] for r in records if r["status"] == "absent")
    return [", ".join(f"`{text}` {count}" for text, count in n.most_common())]


def page(logs, version):
    device, records = next(iter(logs.items()))
    return "\n".join([
        "# PyTorch's own tests", "",
        f"Written by `./dev torch`. PyTorch {version}'s own samples of its operators (OpInfo), results and gradients, of its modules (ModuleInfo; results, state and",
        "gradients) and of its optimizers (OptimizerInfo; six steps, half of them from a saved state on), at most 8 of each in each dtype, run on PyTorch's",
        "CPU and, through the bridge ([torch.md](../torch.md)), on devices of Tenon; nothing ran on the CPU in a device's place. A test is absent where it needs",
        "an operator of PyTorch's, or a dtype, that Tenon's table does not have; the share is of the others.", "",
        *table(logs), "", "## What fails, and why", "", *failures(logs), "", "## What is absent", "",
        f"Tests on {device} that need it:", "", *absent(records), ""])


def main():
    build, devices, more = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
    logs, good = run(build, devices, more)
    if not more:
        version = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__.split('+')[0])"], check=True,
                                 capture_output=True, text=True).stdout.strip()
        PAGE.write_text(page(logs, version))
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main())
