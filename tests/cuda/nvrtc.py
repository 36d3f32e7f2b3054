"""Device code compiled for CUDA GPUs, and what the compiler says of it; remembered, since it takes its time."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

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


def compile_all(program: str, folder: pathlib.Path, variants: list[str], architectures=ARCHITECTURES,
                n_processes: int = 2) -> dict[tuple[str, str], tuple[int, str]]:
    """{(variant, architecture): (NVRTC's result, its log)}; a variant is "FILE.cl -DT=f32 ..."."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "nvrtc.json"
    compilers = [Compiler(program) for _ in range(n_processes)]
    known = json.loads(file.read_text()) if file.exists() else {}
    hashes = texts()
    keys = {(v, a): digest(hashes[v.split()[0]], v, a, OPTIONS, compilers[0].version)
            for v in variants for a in architectures}
    missing = [task for task, key in keys.items() if key not in known]

    def work(k: int) -> dict[str, tuple[int, str]]:
        done = {}
        for v, a in missing[k::n_processes]:
            done[keys[v, a]] = compilers[k].compile(f"- {v} {OPTIONS} --gpu-architecture={a}")
        return done

    with ThreadPoolExecutor(n_processes) as pool:
        for done in pool.map(work, range(n_processes)):
            known |= done
    for compiler in compilers:
        compiler.close()
    file.write_text(json.dumps({key: known[key] for key in keys.values()}))
    return {task: tuple(known[key]) for task, key in keys.items()}


def complaints(log: str) -> str:
    return TOLD.sub("", log).strip()


def resources(log: str) -> dict[str, dict[str, int]]:
    """{kernel: registers, shared memory and spilled bytes}."""
    found = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
        def number(pattern: str) -> int:
            match = re.search(pattern, part)
            return int(match[1]) if match else 0
        found[part.split("'")[1]] = {"registers": number(r"Used (\d+) registers"),
                                     "shared": number(r"(\d+) bytes smem"),
                                     "spilled": number(r"(\d+) bytes spill stores")}
    return found
