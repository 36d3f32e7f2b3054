#!/usr/bin/env python3
"""Instructions of the host side of a call on the CUDA plugin, counted by callgrind, without a GPU.

usage: cuda_host.py [--build FOLDER] [--keep FOLDER] [ROW...]

The driver is the tests' double (tests/cuda/double) with kernels off: launches are checked and counted, and
nothing is computed. Each row runs twice, for a few calls and for many; the difference, divided by
the calls between, is what one call takes on the thread that calls. What the double itself takes, and what
it calls, is taken off and shown apart: a real driver's part is not known here. --keep leaves
callgrind's files, for callgrind_annotate.
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FEW, MANY = 256, 1280

# row: (what, program and its options before the count, divisor of the counts: a step is many calls)
ROWS = {
    "bare": ("cuLaunchKernel, called bare", ["cuda", "--launches"], [], 1),
    "launch-add": ("add of 256 elements", ["device", "--times"], ["launch-add"], 1),
    "launch-recording": ("the same, recording a gradient", ["device", "--times"], ["launch-recording"], 1),
    "launch-backward": ("forward mul and the smallest backward()", ["device", "--times"], ["launch-backward"], 1),
    "mlp": ("training step of the MLP", ["train", "--times"], ["mlp"], 16),
    "cnn": ("training step of the CNN", ["train", "--times"], ["cnn"], 16),
}
DOUBLE = "libcuda.so.1"


class Counts:
    """Of one thread: instructions by object file, those in and below the double, and launches."""

    def __init__(self, path):
        self.own, self.below, self.launches = collections.Counter(), 0, 0
        here, function, called, callee, is_call = "", "", "", "", False
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith("ob="):
                here = called = os.path.basename(line[3:])
            elif line.startswith("fn="):
                function, called = line[3:], here
            elif line.startswith("cob="):
                called = os.path.basename(line[4:])
            elif line.startswith("cfn="):
                callee = line[4:]
            elif line.startswith("calls="):
                is_call = True
                if called == DOUBLE != here and callee == "cuLaunchKernel":
                    self.launches += int(line[6:].split()[0])
            elif re.match(r"\d+ \d+$", line):
                cost = int(line.split()[1])
                if not is_call:
                    self.own[here] += cost
                elif called == DOUBLE != here:
                    self.below += cost
                called, is_call = here, False

    def minus(self, other, n):
        self.own = {name: (cost - other.own.get(name, 0)) / n for name, cost in self.own.items()}
        self.below, self.launches = (self.below - other.below) / n, (self.launches - other.launches) / n
        return self


def environment(build, cache):
    double = build / "tests/cuda/double"
    return {**os.environ, "TENON_DEVICE": "cuda:0", "TENON_CUDA_CACHE": str(cache), "OMP_NUM_THREADS": "1",
            "TENON_CUDA_DRIVER": str(double / DOUBLE), "TENON_TEST_CUDA": "kernels=off capability=99.0",
            "TENON_CUDA_CUBLASLT": "off", "TENON_CUDA_CUDNN": "off"}


def count(command, variables, out):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--separate-threads=yes", "--compress-strings=no",
                           "--compress-pos=no", f"--callgrind-out-file={out}", *command], text=True,
                          capture_output=True, env=variables)
    main = pathlib.Path(f"{out}-01")  # the thread that calls
    if done.returncode or not main.exists():
        sys.exit(f"cuda_host.py: {' '.join(command)}: {(done.stderr or done.stdout).strip()[-600:]}")
    return Counts(main)


def measure(row, build, keep, variables):
    _, before, after, part = ROWS[row]

    def command(n):
        return [str(build / "bench" / before[0]), *before[1:], str(n), *after]

    warm = subprocess.run(command(1), text=True, capture_output=True, env=variables)  # builds programs
    if warm.returncode:
        sys.exit(f"cuda_host.py: {row}: {(warm.stderr or warm.stdout).strip()[-600:]}")
    few, many = FEW // part, MANY // part
    base = count(command(few), variables, keep / f"{row}.few")
    return count(command(many), variables, keep / f"{row}.many").minus(base, many - few)


def table(counts):
    head = ["what", "launches", "core", "plugin", "C library", "all but the driver", "for each launch", "the double"]
    lines = []
    for row, c in counts.items():
        core = sum(cost for name, cost in c.own.items() if name.startswith("libtenon.so"))
        plugin, double = c.own.get("libtenon_cuda.so", 0), c.own.get(DOUBLE, 0)
        all_of_it = sum(c.own.values()) - c.below
        program = sum(cost for name, cost in c.own.items() if name in ("cuda", "device", "train"))
        lines.append([ROWS[row][0], f"{c.launches:.0f}", f"{core:.0f}", f"{plugin:.0f}",
                      f"{all_of_it - core - plugin - program:.0f}", f"{all_of_it:.0f}",
                      f"{all_of_it / c.launches:.0f}" if c.launches else "", f"{c.below:.0f}"])
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    return "\n".join("| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths)) + " |"
                     for line in [head, ["-" * w for w in widths], *lines])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("rows", nargs="*")
    options = parser.parse_args()
    for row in options.rows:
        if row not in ROWS:
            parser.error(f"there is no row '{row}'; there are: {', '.join(ROWS)}")
    build = options.build.resolve()
    for needed, why in ((shutil.which("valgrind"), "valgrind is not there"),
                        ((build / "bench/cuda").exists(), "this build found no headers of CUDA 12 or later"),
                        ((build / "tests/cuda/double" / DOUBLE).exists(), "this build has no driver double")):
        if not needed:
            sys.exit(f"cuda_host.py: {why}")
    with tempfile.TemporaryDirectory() as folder:
        keep = options.keep or pathlib.Path(folder)
        keep.mkdir(parents=True, exist_ok=True)
        variables = environment(build, pathlib.Path(folder) / "cache")
        counts = {row: measure(row, build, keep.resolve(), variables) for row in options.rows or ROWS}
    print("Instructions of one call on the calling thread, by callgrind; the driver is the tests' double.\n")
    print(table(counts))


if __name__ == "__main__":
    main()
