"""A worker of tenon-conform: PyTorch's own tests as cases on a plugin's device.

tenon-conform run PLUGIN.so --torch starts it, as tenon-conform-torch: `list --set SET` prints cases, `work --plugin PATH --device N` reads them
and writes verdicts to descriptor 3. What PyTorch asks of operators or dtypes that Tenon's table does not have is `unsupported`; so is what
differs from PyTorch's CPU on every device, for the reason that expected.txt says.
"""

import argparse
import json
import os
import pathlib
import sys
import time

import torch

from .. import _C
from .. import name as device_name
from . import KINDS
from .expected import read_expected

LISTED = pathlib.Path(__file__).parents[1] / "expected.txt"
# The dtypes of each set, and whether gradients, modules and optimizers are in it (those in f32 alone, but for the exhaustive one)
SETS = {"smoke": ("float32",), "standard": ("float32", "bfloat16", "int64"), "exhaustive": None}


def cases(chosen):
    dtypes = SETS[chosen]
    for kind, tests in KINDS.items():
        if chosen == "smoke" and kind == "gradient":
            continue
        for test in tests():
            if dtypes is None or test.dtype_name in (dtypes if kind == "operator" else dtypes[:1]):
                yield line_of(kind, test), kind, test


def line_of(kind, test):
    """As tenon-conform writes lines: what it is told by name."""
    return f"torch/{kind} dtype={test.dtype_name} name={test.name}"


def print_list(chosen):
    for i, (line, _, _) in enumerate(cases(chosen)):  # of smoke some
        if chosen != "smoke" or i % 12 == 0:
            print(line)


def open_device(plugin, index):
    """Makes the plugin's device tenon:0."""
    os.environ["TENON_TORCH_DEVICES"] = f"{_C.load_plugin(plugin)}:{index}"  # read when devices are first asked for
    return f"{device_name}:0"


class Worker:
    def __init__(self, plugin, index):
        self.device = open_device(plugin, index)
        self.known = read_expected(LISTED)
        self.all = {line: (kind, test) for line, kind, test in cases("exhaustive")}

    def verdict(self, line):
        if line not in self.all:
            return "error", "PyTorch has no such test; `tenon-conform-torch list --set exhaustive` prints them"
        kind, test = self.all[line]
        status, text = test.run(self.device)
        known = self.known.get((kind, test.name, test.dtype_name))
        if status == "failed" and known and known[0] == "failed":
            return "unsupported", f"differs from PyTorch's CPU on every device: {known[1]}"
        return {"passed": ("pass", ""), "absent": ("unsupported", f"Tenon has no {text}"), "failed": ("fail", text),
                "none": ("unsupported", "PyTorch's CPU ran none of its samples")}[status]


def work(plugin, index):
    lines, verdicts = os.fdopen(os.dup(0)), os.fdopen(3, "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    worker = Worker(plugin, index)
    for line in lines:
        start = time.perf_counter()
        status, message = worker.verdict(line.strip())
        verdict = {"case": line.strip(), "status": status, "ms": round(1000 * (time.perf_counter() - start), 3)}
        print(json.dumps({**verdict, "message": message[:900]} if message else verdict), file=verdicts, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    lister = verbs.add_parser("list")
    lister.add_argument("--set", default="standard", choices=tuple(SETS))
    worker = verbs.add_parser("work")
    worker.add_argument("--plugin", required=True)
    worker.add_argument("--device", type=int, default=0)
    options = parser.parse_args()
    if options.verb == "list":
        print_list(options.set)
    else:
        work(options.plugin, options.device)


if __name__ == "__main__":
    sys.exit(main())
