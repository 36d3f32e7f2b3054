#!/usr/bin/env python3
"""Cases of kernels on a driver that looks closer, or that is made to look like another device.

usage: kernels_test.py CONFORM PLUGIN LAYER CASES DRIVER [--words WORDS] [--filter PATTERN]... [-j N]
                       [--variants LIST [--record]] [--markdown FILE]

DRIVER   oclgrind: every access to memory is checked, and races are looked for: a case that fails and
         a word of Oclgrind are failures.
         pocl, installed: real values, on a CPU; on whichever driver there is.
WORDS    for the layer (layer.h): lie=type:4 for a device that says it is a GPU, hide=fp64 for one
         without f64, with a semicolon between.
LIST     of variants of device code (variants.py): what is built here must be in it.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import variants

SKIPPED = 77
BAD = ("fail", "crash", "timeout", "error", "inconclusive", "flaky", "xpass")

# What every worker is: its own log for Oclgrind, and what the plugin says beside.
WORKER = """#!/bin/sh
OCLGRIND_LOG='{folder}'/oclgrind.$$ exec '{conform}' "$@" 2>>'{folder}'/said
"""


def find_oclgrind() -> pathlib.Path | None:
    """Debian ships the driver, but no .icd file that names it."""
    program = shutil.which("oclgrind")
    roots = [pathlib.Path(program).resolve().parent.parent] if program else []
    for root in [*roots, pathlib.Path("/usr"), pathlib.Path("/usr/local")]:
        for found in sorted(root.glob("lib*/**/liboclgrind-rt-icd.so")):
            return found
    return None


def environment(driver: str, words: str, layer: str, folder: pathlib.Path) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "OCLGRIND_", "OPENCL_"))}
    env |= {"OPENCL_LAYERS": layer, "TENON_TEST_CL": words, "TENON_CACHE": "off"}
    if driver == "pocl":
        return env | {"TENON_OPENCL_PLATFORM": "Portable Computing Language"}
    if driver == "installed":
        return env
    library = find_oclgrind()
    if not library:
        skip("Oclgrind is not installed (liboclgrind-rt-icd.so)")
    vendors = folder / "vendors"
    vendors.mkdir()
    (vendors / "oclgrind.icd").write_text(f"{library}\n")
    return env | {
        "OCL_ICD_VENDORS": str(vendors),
        "TENON_OPENCL_PLATFORM": "Oclgrind",
        "OCLGRIND_CHECK_API": "1",
        "OCLGRIND_DATA_RACES": "1",
        # What clang makes of an inlined function that returns a struct, it cannot run.
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",
    }


def skip(why: str) -> None:
    print("skipped:", why)
    sys.exit(SKIPPED)


def run(options, env: dict[str, str], folder: pathlib.Path, log: str, *more: str):
    worker = folder / "worker"
    worker.write_text(WORKER.format(folder=folder, conform=os.path.abspath(options.conform)))
    worker.chmod(0o755)
    done = subprocess.run(
        [options.conform, "run", options.plugin, "--worker", worker, "--reruns", "0", "--quiet",
         "--log", folder / log, *more], env=env, capture_output=True, text=True)
    records = [json.loads(line) for line in (folder / log).read_text().splitlines()]
    return done, [r for r in records if r["record"] == "case"]


def look_for_device(options, env: dict[str, str], folder: pathlib.Path) -> None:
    """Skips where there is no device, or the layer is not asked."""
    case = "kernel/fill T=f32 out=[3] value=1"
    opened = {}
    for words in ("", "hide=devices"):
        _, cases = run(options, env | {"TENON_TEST_CL": words}, folder, f"look{len(opened)}.jsonl", case)
        opened[words] = cases
    if "cannot be opened" in opened[""][0].get("message", ""):
        skip(opened[""][0]["message"])
    if options.words and "cannot be opened" not in opened["hide=devices"][0].get("message", ""):
        skip("the OpenCL loader takes no layers (OPENCL_LAYERS)")


def judge(options, done, cases, folder: pathlib.Path) -> list[str]:
    wrong = []
    counts = collections.Counter(c["status"] for c in cases)
    if done.returncode != 0 or any(counts[s] for s in BAD):
        wrong.append(done.stdout + done.stderr)
    # Nothing may leave unseen.
    if counts["unsupported"] and "hide=fp64" not in options.words:
        wrong += [f"unsupported: {c['case']}" for c in cases if c["status"] == "unsupported"]
    if not counts["pass"]:
        wrong.append("no case passed")
    reports = "".join(p.read_text(errors="replace") for p in sorted(folder.glob("oclgrind.*")))
    if reports:
        wrong.append("Oclgrind reports:\n" + reports[:8000])
    kind = f"{options.driver} with {options.words}" if options.words else options.driver
    said = ", ".join(f"{n} {status}" for status, n in counts.most_common())
    print(f"{kind}: {said}; {reports.count('Kernel:')} reports" if options.driver == "oclgrind" else
          f"{kind}: {said}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("conform", "plugin", "layer", "cases"):
        parser.add_argument(name)
    parser.add_argument("driver", choices=["oclgrind", "pocl", "installed"])
    parser.add_argument("--words", default="")
    parser.add_argument("--filter", action="append", default=[])
    parser.add_argument("-j", dest="jobs", default="1")
    parser.add_argument("--variants", type=pathlib.Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--markdown")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        env = environment(options.driver, options.words, os.path.abspath(options.layer), folder)
        look_for_device(options, env, folder)
        (folder / "said").write_text("")
        more = [word for pattern in options.filter for word in ("--filter", pattern)]
        more += ["--markdown", options.markdown] if options.markdown else []
        done, cases = run(options, env, folder, "run.jsonl", "--cases", options.cases, "-j", options.jobs, *more)
        wrong = judge(options, done, cases, folder)
        if options.variants:
            built = variants.of_log((folder / "said").read_text(errors="replace"), options.words)
            print(f"{len(built)} variants of device code built")
            if options.record:
                variants.add(options.variants, built)
            else:
                wrong += variants.unknown(options.variants, built)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
