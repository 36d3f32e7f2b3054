#!/usr/bin/env python3
"""All that a machine with a GPU is needed for, in ten minutes: ./dev gpu.

usage: gpu.py FOLDER [--minutes M]    build, conformance, demo and benchmarks on cuda:0, into FOLDER
       gpu.py --pack                  make build-gpu/, for a machine that cannot build

Needs the CUDA toolkit's headers and a driver, and installs nothing. Each step has its own time, and one
that fails or hangs does not keep the next from running; conformance has what the others leave.
FOLDER has eight files at most: summary.txt (each step's status and seconds, and what the machine
is), log.txt (what the steps said), bench-cuda.txt, bench-compare.txt, demo.svg, and conform.jsonl, .md
and .html. The exit status is 0 where every step did its work, else 1.

It builds into build-gpu/, or, where that was packed, uses it as it is: programs and the libraries that
they need, built elsewhere for the same kind of processor. git ignores it, and it is small enough to be
copied along.
"""

import argparse
import gzip
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-gpu"
CONFORM = "plugin-sdk/conformance/runner/tenon-conform"
DEVICE = "cuda:0"
GRACE = 10  # seconds that a step has to end after it was asked to
REPORTING = 20  # seconds kept for the report of conformance
LARGEST = 15 << 20  # bytes of a file in FOLDER

PROGRAMS = ["cli/tenon", CONFORM, "plugin-sdk/conformance/worker/core/tenon-conform-core", "samples/mnist/mnist",
            "bench/cuda", "bench/device", "bench/train", "bench/kernels", "core/libtenon.so.0",
            *(f"plugins/{name}/libtenon_{name}.so" for name in ("cpu", "sim", "cuda"))]
OF_EVERY_SYSTEM = re.compile(r"(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)[-.]")


def output_of(command):
    try:
        done = subprocess.run(command, text=True, capture_output=True, timeout=60, cwd=ROOT)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# ---- packing ----------------------------------------------------------------------------------------


def pack():
    """Without OpenBLAS, which is larger than all the rest; the CPU plugin computes in plain loops."""
    made = ROOT / "build-packing"
    subprocess.run([ROOT / "dev", "build", "--into", made.name, "-Dopenblas=disabled", "-Dtests=disabled"], check=True)
    shutil.rmtree(BUILD, ignore_errors=True)
    (BUILD / "lib").mkdir(parents=True)
    for name in PROGRAMS:
        (BUILD / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["strip", "-g", "-o", BUILD / name, (made / name).resolve()], check=True)
        for line in output_of(["ldd", str(made / name)]).splitlines():
            library = re.match(r"\s*(\S+) => (/\S+)", line)
            if library and not OF_EVERY_SYSTEM.match(library[1]) and str(ROOT) not in library[2]:
                shutil.copy(library[2], BUILD / "lib" / library[1])
    shutil.copy(made / "core/.tenon-build-tree", BUILD / "core")
    (BUILD / "packed").write_text(output_of(["git", "describe", "--always", "--dirty"]) + "\n")
    size = sum(p.stat().st_size for p in BUILD.rglob("*") if p.is_file())
    print(f"packed into {BUILD.name}/, {size / 2**20:.0f} MiB")


# ---- what the machine has ---------------------------------------------------------------------------


def wheel_libraries():
    """Folders of the package index's cuBLASLt, cuDNN and NVRTC, for what the loader does not find."""
    code = ("import glob, nvidia\n"
            "for p in nvidia.__path__: print('\\n'.join(sorted(glob.glob(p + '/*/lib'))))")
    return [line for line in output_of(["python3", "-c", code]).splitlines() if line]


def environment():
    """Of all steps. What the system has goes before what lies in wheels."""
    places = [os.environ.get("LD_LIBRARY_PATH", ""), str(BUILD / "lib"), "/usr/local/cuda/lib64", *wheel_libraries()]
    return {**os.environ, "TENON_OFFLINE": "1", "TENON_DEVICE": DEVICE, "PYTHONUNBUFFERED": "1",
            "LD_LIBRARY_PATH": ":".join(place for place in places if place)}


def machine():
    query = "name,driver_version,memory.total,compute_cap,clocks.max.sm,clocks.max.mem,power.limit"
    header = next((p for p in map(pathlib.Path, ["/usr/local/cuda/include/cuda.h", "/usr/include/cuda.h"])
                   if p.exists()), None)
    version = header and re.search(r"#define CUDA_VERSION (\d+)", header.read_text(errors="replace"))
    torch = output_of(["python3", "-W", "ignore", "-c", "import torch; print(torch.__version__)"])
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    source = (BUILD / "packed").read_text().strip() + ", packed" if (BUILD / "packed").exists() \
        else output_of(["git", "describe", "--always", "--dirty"]) or "unknown"
    return [
        "GPU:     " + (output_of(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]) or
                       "nvidia-smi did not answer"),
        "toolkit: " + (f"headers of CUDA {int(version[1]) // 1000}.{int(version[1]) % 1000 // 10}" if version
                       else "no headers in /usr/local/cuda/include or /usr/include"),
        f"host:    {cpu[1] if cpu else '?'}, {os.cpu_count()} cores, Linux {os.uname().release}",
        "PyTorch: " + (torch or "python3 has none"),
        "Tenon:   " + source,
        *([f"driver:  {os.environ['TENON_CUDA_DRIVER']} (TENON_CUDA_DRIVER)"] if "TENON_CUDA_DRIVER" in os.environ
          else []),
    ]


