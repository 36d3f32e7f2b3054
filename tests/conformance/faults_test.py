#!/usr/bin/env python3
"""The faulty devices: the catalogue fits the sources, a stale fault is refused, and a few are killed.

usage: faults_test.py BUILD
"""

import pathlib
import subprocess
import sys
import tempfile

FAULTS = pathlib.Path(__file__).parent / "faults"
sys.path.insert(0, str(FAULTS))
import build  # noqa: E402
import catalogue  # noqa: E402

STALE = """
[[fault]]
name = "stale"
base = "sim"
why = "its text is not in the source"
expect = ["kernel/add"]
edits = [{ file = "plugin.c", find = "no such text", replace = "another" }]
"""
TWICE = STALE.replace("no such text", "return")


def check(holds, what):
    if not holds:
        sys.exit(f"faults_test: {what}")


def run(program, *arguments):
    done = subprocess.run([sys.executable, FAULTS / program, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_catalogue_fits(folder):
    faults = catalogue.load()
    check(len(faults) >= 80, f"{len(faults)} faults, should be 80 at least")
    for fault in faults:
        fault.apply(lambda file, base=fault.base: build.path_of(base, file).read_text())


def test_stale_is_refused(folder):
    for text, said in ((STALE, "found 0 times"), (TWICE, "times in plugin.c of sim, should be once")):
        with tempfile.TemporaryDirectory() as place:
            (pathlib.Path(place) / "contract.toml").write_text(text)
            code, output = run("build.py", "--build", folder, "--catalogue", place)
        check(code == 1 and said in output and "stale" in output, f"a stale fault gave {code} and:\n{output}")


def test_matrix(folder):
    names = ["product-loses-negative-zero", "u8-compared-as-signed", "negative-index-wraps"]
    only = ["--only", "kernel/mul T=f32 data=exact", "--only", "kernel/lt T=u8", "--only", "refuse/gather"]
    code, output = run("matrix.py", "--build", folder, *only, *names)
    last = output.splitlines()[-1]
    check(code == 0 and last == "kill matrix: 3 of 3 defects killed, 0 false alarms", f"{code}:\n{output}")
    code, output = run("matrix.py", "--build", folder, "--only", "kernel/eq T=f32 data=exact", names[0])
    last = output.splitlines()[-1]
    check(code == 1 and last == "kill matrix: 0 of 1 defects killed, 0 false alarms", f"{code}:\n{output}")


MASKED = ("kernel/flash_attention A=f32 T=f32 attn_mask=[3,2,5,7] is_causal=false key=[3,1,7,4] query=[3,2,5,4] scale=0.25 "
          "value=[3,1,7,4] memory=fenced")
SUMMED = "kernel/cumsum T=f32 self=[6,9] dim=1 data=special memory=fenced-before"


def test_lifetimes_are_named(folder):
    """What was used after its time is told as that: by its requirement, and what the odd byte is."""
    suite = pathlib.Path(folder) / "plugin-sdk/conformance/runner/tenon-conform"
    for name, line, said in (
            ("write-not-consumed-before-return", "contract/transfer-sizes host=pageable kind=write least=1024 most=1048576", "TNP-43: memory after a write of"),
            ("read-returns-early", "contract/transfer-sweep kind=read", "TNP-44: read of"),
            ("dealloc-asks-a-stream-that-is-gone", "process/life-leaves-nothing of=error", "memory was touched of a block of host->alloc that is no more"),
            ("attention-reads-mask-beyond-its-end", MASKED, "bytes behind the end of a block of host->alloc"),
            ("running-sum-looks-before-its-row", SUMMED, "memory was touched 4 bytes before the start of a block of host->alloc"),
    ):
        code, output = run("build.py", "--build", folder, name)
        check(code == 0, f"{name} is not built:\n{output}")
        done = subprocess.run([suite, "run", output.split()[-1], "--reruns", "0", line], capture_output=True, text=True)
        check(done.returncode == 1 and said in done.stderr, f"{name} gave {done.returncode} and:\n{done.stderr}")
        if "TNP-43" in said:
            check("0xee is what this suite writes over the source" in done.stderr, done.stderr)
        if line == SUMMED:  # a C file has no fences
            shrunk = subprocess.run([suite, "shrink", output.split()[-1], line.rsplit(" ", 1)[0]], capture_output=True, text=True).stdout
            check("memory=fenced-before" in shrunk and "without memory=one, fences and within" in shrunk, shrunk)


for test in (test_catalogue_fits, test_stale_is_refused, test_lifetimes_are_named, test_matrix):
    test(sys.argv[1])
