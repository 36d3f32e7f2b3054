#!/usr/bin/env python3
"""Instructions of the host side of a call on the CUDA plugin, counted by callgrind, without a GPU.

usage: cuda_host.py [--build FOLDER] [--keep FOLDER] [ROW...]

Below Tenon are the tests' doubles (tests/cuda/double) of the driver, of cuBLASLt and of cuDNN, with kernels
off: calls are checked and counted, and nothing is computed. Each row runs twice, for a few calls and for many;
the difference, divided by the calls between, is what one call takes on the thread that calls. What the doubles
take, and what they call, is taken off and shown apart: of a real driver's part nothing is known here. Beside
stands what the same calls of the driver take in a program that makes them bare. --keep leaves
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

# row: (what, program, divisor of the counts: a step is many calls, whether there is a bare side)
ROWS = {
    "launch-add": ("add of 256 elements", "device", 1, True),
    "launch-chain": ("chain of 8 adds", "device", 1, True),
    "launch-replay": ("the chain from a graph", "device", 1, True),
    "launch-copy": ("copy of 256 elements", "device", 1, True),
    "launch-product": ("product of 16 x 16, cuBLASLt", "device", 1, True),
    "launch-recording": ("add, recording a gradient", "device", 1, True),
    "launch-backward": ("mul and the smallest backward()", "device", 1, True),
    "mlp": ("training step of the MLP", "train", 16, False),
    "cnn": ("training step of the CNN", "train", 16, False),
    "mlp-graph": ("step of the MLP from a graph", "device", 16, False),
}
PROGRAMS = ("device", "train")
DRIVER = "libcuda.so.1"
DOUBLES = {DRIVER, "libcublasLt.so", "libcudnn.so"}
LAUNCHES = {"cuLaunchKernel", "cuGraphLaunch", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cublasLtMatmul",
            "cudnnBackendExecute"}


class Counts:
    """Of one thread: instructions by object file, those in and below the doubles, and calls that queue work."""

    def __init__(self, path):
        self.own, self.below, self.launches = collections.Counter(), 0, 0
        here, called, callee, is_call = "", "", "", False
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith("ob="):
                here = called = os.path.basename(line[3:])
            elif line.startswith("fn="):
                called = here
            elif line.startswith("cob="):
                called = os.path.basename(line[4:])
            elif line.startswith("cfn="):
                callee = line[4:]
            elif line.startswith("calls="):
                is_call = True
                if self.enters(here, called) and callee in LAUNCHES:
                    self.launches += int(line[6:].split()[0])
            elif re.match(r"\d+ \d+$", line):
                cost = int(line.split()[1])
                if not is_call:
                    self.own[here] += cost
                elif self.enters(here, called):
                    self.below += cost
                called, is_call = here, False

    @staticmethod
    def enters(here, called):
        return called in DOUBLES and here not in DOUBLES

    def minus(self, other, n):
        self.own = {name: (cost - other.own.get(name, 0)) / n for name, cost in self.own.items()}
        self.below, self.launches = (self.below - other.below) / n, (self.launches - other.launches) / n
        return self

    def of(self, *starts):
        return sum(cost for name, cost in self.own.items() if name.startswith(starts))

    def above(self):
        """All but the doubles, and what they call."""
        return sum(self.own.values()) - self.below


def environment(build, cache):
    double = build / "tests/cuda/double"
    return {**os.environ, "TENON_DEVICE": "cuda:0", "TENON_CUDA_CACHE": str(cache),
            "TENON_TEST_CUDA": "kernels=off capability=99.0", "TENON_CUDA_DRIVER": str(double / DRIVER),
            "TENON_CUDA_CUBLASLT": str(double / "libcublasLt.so"), "TENON_CUDA_CUDNN": str(double / "libcudnn.so")}


def count(command, variables, out):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--separate-threads=yes", "--compress-strings=no",
                           "--compress-pos=no", f"--callgrind-out-file={out}", *command], text=True,
                          capture_output=True, env=variables)
    main = pathlib.Path(f"{out}-01")  # the thread that calls
    if done.returncode or not main.exists():
        sys.exit(f"cuda_host.py: {' '.join(command)}: {(done.stderr or done.stdout).strip()[-600:]}")
    return Counts(main)


def difference(command, few, many, keep, variables):
    """What one of the calls takes that command(n) makes n of."""
    warm = subprocess.run(command(1), text=True, capture_output=True, env=variables)  # builds programs
    if warm.returncode:
        sys.exit(f"cuda_host.py: {' '.join(command(1))}: {(warm.stderr or warm.stdout).strip()[-600:]}")
    base = count(command(few), variables, f"{keep}.few")
    return count(command(many), variables, f"{keep}.many").minus(base, many - few)


def measure(row, build, keep, variables):
    """The row in Tenon, and bare, or None."""
    _, program, part, has_bare = ROWS[row]
    ours = difference(lambda n: [str(build / "bench" / program), "--times", str(n), row], FEW // part, MANY // part,
                      keep / row, variables)
    bare = [str(build / "bench/cuda"), "--image", str(keep / "image"), "--bare", row]
    return ours, difference(lambda n: [*bare, str(n)], FEW, MANY, keep / f"{row}.bare",
                            variables) if has_bare else None


def table(counts):
    head = ["what", "calls that queue", "core", "plugin", "C library", "Tenon, all", "for each that queues", "bare",
            "the doubles"]
    lines = []
    for row, (ours, bare) in counts.items():
        parts = [ours.of("libtenon.so"), ours.of("libtenon_cuda.so"),
                 ours.above() - ours.of("libtenon", *PROGRAMS)]
        lines.append([ROWS[row][0], f"{ours.launches:.3g}", *(f"{part:.0f}" for part in parts), f"{ours.above():.0f}",
                      f"{ours.above() / ours.launches:.0f}" if ours.launches else "",
                      f"{bare.above():.0f}" if bare else "", f"{ours.below:.0f}"])
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
                        (all((build / "tests/cuda/double" / name).exists() for name in DOUBLES),
                         "this build has no doubles of driver and libraries")):
        if not needed:
            sys.exit(f"cuda_host.py: {why}")
    with tempfile.TemporaryDirectory() as folder:
        keep = options.keep or pathlib.Path(folder)
        keep.mkdir(parents=True, exist_ok=True)
        variables = environment(build, pathlib.Path(folder) / "cache")
        counts = {row: measure(row, build, keep.resolve(), variables) for row in options.rows or ROWS}
    print("Instructions of one call on the thread that calls, by callgrind, on the tests' doubles; no GPU.\n")
    print(table(counts))


if __name__ == "__main__":
    main()
