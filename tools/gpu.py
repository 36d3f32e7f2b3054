#!/usr/bin/env python3
"""All that a machine with a GPU is needed for, in ten minutes: ./dev gpu.

usage: gpu.py FOLDER [--minutes M] [--build FOLDER] [--small]
                       build, conformance, demo and benchmarks on cuda:0, into FOLDER
       gpu.py --pack [--programs CAPABILITY[:DRIVER]]
                       make build-gpu/, for a machine that cannot build

Needs the CUDA toolkit's headers and a driver, and installs nothing. Each step has its own time, and one
that fails or hangs does not keep the next from running; conformance has what the others leave.
FOLDER has eight files at most: summary.txt (each step's status and seconds, and what the machine
is), log.txt (what the steps said; the contract of the OpenCL plugin on the same GPU, where there is a driver
for that, among them), bench-cuda.txt, bench-compare.txt, demo.svg, and conform.jsonl, .md and .html. The exit
status is 0 where every step did its work, else 1.

It builds into build-gpu/, or, where that was packed, uses it as it is: programs and the libraries that
they need, built elsewhere for the same kind of processor. git ignores it, and it is small enough to be
copied along. --build uses another build as it is.

--programs compiles there, too, what the standard set asks for, for a GPU of that capability ("9.0") with a driver of
the headers' version of CUDA, or that one ("9.0:13000"): half an hour of two cores, or more, which a machine with a GPU
would need for it otherwise. Some 25 MiB; what does not fit the GPU is not used.

--small does a little in each step, to try this program. Where the driver is the tests' double, that is all
there is: the summary begins by saying so, and the files are called double-...: nothing in them is a GPU's.
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
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-gpu"
CONFORM = "plugin-sdk/conformance/runner/tenon-conform"
DEVICE = "cuda:0"
GRACE = 10  # seconds that a step has to end after it was asked to
REPORTING = 20  # seconds kept for the report of conformance
LARGEST = 15 << 20  # bytes of a file in FOLDER

DOUBLE = "driver double"  # in the name of a device that is the tests' own

PROGRAMS = ["cli/tenon", CONFORM, "plugin-sdk/conformance/worker/core/tenon-conform-core", "samples/mnist/mnist",
            "bench/cuda", "bench/device", "bench/train", "bench/kernels", "bench/overhead", "core/libtenon.so.1",
            *(f"plugins/{name}/libtenon_{name}.so" for name in ("cpu", "sim", "cuda"))]
OPENCL = "plugins/opencl/libtenon_opencl.so"  # where it could be built
KERNELS = "kernels.tar.xz"  # compiled ones
DRIVER_DOUBLE = "tests/cuda/double/libcuda.so.1"
OF_EVERY_SYSTEM = re.compile(r"(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)[-.]")


def output_of(command):
    try:
        done = subprocess.run(command, text=True, capture_output=True, timeout=60, cwd=ROOT)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# ---- packing ----------------------------------------------------------------------------------------


def pack(capability):
    """Without OpenBLAS, which is larger than all the rest; the CPU plugin computes in plain loops."""
    made = ROOT / "build-packing"
    subprocess.run([ROOT / "dev", "build", "--into", made.name, "-Dopenblas=disabled", "-Dtests=disabled"], check=True)
    shutil.rmtree(BUILD, ignore_errors=True)
    (BUILD / "lib").mkdir(parents=True)
    for name in [*PROGRAMS, *([OPENCL] if (made / OPENCL).exists() else [])]:
        (BUILD / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["strip", "-g", "-o", BUILD / name, (made / name).resolve()], check=True)
        for line in output_of(["ldd", str(made / name)]).splitlines():
            library = re.match(r"\s*(\S+) => (/\S+)", line)
            if library and not OF_EVERY_SYSTEM.match(library[1]) and str(ROOT) not in library[2]:
                shutil.copy(library[2], BUILD / "lib" / library[1])
    shutil.copy(made / "core/.tenon-build-tree", BUILD / "core")
    (BUILD / "packed").write_text(output_of(["git", "describe", "--always", "--dirty"]) + "\n")
    if capability:
        pack_programs(capability)
    size = sum(p.stat().st_size for p in BUILD.rglob("*") if p.is_file())
    print(f"packed into {BUILD.name}/, {size / 2**20:.0f} MiB")


def compile_programs(build, driver, capability, archive, cases):
    """Those that `cases` ask for, into `archive`; how many. The tests' double of the driver computes nothing
    then: a case that asks for a program fails, once it was made."""
    with tempfile.TemporaryDirectory() as folder:
        cache = pathlib.Path(folder) / "programs"
        cache.mkdir(mode=0o700)
        variables = {**environment(build), "TENON_CUDA_CACHE": str(cache), "TENON_CUDA_DRIVER": str(driver),
                     "TENON_TEST_CUDA": "kernels=off capability=" + capability.replace(":", " version="),
                     "TENON_CUDA_CUBLASLT": "off", "TENON_CUDA_CUDNN": "off"}
        subprocess.run([build / CONFORM, "run", build / "plugins/cuda/libtenon_cuda.so", "--quiet", "--reruns", "0",
                        "--give-up-after", "0", "-j", str(os.cpu_count() or 1), "--filter", cases],
                       env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with tarfile.open(archive, "w:xz", preset=3) as file:
            file.add(cache, "programs")
        return len(list(cache.iterdir()))


def pack_programs(capability):
    tests = ROOT / "build-programs"
    subprocess.run([ROOT / "dev", "build", "--into", tests.name, "-Dopenblas=disabled", "-Dtests=enabled"], check=True)
    print("compiling the programs of the standard set", flush=True)
    n = compile_programs(BUILD, tests / DRIVER_DOUBLE, capability, BUILD / KERNELS,
                         "/^(kernel|same|operator|gradient|train|refuse)/")
    if n < 1000:
        sys.exit(f"gpu.py: only {n} programs were made: is NVRTC here?")
    print(f"{n} programs")


def unpack_programs(build, folder):
    """Where the cache is then; None where none were packed."""
    if not (build / KERNELS).exists():
        return None
    with tarfile.open(build / KERNELS) as archive:
        archive.extractall(folder)
    (folder / "programs").chmod(0o700)
    return folder / "programs"


# ---- what the machine has ---------------------------------------------------------------------------


def wheel_libraries():
    """Folders of the package index's cuBLASLt, cuDNN and NVRTC, for what the loader does not find."""
    code = ("import glob, nvidia\n"
            "for p in nvidia.__path__: print('\\n'.join(sorted(glob.glob(p + '/*/lib'))))")
    return [line for line in output_of(["python3", "-c", code]).splitlines() if line]


