"""Products are right whichever processor OpenBLAS takes this one for: core_types_test.py CONFORM PLUGIN

OpenBLAS has other kernels for each type of core, of which users have all. Those that this machine can run are tried,
with the cases of products."""

import os
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
# As OPENBLAS_CORETYPE has them: the oldest that uses each extension, and what /proc/cpuinfo says of who has it.
AVX512 = "avx512f avx512cd avx512bw avx512dq avx512vl"
CORES = {"Prescott": "pni", "Nehalem": "sse4_2 popcnt", "Sandybridge": "avx", "Haswell": "avx2 fma", "Zen": "avx2 fma",
         "SkylakeX": AVX512, "Cooperlake": f"{AVX512} avx512_bf16"}
PATTERNS = [f"{subject} T={dtype}" for subject in ("kernel/bmm", "kernel/addmm") for dtype in ("f32", "f64", "bf16")]
PATTERNS += ["same/bmm T=f32", "same/addmm T=f32"]


def flags_of_processor() -> set[str]:
    found = re.search(r"^flags\s*:(.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return set(found[1].split()) if found else set()


def library_of(plugin: str) -> str | None:
    found = re.search(r"libopenblas\S* => (\S+)", subprocess.run(["ldd", plugin], capture_output=True, text=True).stdout)
    return found[1] if found else None


def is_taken(library: str, core: str) -> bool:
    """Some builds have kernels of one type only. In a process of its own, since the library looks once."""
    ask = f"import ctypes; l = ctypes.CDLL({library!r}); f = l.openblas_get_corename; f.restype = ctypes.c_char_p; " \
          "print(f().decode())"
    done = subprocess.run([sys.executable, "-c", ask], env=os.environ | {"OPENBLAS_CORETYPE": core},
                          capture_output=True, text=True)
    return done.stdout.strip().lower() == core.lower()


def skip(why: str) -> None:
    print("skipped:", why)
    sys.exit(SKIPPED)


def main(conform: str, plugin: str) -> None:
    library, flags = library_of(plugin), flags_of_processor()
    if not library:
        skip("the cpu plugin was built without OpenBLAS")
    cores = [core for core, needs in CORES.items() if set(needs.split()) <= flags and is_taken(library, core)]
    if not cores:
        skip("OpenBLAS can be told no type of core that this processor runs (OPENBLAS_CORETYPE)")
    wrong = 0
    for core in cores:
        done = subprocess.run([conform, "run", plugin, "--quiet", "-j2", *(w for p in PATTERNS for w in ("--filter", p))],
                              env=os.environ | {"OPENBLAS_CORETYPE": core}, capture_output=True, text=True)
        said = (done.stdout + done.stderr).strip()
        print(f"{core}: {said if done.returncode else said.splitlines()[-1]}", flush=True)
        wrong += done.returncode != 0
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
