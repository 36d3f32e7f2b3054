"""A worker of tenon-conform: PyTorch's own tests of operators (opinfo.py) as cases on a plugin's device.

tenon-conform run PLUGIN.so --torch starts it, as tenon-conform-torch: `list --set SET` prints cases, `work --plugin PATH --device N` reads them
and writes verdicts to descriptor 3. What PyTorch asks of operators or dtypes that Tenon's table does not have is `unsupported`; so is what
differs from PyTorch's CPU on every device, for the reason that opinfo.txt says.
"""

import argparse
import json
import os
import pathlib
import sys
import time

import torch

from . import _C, opinfo
from . import name as device_name

KINDS = {"operator": False, "gradient": True}
LISTED = pathlib.Path(__file__).with_name("opinfo.txt")


def cases(chosen):
    """smoke: f32; standard: f32, its gradients, bf16 and i64; exhaustive: every dtype."""
    from torch.testing._internal.common_methods_invocations import op_db

    dtypes = {"smoke": (torch.float32,), "standard": (torch.float32, torch.bfloat16, torch.int64), "exhaustive": opinfo.DTYPES}[chosen]
    for op in op_db:
        for kind, backward in KINDS.items():
            if backward and (not op.supports_autograd or chosen == "smoke"):
                continue
            supported = op.supported_backward_dtypes("cpu") if backward else op.supported_dtypes("cpu")
            for dtype in dtypes:
                floating = dtype.is_floating_point and (chosen == "exhaustive" or dtype == torch.float32)
                if dtype in supported and (floating or not backward):
                    yield kind, opinfo.name_of(op), dtype, op


def line_of(kind, name, dtype):
    """As tenon-conform writes lines: what it is told by name."""
    return f"torch/{kind} dtype={str(dtype).removeprefix('torch.')} name={name}"


def print_list(chosen):
    for i, (kind, name, dtype, _) in enumerate(cases(chosen)):  # of smoke some
        if chosen != "smoke" or i % 12 == 0:
            print(line_of(kind, name, dtype))


def open_device(plugin, index):
    """Makes the plugin's device tenon:0."""
    os.environ["TENON_TORCH_DEVICES"] = f"{_C.load_plugin(plugin)}:{index}"  # read when devices are first asked for
    return f"{device_name}:0"


class Worker:
    def __init__(self, plugin, index):
        self.device = open_device(plugin, index)
        self.known = opinfo.read_expected(LISTED)
        self.all = {line_of(kind, name, dtype): (op, name, dtype, KINDS[kind]) for kind, name, dtype, op in cases("exhaustive")}

    def verdict(self, line):
        if line not in self.all:
            return "error", "PyTorch has no such test; `tenon-conform-torch list --set exhaustive` prints them"
        op, name, dtype, backward = self.all[line]
        status, text = opinfo.run_pair(op, dtype, self.device, opinfo.SAMPLES, backward)
        known = self.known.get((name, str(dtype).removeprefix("torch."), opinfo.OF[backward]))
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
    lister.add_argument("--set", default="standard", choices=("smoke", "standard", "exhaustive"))
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