def environment(build):
    """Of all steps. What the system has goes before what lies in wheels."""
    places = [os.environ.get("LD_LIBRARY_PATH", ""), str(build / "lib"), "/usr/local/cuda/lib64", *wheel_libraries()]
    return {**os.environ, "TENON_OFFLINE": "1", "TENON_DEVICE": DEVICE, "PYTHONUNBUFFERED": "1",
            "LD_LIBRARY_PATH": ":".join(place for place in places if place)}


def opencl_driver():
    """NVIDIA's OpenCL, or None; in containers nothing but the file may be there, and no .icd names it."""
    path = re.search(r"libnvidia-opencl\.so\.1 .*=> (\S+)", output_of(["ldconfig", "-p"]))
    places = [path[1]] if path else []
    return next((p for p in [*places, "/usr/lib/libnvidia-opencl.so.1", "/usr/local/nvidia/lib64/libnvidia-opencl.so.1"]
                 if pathlib.Path(p).exists()), None)


def torch_version():
    return output_of(["python3", "-W", "ignore", "-c", "import torch; print(torch.__version__)"])


def machine(build):
    query = "name,driver_version,memory.total,compute_cap,clocks.max.sm,clocks.max.mem,power.limit"
    header = next((p for p in map(pathlib.Path, ["/usr/local/cuda/include/cuda.h", "/usr/include/cuda.h"])
                   if p.exists()), None)
    version = header and re.search(r"#define CUDA_VERSION (\d+)", header.read_text(errors="replace"))
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    source = (build / "packed").read_text().strip() + ", packed" if (build / "packed").exists() \
        else output_of(["git", "describe", "--always", "--dirty"]) or "unknown"
    return [
        "GPU:     " + (output_of(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]) or
                       "nvidia-smi did not answer"),
        "toolkit: " + (f"headers of CUDA {int(version[1]) // 1000}.{int(version[1]) % 1000 // 10}" if version
                       else "no headers in /usr/local/cuda/include or /usr/include"),
        f"host:    {cpu[1] if cpu else '?'}, {os.cpu_count()} cores, Linux {os.uname().release}",
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
    def __init__(self, folder, minutes, build, small):
        self.folder, self.end = folder, time.monotonic() + 60 * minutes
        self.is_ready = build is not None or (BUILD / "packed").exists()
        self.build, self.small, self.is_double = build or BUILD, small, False
        self.variables, self.machine, self.lines, self.failed = environment(self.build), machine(self.build), [], False

    def left(self):
        return self.end - time.monotonic()

    def file(self, name):
        return self.folder / ("double-" + name if self.is_double else name)

    def write_summary(self):
        head = ["THE DRIVER IS THE TESTS' DOUBLE: no GPU was there, and nothing in this folder is a GPU's.", ""] \
            if self.is_double else []
        self.file("summary.txt").write_text("\n".join([*head, *self.machine, "", *self.lines]) + "\n")

    def say(self, line):
        self.lines.append(line)
        print(line, flush=True)
        self.write_summary()

    def step(self, name, seconds, command, out=None, leaves=()):
        """Runs it in `seconds`, or in what is left."""
        started = time.monotonic()
        seconds = min(seconds, self.left() - 2 * GRACE)
        status = run_step(command, seconds, out or self.file("log.txt"), self.variables) if seconds > 0 \
            else "no time left"
        self.failed |= status != 0
        made = [p.name for p in (out, *leaves) if p and p.exists()]
        said = "done" if status == 0 else f"status {status}" if isinstance(status, int) else status
        self.say(f"{name:<14} {said:<22} {time.monotonic() - started:6.1f} s  {', '.join(made)}".rstrip())

    def fail(self, name, why):
        self.failed = True
        self.say(f"{name:<14} {why}")

    def find_device(self):
        """What Tenon calls the device; without one there is nothing to do, and the reason is told."""
        def ask(*what):
            done = subprocess.run([self.build / "cli/tenon", *what], text=True, capture_output=True,
                                  env={**self.variables, "TENON_DEVICE": "cpu:0", "TENON_LOG": "info"}, timeout=60)
            return done.stdout + done.stderr

        try:
            listed = ask("devices")
            device = re.search(rf"^\W*{DEVICE}\s+(.*?)\s\s", listed, re.M)
            said = listed if device else listed + ask("plugins")
        except (OSError, subprocess.TimeoutExpired) as error:
            device, said = None, str(error)
        self.is_double = bool(device) and DOUBLE in device[1]
        self.small |= self.is_double
        with open(self.file("log.txt"), "a", encoding="utf-8") as log:
            log.write(said)
        if not device:
            self.fail("devices", f"no {DEVICE}: log.txt says what was found, and why it is not used")
        return device and device[1]

    def all(self):
        if not self.is_ready:
            self.step("build", 180, [ROOT / "dev", "build", "--into", BUILD.name, "-Dtests=disabled"])
        if not (self.build / "cli/tenon").exists():
            self.fail("build", "there is none; `./dev gpu --pack` makes one elsewhere")
            return
        device = self.find_device()
        if device:
            self.machine.insert(0, "device:  " + device)
            self.steps()
            self.shrink()

    def steps(self):
        at, small, file = self.build, self.small, self.file
        self.step("bench cuda", 90, [at / "bench/cuda", *(["--tiny", "--rounds", "1"] if small else ["--rounds", "5"])],
                  file("bench-cuda.txt"))
        demo = file("demo.svg")
        self.step("demo", 60, [at / "samples/mnist/mnist", "--data", "samples/mnist/data", "--out", demo,
                               *(["--quick", "--model", "mlp"] if small else [])], leaves=[demo])
        self.conform("conform smoke", 60, ["--set", "smoke", *(["--filter", "kernel/add"] if small else [])])
        torch = "none on a double" if self.is_double else torch_version()
        self.machine.append("PyTorch: " + (torch or "python3 has none"))
        if torch and not self.is_double:
            self.step("bench compare", 150, [sys.executable, "bench/compare.py", "--device", DEVICE, "--build", at,
                                             *(["--tiny"] if small else []), "--rounds", "3", "--seconds", "0.1"],
                      file("bench-compare.txt"))
        driver = None if small else opencl_driver()
        if driver and (at / OPENCL).exists():
            self.conform_opencl(driver, 60)
        logged = file("conform.jsonl")
        self.conform("conform", max(0, self.left() - REPORTING - 2 * GRACE),
                     ["--log", logged, *(["--filter", "kernel/add"] if small else [])], [logged])
        pages = [file("conform.md"), file("conform.html")]
        self.step("report", REPORTING + GRACE, [at / CONFORM, "report", logged, "--markdown", pages[0], "--html",
                                                pages[1]], leaves=pages)

    def conform(self, name, seconds, options, leaves=(), plugin="cuda"):
        """With a worker for each core: they compile most of the time."""
        self.step(name, seconds, [self.build / CONFORM, "run", self.build / f"plugins/{plugin}/libtenon_{plugin}.so",
                                  "--quiet", "-j", os.cpu_count() or 1, *options], leaves=leaves)

    def conform_opencl(self, driver, seconds):
        with tempfile.TemporaryDirectory() as vendors:
            (pathlib.Path(vendors) / "nvidia.icd").write_text(driver + "\n")
            before, self.variables = self.variables, {**self.variables, "OCL_ICD_VENDORS": vendors}
            self.conform("conform opencl", seconds, ["--filter", "contract/*"], plugin="opencl")
            self.variables = before

    def shrink(self):
        for path in self.folder.iterdir():
            if path.stat().st_size > LARGEST:
                with open(path, "rb") as whole, gzip.open(f"{path}.gz", "wb") as smaller:
                    shutil.copyfileobj(whole, smaller)
                path.unlink()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=9.5)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--pack", action="store_true")
    parser.add_argument("--programs", metavar="CAPABILITY[:DRIVER]")
    options = parser.parse_args()
    if options.pack == bool(options.folder):
        parser.error("a folder, or --pack")
    if options.pack:
        return pack(options.programs)
    options.folder.mkdir(parents=True, exist_ok=True)
    if any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty")
    run = Run(options.folder.resolve(), options.minutes, options.build and options.build.resolve(), options.small)
    with tempfile.TemporaryDirectory() as folder:
        programs = unpack_programs(run.build, pathlib.Path(folder))
        if programs:
            run.variables["TENON_CUDA_CACHE"] = str(programs)
        run.all()
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
