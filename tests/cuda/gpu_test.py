"""./dev gpu and ./dev bench cuda-host on the driver double: every step does its work, and nothing in what
they leave can be taken for a GPU's.

usage: gpu_test.py BUILD DRIVER NVRTC CUBLASLT CUDNN
"""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
build, *doubles = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
STEPS = ["bench cuda", "demo", "conform smoke", "conform", "report"]


def environment(folder, **more):
    names = [f"TENON_CUDA_{name}" for name in ("DRIVER", "NVRTC", "CUBLASLT", "CUDNN")]
    return {**os.environ, **dict(zip(names, map(str, doubles))), "TENON_TEST_CUDA": "devices=1",
            "TENON_CUDA_CACHE": str(folder), **more}


def run_gpu(folder, *options, at=build, minutes="4", **more):
    """What it printed, and the files that it left, by name."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run([sys.executable, ROOT / "tools/gpu.py", out, "--build", at, "--minutes", minutes, *options],
                          text=True, capture_output=True, env=environment(folder, **more))
    assert not done.stderr, done.stderr
    return done.returncode, {path.name: path.read_text() for path in out.iterdir()}


def everything_runs_and_is_said_to_be_the_doubles(folder):
    status, files = run_gpu(folder)
    summary = files["double-summary.txt"]
    said = summary + "\n".join(files["double-log.txt"].splitlines()[-40:])
    assert status == 0, said
    assert summary.startswith("THE DRIVER IS THE TESTS' DOUBLE: no GPU was there"), said
    assert len(files) <= 8 and all(name.startswith("double-") for name in files), sorted(files)
    lines = summary.splitlines()
    assert [line[:14].strip() for line in lines[-len(STEPS):]] == STEPS, said
    assert all(" done " in line for line in lines[-len(STEPS):]), said
    bench = files["double-bench-cuda.txt"]
    assert "THE DRIVER IS THE TESTS' DOUBLE" in bench, bench
    for row in ("launch-add", "launch-replay", "mlp-graph", "memory-add", "gemm-f32-1024", "conv-f32-mnist",
                "start, cache warm"):
        assert row in bench, bench
    for word in ("met", "missed", "to reach", "failed"):
        assert word not in bench, bench
    assert "double" in files["double-conform.md"].splitlines()[0], files["double-conform.md"]
    assert " 0 failed" in files["double-conform.md"]


def without_a_device_nothing_runs_and_the_reason_is_told(folder):
    status, files = run_gpu(folder, TENON_CUDA_DRIVER="off")
    assert status == 1
    assert sorted(files) == ["log.txt", "summary.txt"], sorted(files)
    assert "no cuda:0" in files["summary.txt"], files["summary.txt"]
    assert "switched off (TENON_CUDA_DRIVER)" in files["log.txt"], files["log.txt"]


def programs_are_made_without_a_gpu_and_used(folder):
    sys.path.insert(0, str(ROOT / "tools"))
    import gpu
    os.environ.update(environment(folder))
    made = folder / "made"
    made.mkdir()
    n = gpu.compile_programs(build, doubles[0], "9.0", made / gpu.KERNELS, "kernel/fill")
    assert n >= 4, n  # one for each size of an element, at least
    cache = gpu.unpack_programs(made, folder)
    assert len(list(cache.iterdir())) == n and cache.stat().st_mode & 0o077 == 0
    assert gpu.unpack_programs(folder, folder) is None


def what_hangs_is_stopped(folder):
    """A build whose first benchmark never ends; it has a second, and nothing is left for the rest."""
    fake = folder / "fake"
    for name in ("cli", "bench"):
        (fake / name).mkdir(parents=True)
    (fake / "cli/tenon").symlink_to(build / "cli/tenon")
    program = fake / "bench/cuda"
    program.write_text(f"#!/bin/sh\necho $$ >{folder}/pid\nexec sleep 1000\n")
    program.chmod(0o755)
    status, files = run_gpu(folder, at=fake, minutes="0.4")
    lines = files["double-summary.txt"].splitlines()
    assert status == 1
    assert "out of time" in next(line for line in lines if line.startswith("bench cuda")), lines
    assert "no time left" in next(line for line in lines if line.startswith("conform  ")), lines
    assert not pathlib.Path("/proc", (folder / "pid").read_text().strip()).exists()


def instructions_of_a_call_are_counted(folder):
    if not shutil.which("valgrind"):
        print("not tried: valgrind is not there")
        return
    done = subprocess.run([sys.executable, ROOT / "bench/cuda_host.py", "--build", build, "launch-add"], text=True,
                          capture_output=True, env=environment(folder))
    assert done.returncode == 0, done.stderr
    assert "no GPU" in done.stdout, done.stdout
    cells = [cell.strip() for cell in done.stdout.splitlines()[-1].split("|")[1:-1]]
    what, calls, core, plugin, library, everything, each, bare, below = cells
    assert what == "add of 256 elements" and calls == "1", cells
    assert int(everything) >= int(core) + int(plugin) + int(library) > 2 * int(bare) > 0 < int(below), cells
    assert each == everything, cells


def main():
    version = ctypes.c_int(), ctypes.c_int()
    if ctypes.CDLL(str(doubles[1])).nvrtcVersion(*map(ctypes.byref, version)):
        print("skipped: there is no NVRTC; it is a part of the CUDA Toolkit")
        sys.exit(77)
    for test in (everything_runs_and_is_said_to_be_the_doubles, without_a_device_nothing_runs_and_the_reason_is_told,
                 what_hangs_is_stopped, programs_are_made_without_a_gpu_and_used, instructions_of_a_call_are_counted):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o700)
            test(pathlib.Path(folder))
        print(test.__name__.replace("_", " "))


main()
