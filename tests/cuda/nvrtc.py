"""Device code compiled for CUDA GPUs, and what the compiler says of it; remembered, since it takes its time."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICE = ROOT / "plugins/shared/gpu/device"
SKIPPED = 77

# The oldest that the plugin takes, and one of each generation behind it that computes for data centres.
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")

# As the plugin compiles; ptxas besides tells registers and memory.
OPTIONS = "--std=c++17 --fmad=false --prec-div=true --prec-sqrt=true --ftz=false --ptxas-options=-v"

NAMES = [os.environ.get("TENON_CUDA_NVRTC"), "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
         "/usr/local/cuda/lib64/libnvrtc.so"]

# What ptxas says with -v, which is no warning.
TOLD = re.compile(r"(?:ptxas info |ptxas  +\.).*\n?")


class Compiler:
    """One process with the library, which takes one job after the other."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen([program, *filter(None, NAMES)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.version = self.process.stdout.readline().decode().strip()
        if self.version.startswith("skipped"):
            print(self.version)
            sys.exit(SKIPPED)

    def compile(self, job: str) -> tuple[int, str]:
        self.process.stdin.write(f"{job}\n".encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer:
            sys.exit(f"the compiler ended at: {job}")
        return int(answer[0]), self.process.stdout.read(int(answer[1])).decode()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def texts() -> dict[str, str]:
    """Of each file a hash of all that it is made of."""
    headers = "".join(p.read_text() for p in sorted([*DEVICE.glob("*.h"), ROOT / "plugins/shared/elementary.h"]))
    return {p.name: digest(headers, p.read_text()) for p in DEVICE.glob("*.cl")}


class Memory:
    """A file of what was found out, a line each, so that a run that is cut short has not run in vain."""

    def __init__(self, path: pathlib.Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.lock, self.known = path, threading.Lock(), {}
        for line in path.read_text().splitlines() if path.exists() else []:
            with contextlib.suppress(ValueError):  # a last line that is cut short
                key, *found = json.loads(line)
                self.known[key] = tuple(found)
        self.file = path.open("a")

    def add(self, key: str, found: tuple[int, str]) -> None:
        with self.lock:
            self.known[key] = found
            self.file.write(f"\n{json.dumps([key, *found])}")
            self.file.flush()

    def close(self, keys) -> None:
        """Keeps those of `keys`."""
        self.file.close()
        self.path.write_text("\n".join(json.dumps([key, *self.known[key]]) for key in keys))


def compile_all(program: str, path: pathlib.Path, variants: list[str], architectures=ARCHITECTURES,
                n_processes: int = 2) -> tuple[str, dict[tuple[str, str], tuple[int, str]]]:
    """NVRTC's version, and {(variant, architecture): (its result, its log)}; a variant is "FILE.cl -DT=f32 ...", with
    macros and more options. What is known is in the file at `path`."""
    compilers = [Compiler(program) for _ in range(n_processes)]
    version, memory, hashes = compilers[0].version, Memory(path), texts()
    keys = {(v, a): digest(hashes[v.split()[0]], v, a, OPTIONS, version) for v in variants for a in architectures}
    missing = [task for task, key in keys.items() if key not in memory.known]

    def work(k: int) -> None:
        for v, a in missing[k::n_processes]:
            memory.add(keys[v, a], compilers[k].compile(f"- {v} {OPTIONS} --gpu-architecture={a}"))

    with ThreadPoolExecutor(n_processes) as pool:
        list(pool.map(work, range(n_processes)))
    for compiler in compilers:
        compiler.close()
    memory.close(set(keys.values()))
    return version, {task: memory.known[key] for task, key in keys.items()}


def complaints(log: str) -> str:
    return TOLD.sub("", log).strip()


class Used(NamedTuple):
    """What a kernel takes: registers of a work item; and bytes."""

    registers: int
    shared: int
    spilled: int  # stores and loads
    stack: int


def used(log: str) -> dict[str, Used]:
    """By the kernels' names."""
    found = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
        def total(*patterns: str) -> int:
            return sum(int(match[1]) for match in (re.search(p, part) for p in patterns) if match)
        found[part.split("'")[1]] = Used(total(r"Used (\d+) registers"), total(r"(\d+) bytes smem"),
                                         total(r"(\d+) bytes spill stores", r"(\d+) bytes spill loads"),
                                         total(r"(\d+) bytes stack frame"))
    return found