# ---- steps ------------------------------------------------------------------------------------------


def run_step(command, seconds, out, variables):
    """The exit status, or a word for how else it ended; its output is appended to the file `out`."""
    with open(out, "ab") as file:
        file.write(f"\n$ {' '.join(map(str, command))}\n".encode())
        file.flush()
        try:
            process = subprocess.Popen(list(map(str, command)), cwd=ROOT, stdout=file, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, env=variables, start_new_session=True)
        except OSError as error:
            file.write(f"{error}\n".encode())
            return "not there"
        status = None
        for sent, wait in ((None, seconds), (signal.SIGINT, GRACE), (signal.SIGKILL, GRACE)):
            if sent:
                os.killpg(process.pid, sent)
            try:
                status = process.wait(wait)
                break
            except subprocess.TimeoutExpired:
                continue
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what it left running
        except ProcessLookupError:
            pass
        return f"out of time ({seconds:.0f} s)" if sent else status


class Run:
    def __init__(self, folder, minutes):
        self.folder, self.end = folder, time.monotonic() + 60 * minutes
        self.variables, self.machine, self.lines, self.failed = environment(), machine(), [], False
        self.log = folder / "log.txt"

    def left(self):
        return self.end - time.monotonic()

    def write_summary(self):
        (self.folder / "summary.txt").write_text("\n".join([*self.machine, "", *self.lines]) + "\n")

    def step(self, name, seconds, command, out=None, leaves=()):
        """Runs it in `seconds`, or in what is left."""
        started = time.monotonic()
        seconds = min(seconds, self.left() - 2 * GRACE)
        status = run_step(command, seconds, out or self.log, self.variables) if seconds > 0 else "no time left"
        self.failed |= status != 0
        made = [p.name for p in (out, *leaves) if p and p.exists()]
        said = "done" if status == 0 else f"status {status}" if isinstance(status, int) else status
        self.lines.append(f"{name:<14} {said:<22} {time.monotonic() - started:6.1f} s  {', '.join(made)}".rstrip())
        print(self.lines[-1], flush=True)
        self.write_summary()

    def all(self):
        at, folder = BUILD, self.folder
        conform = {kind: folder / f"conform.{kind}" for kind in ("jsonl", "md", "html")}
        if (BUILD / "packed").exists():
            self.lines.append(f"build          packed in {BUILD.name}/")
        else:
            self.step("build", 180, [ROOT / "dev", "build", "--into", BUILD.name, "-Dtests=disabled"])
        self.step("devices", 30, [at / "cli/tenon", "devices"])
        self.step("bench cuda", 90, [at / "bench/cuda", "--rounds", "5"], folder / "bench-cuda.txt")
        self.step("demo", 60, [at / "samples/mnist/mnist", "--data", "samples/mnist/data", "--out",
                               folder / "demo.svg"], leaves=[folder / "demo.svg"])
        self.step("bench compare", 150, [sys.executable, "bench/compare.py", "--device", DEVICE, "--build", at,
                                         "--rounds", "3", "--seconds", "0.1"], folder / "bench-compare.txt")
        workers = max(1, min(8, (os.cpu_count() or 1) // 2))
        self.step("conform", max(0, self.left() - REPORTING - 2 * GRACE),
                  [at / CONFORM, "run", at / "plugins/cuda/libtenon_cuda.so", "--quiet", "-j", workers, "--log",
                   conform["jsonl"]], leaves=[conform["jsonl"]])
        self.step("report", REPORTING + GRACE, [at / CONFORM, "report", conform["jsonl"], "--markdown", conform["md"],
                                                "--html", conform["html"]], leaves=[conform["md"], conform["html"]])
        for path in folder.iterdir():
            if path.stat().st_size > LARGEST:
                with open(path, "rb") as whole, gzip.open(f"{path}.gz", "wb") as smaller:
                    shutil.copyfileobj(whole, smaller)
                path.unlink()
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=9.5)
    parser.add_argument("--pack", action="store_true")
    options = parser.parse_args()
    if options.pack == bool(options.folder):
        parser.error("a folder, or --pack")
    if options.pack:
        return pack()
    options.folder.mkdir(parents=True, exist_ok=True)
    if any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty")
    return Run(options.folder.resolve(), options.minutes).all()


if __name__ == "__main__":
    sys.exit(main())
