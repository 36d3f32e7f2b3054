#!/usr/bin/env python3
"""Runs PyTorch's own tests of its operators on devices of Tenon, and writes docs/reports/torch.md.

usage: torch_report.py BUILD DEVICES [options of `python -m tenon_torch.opinfo`]

DEVICES is a list as TENON_TORCH_DEVICES has it. With options the page is left alone: they choose a part. tests/torch/opinfo.txt says
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
EXPECTED = ROOT / "tests/torch/opinfo.txt"
KINDS = {"results": [], "gradients": ["--backward"]}


def environment(build, devices):
    plugins = [str(p.parent) for p in sorted((build / "plugins").glob("*/libtenon_*.so"))]
    here = {name: value for name, value in os.environ.items() if name != "TENON_FALLBACK"}  # the page says that nothing fell back
    return {**here, "PYTHONPATH": f"{build}/python:{build}/python/torch", "TENON_PLUGIN_PATH": ":".join(plugins),
            "TENON_TORCH_DEVICES": devices, "PYTHONWARNINGS": "ignore"}


def run(build, devices, more):
    """The logs, by device and kind, and whether all was as expected."""
    logs, good = {}, True
    for index, device in enumerate(devices.split(",")):
        for kind, words in KINDS.items():
            log = build / f"torch-{device.replace(':', '')}-{kind}.jsonl"
            command = [sys.executable, "-m", "tenon_torch.opinfo", "--device", str(index), "--expect", EXPECTED, "--log", log, *words, *more]
            good &= subprocess.run(command, env=environment(build, devices), check=False).returncode == 0
            logs[device, kind] = [json.loads(line) for line in log.read_text().splitlines()]
    return logs, good


def table(logs):
    lines = ["| device | | pairs | passed | failed | share | operator or dtype absent | nothing to run |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for (device, kind), records in logs.items():
        n = collections.Counter(r["status"] for r in records)
        share = 100 * n["passed"] / max(n["passed"] + n["failed"], 1)
        lines.append(f"| {device} | {kind} | {len(records)} | {n['passed']} | {n['failed']} | {share:.1f} % | {n['absent']} | {n['none']} |")
    return lines


def failures(logs):
    rows = collections.defaultdict(set)
    for (device, kind), records in logs.items():
        for r in records:
            if r["status"] == "failed":
                rows[r["operator"], r["reason"] or r["text"][:120]].add((r["dtype"], device, kind))
    lines = ["| operator | dtypes | where | why |", "| --- | --- | --- | --- |"]
    for (operator, reason), places in sorted(rows.items()):
        dtypes, where = sorted({p[0] for p in places}), sorted({f"{p[1]} {p[2]}" for p in places})
        lines.append(f"| `{operator}` | {', '.join(dtypes)} | {', '.join(where)} | {reason.replace('|', '/')} |")
    return lines


def absent(logs):
    """What is missing, and how many pairs ask for it on the first device."""
    first = next(iter(logs))[0]
    n = collections.Counter(r["text"] for (device, _), records in logs.items() if device == first for r in records if r["status"] == "absent")
    return [", ".join(f"`{text}` {count}" for text, count in n.most_common())]


def page(logs, version):
    return "\n".join([
        "# PyTorch's tests of its operators", "",
        f"Written by `./dev torch`. PyTorch {version}'s own samples of its operators (OpInfo), at most 8 of each pair of operator and dtype, run on",
        "PyTorch's CPU and, through the bridge ([torch.md](../torch.md)), on devices of Tenon; nothing ran on the CPU in a device's place. A pair is absent where",
        "it needs an operator of PyTorch's, or a dtype, that Tenon's table does not have; the share is of the others.", "",
        *table(logs), "", "## What fails, and why", "", *failures(logs), "", "## What is absent", "",
        f"Pairs on {next(iter(logs))[0]} that need it:", "", *absent(logs), ""])


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
