#!/usr/bin/env python3
"""The variants of device code that the plugin builds: which file, with which macros.

variants.list has what the cases of kernels.cases ask for, a line each: `cpu` or `gpu` (what the
device said it is), the file, the options. It is recorded:

    variants.py record BUILD      runs them again (a few minutes; needs Oclgrind and PoCL)

and read by compile_test.py, which cannot ask a plugin.
"""

import pathlib
import re
import subprocess
import sys

BUILT = re.compile(r"opencl:\d+: (\S+\.cl) (.*-DHAS_F64=[01]).*: \d+ ms, (?:built|from the cache)$", re.MULTILINE)
HERE = pathlib.Path(__file__).resolve().parent

# Each kind of device: the driver, the layer's words, and which cases. The width of vectors is a
# device's own, so products are asked of two.
RUNS = [
    ("oclgrind", "", []),
    ("oclgrind", "lie=type:4", []),
    ("oclgrind", "lie=type:4;hide=fp64", []),
    ("pocl", "", ["kernel/bmm T=f32"]),
]


def of_log(text: str, words: str) -> set[str]:
    kind = "gpu" if "lie=type:4" in words else "cpu"
    return {f"{kind} {file} {options}" for file, options in BUILT.findall(text)}


def read(path: pathlib.Path) -> set[str]:
    return set(path.read_text().splitlines()) if path.exists() else set()


def add(path: pathlib.Path, built: set[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in sorted(read(path) | built)))


def macros(line: str) -> dict[str, str]:
    return dict(re.findall(r"-D(\w+)=(\S*)", line))


def form(line: str) -> tuple:
    """What a compiler sees another text for: numbers of work items and lanes make none."""
    kind, file, _ = line.split(maxsplit=2)
    return kind, file, tuple(sorted(macros(line)))


def unknown(path: pathlib.Path, built: set[str]) -> list[str]:
    known = {form(line) for line in read(path)}
    new = sorted(line for line in built if form(line) not in known)
    return [f"not in {path.name}, which {pathlib.Path(__file__).name} records: {new[0]}"] if new else []


def record(build: pathlib.Path) -> None:
    path = HERE / "variants.list"
    path.unlink(missing_ok=True)
    for driver, words, filters in RUNS:
        subprocess.run(
            [sys.executable, HERE / "kernels_test.py", build / "plugin-sdk/conformance/runner/tenon-conform",
             build / "plugins/opencl/libtenon_opencl.so", build / "tests/opencl/libtenon_test_cl.so",
             HERE / "kernels.cases", driver, "--words", words, "--variants", path, "--record",
             *(word for pattern in filters for word in ("--filter", pattern))], check=True)
    print(f"{path}: {len(read(path))} variants")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "record":
        sys.exit(__doc__)
    record(pathlib.Path(sys.argv[2]).resolve())
