"""PyTorch's own tests on a device of Tenon.

    python -m tenon_torch.suite [--device 0] [--kinds operator,gradient] [--expect FILE] [--log FILE] ...

Kinds are operator, gradient, module and optimizer. A test, which is one of them in one dtype, is

    passed    as on PyTorch's CPU
    absent    needs an operator of PyTorch's, or a dtype, that Tenon's table does not have: the text says which
    failed    anything else that differs
    none      has no sample that PyTorch's CPU runs

With --expect, a file of lines `NAME DTYPE KINDS STATUS REASON` says which tests do not pass (KINDS: operator,gradient). A test that does
otherwise than the file says is an error, also where it passes, unless fewer samples run than it was written with. Exit code 1 then;
without --expect where anything failed.
"""

import argparse
import collections
import fnmatch
import json
import sys
import time

import tenon_torch

from . import KINDS
from .comparison import SAMPLES
from .expected import read_expected


def chosen(kind, options):
    n = 0
    for test in KINDS[kind]():
        if not options.dtypes or test.dtype_name in options.dtypes.split(","):
            n += 1
            if n % options.every == 0 and fnmatch.fnmatch(test.name, options.filter):
                yield test


def surprises_us(status, wanted, samples):
    """Is it otherwise than expected? What has no sample that runs says nothing, and what passes with few samples little."""
    return status not in (wanted, "none") and not (status == "passed" and samples < SAMPLES)


def run(kind, options, expected, log):
    """What came out, counted, and how much of it was not expected."""
    counts, surprises = collections.Counter(), 0
    for test in chosen(kind, options):
        wanted, reason = expected.get((kind, test.name, test.dtype_name), ("passed", ""))
        status, why = test.run(f"{tenon_torch.name}:{options.device}", options.samples)
        counts[status] += 1
        if log:
            record = {"kind": kind, "name": test.name, "dtype": test.dtype_name, "status": status, "text": why, "reason": reason}
            print(json.dumps(record), file=log, flush=True)
        if surprises_us(status, wanted, options.samples) if options.expect else status == "failed":
            surprises += 1
            print(f"{kind} {test.name} {test.dtype_name}: {status}{f', {wanted} expected' if options.expect else ''}: {why}", flush=True)
    return counts, surprises


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=int, default=0, help="index of the device (tenon_torch.devices())")
    parser.add_argument("--kinds", default=",".join(KINDS), help="these alone")
    parser.add_argument("--filter", default="*", help="names of this pattern alone")
    parser.add_argument("--dtypes", default="", help="float32,int64: these alone")
    parser.add_argument("--every", type=int, default=1, help="every Nth test alone")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="at most so many of each test")
    parser.add_argument("--expect", help="file of what does not pass")
    parser.add_argument("--log", help="a line of JSON for each test goes there")
    options = parser.parse_args()
    if wrong := set(options.kinds.split(",")) - set(KINDS):
        parser.error(f"--kinds: there is no {', '.join(sorted(wrong))}; kinds are {', '.join(KINDS)}")

    expected, surprises = read_expected(options.expect), 0
    log = open(options.log, "w") if options.log else None
    for kind in options.kinds.split(","):
        start = time.time()
        counts, more = run(kind, options, expected, log)
        surprises += more
        there = counts["passed"] + counts["failed"]
        print(f"{tenon_torch.devices()[options.device]} {kind}: " + ", ".join(f"{counts[s]} {s}" for s in ("passed", "failed", "absent", "none")) +
              f"; {100 * counts['passed'] / max(there, 1):.1f} % of what is there; {tenon_torch.fallback_count()} fallbacks; "
              f"{time.time() - start:.0f} s", flush=True)
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
