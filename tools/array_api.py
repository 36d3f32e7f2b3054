#!/usr/bin/env python3
"""Runs the array API standard's public tests on tenon.array_api, and writes how they came out.

usage: array_api.py [--build FOLDER] [--suite FOLDER] [--examples N] [--only PATTERN] [--report] [DEVICE...]

DEVICE is cpu, sim, opencl or cuda; cpu and sim when none is named. The suite is cloned at a pinned version into
build-array-api/, beside a virtual environment with what it needs; --suite takes a folder that has it, with its submodule.
Every test draws N examples, always the same (50). --only gives pytest's -k. tests/python/array-api.toml says what is not run
or fails, and why: any other failure makes the exit status 1. Results are printed; --report writes docs/reports/array-api.md,
too.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPECTED = ROOT / "tests/python/array-api.toml"
FOLDER = ROOT / "build-array-api"
PAGE = ROOT / "docs/reports/array-api.md"

SUITE = "https://github.com/data-apis/array-api-tests"
VERSION = "2026.02.26"
COMMIT = "41379d15d26d67a1e66c840e775d41a8a7fb1516"
PACKAGES = ["pytest==9.2.0", "pytest-json-report==1.5.0", "hypothesis==6.170.17", "ndindex==1.10.1"]

# with the standard's promotion of tensors without dimensions in Python's operators, which is not Tenon's own
MODULE = "exec('import tenon; tenon.array_promotion().__enter__(); xp = tenon.array_api')"
MISSING_DTYPES = "uint16,uint32,uint64,complex64,complex128"
OUTCOMES = ("passed", "xfailed", "failed")  # of tests that count
KINDS = {"dtype": "needs a dtype that is not there: {}", "absent": "is not there: {}", "xfail": "{}"}


# ---- within pytest, as a plugin ------------------------------------------------------------------


def expectations(device):
    """[(pattern, kind, reason)] of that device."""
    table = tomllib.loads(EXPECTED.read_text())["expected"]
    return [(re.compile(pattern), entry["kind"], KINDS[entry["kind"]].format(entry["reason"]))
            for entry in table if device in entry.get("devices", [device]) for pattern in entry["ids"]]


class Recorder:
    """Marks what is expected, and keeps what became of each test."""

    def __init__(self, device, out):
        self._expected = expectations(device)
        self._out = out
        self._of = {}  # by id: [outcome, reason, what was raised]

    def pytest_collection_modifyitems(self, items):
        import pytest

        for item in items:
            for pattern, kind, reason in self._expected:
                if pattern.search(item.nodeid):
                    mark = pytest.mark.xfail if kind == "xfail" else pytest.mark.skip
                    item.add_marker(mark(reason=reason))
                    break

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.outcome == "passed":
            return
        outcome, reason = report.outcome, ""
        if hasattr(report, "wasxfail"):
            outcome, reason = "xfailed" if outcome == "skipped" else "xpassed", report.wasxfail
        elif outcome == "skipped":
            reason = report.longrepr[2].removeprefix("Skipped: ")
        raised = str(report.longrepr).strip().splitlines()[-1] if outcome == "failed" else ""
        self._of[report.nodeid] = [outcome, reason, raised]

    def pytest_sessionfinish(self):
        pathlib.Path(self._out).write_text(json.dumps(self._of, indent=1))


def pytest_configure(config):
    config.pluginmanager.register(Recorder(os.environ["TENON_ARRAY_API_DEVICE"], os.environ["TENON_ARRAY_API_OUT"]))


# ---- what is needed ------------------------------------------------------------------------------


def run(*command, **how):
    subprocess.run([str(word) for word in command], check=True, **how)


def clone():
    """The suite at the pinned commit."""
    suite = FOLDER / "suite"
    if not (suite / "array-api/spec").is_dir():
        run("git", "-c", "advice.detachedHead=false", "clone", "--quiet", "--depth", "1", "--branch", VERSION,
            "--recurse-submodules", "--shallow-submodules", SUITE, suite)
    found = subprocess.run(["git", "-C", suite, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    if found != COMMIT:
        sys.exit(f"array_api.py: {suite} is at {found}, and {VERSION} was {COMMIT}: remove it, to have it cloned again")
    return suite


def environment():
    """The Python that has the suite's packages: this one, or that of a virtual environment."""
    if subprocess.run([sys.executable, "-c", "import pytest, pytest_jsonreport, hypothesis, ndindex"],
                      stderr=subprocess.DEVNULL).returncode == 0:
        return sys.executable
    python = FOLDER / "venv/bin/python"
    if not python.exists():
        run(sys.executable, "-m", "venv", FOLDER / "venv")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES)
    return python


def test(device, suite, python, build, examples, only):
    """What became of each test on that device."""
    out = FOLDER / f"{device}.json"
    out.unlink(missing_ok=True)
    plugins = ":".join(str(build / "plugins" / name) for name in dict.fromkeys(["cpu", "sim", device]))
    variables = os.environ | {
        "PYTHONPATH": f"{build / 'python'}:{ROOT / 'tools'}", "PYTHONDONTWRITEBYTECODE": "1", "TENON_PLUGIN_PATH": plugins,
        "TENON_DEVICE": f"{device}:0", "TENON_ARRAY_API_DEVICE": device, "TENON_ARRAY_API_OUT": str(out),
        "ARRAY_API_TESTS_MODULE": MODULE, "ARRAY_API_TESTS_SKIP_DTYPES": MISSING_DTYPES,
        "HYPOTHESIS_STORAGE_DIRECTORY": str(FOLDER / "hypothesis")}
    command = [python, "-m", "pytest", "-q", "-p", "array_api", "-p", "no:cacheprovider", "--tb=short", "--disable-deadline",
               "--derandomize", "--max-examples", str(examples), "array_api_tests", *(["-k", only] if only else [])]
    with open(FOLDER / f"{device}.log", "w") as log:
        subprocess.run([str(word) for word in command], cwd=suite, env=variables, stdout=log, stderr=subprocess.STDOUT)
    if not out.exists():
        sys.exit(f"array_api.py: pytest came to nothing; {FOLDER / device}.log says why")
    return json.loads(out.read_text())


# ---- what is told --------------------------------------------------------------------------------


def count(results):
    counts = collections.Counter(outcome for outcome, _, _ in results.values())
    counts["passed"] += counts.pop("xpassed", 0)
    return counts


def share(counts):
    return 100 * counts["passed"] / max(1, sum(counts[o] for o in OUTCOMES))


def reasons(results, outcome):
    """{reason: [ids]} of those with that outcome."""
    found = collections.defaultdict(list)
    for name, (was, reason, _) in results.items():
        if was == outcome:
            found[reason].append(name.removeprefix("array_api_tests/"))
    return found


def page(by_device, examples):
    """docs/reports/array-api.md."""
    lines = ["# The array API standard's tests", "", "<!-- Made by ./dev array-api. -->", "",
             f"`tenon.array_api`, within `tenon.array_promotion()`, under [array-api-tests]({SUITE}) {VERSION},",
             f"which tests version 2025.12 of the standard; {examples} examples a test. Left out of the counts are tests that",
             f"need a dtype that Tenon has not ({MISSING_DTYPES.replace(',', ', ')}), and those of optional extensions",
             "that are not there. Outside of `tenon.array_promotion()` tests of Python's operators fail, too, between tensors of two",
             "dtypes of which one has no dimensions.", "",
             "| device | passed | known to fail | failed | share passed | also of what is optional and not there | left out |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for device, results in by_device.items():
        counts = count(results)
        absent = sum(reason.startswith(KINDS["absent"].format("")) for _, reason, _ in results.values())
        lines.append(f"| {device} | {counts['passed']} | {counts['xfailed']} | {counts['failed']} | {share(counts):.1f} % | "
                     f"{share(counts | {'failed': counts['failed'] + absent}):.1f} % | {counts['skipped']} |")
    for title, outcome in (("Known to fail", "xfailed"), ("Left out", "skipped"), ("Failed", "failed")):
        found = {device: reasons(results, outcome) for device, results in by_device.items()}
        every = sorted({reason for of in found.values() for reason in of})
        if every:
            lines += ["", f"## {title}", ""]
        for reason in every:
            where = ", ".join(f"{device}: {len(of[reason])}" for device, of in found.items() if reason in of)
            lines.append(f"* {reason or 'not known'} ({where})")
            if outcome != "skipped":
                ids = dict.fromkeys(name for of in found.values() for name in of.get(reason, []))
                lines += [f"  * `{name}`" for name in ids]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("devices", nargs="*", metavar="DEVICE", default=["cpu", "sim"])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--suite", type=pathlib.Path)
    parser.add_argument("--examples", type=int, default=50)
    parser.add_argument("--only")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    suite, python = (given.suite or clone()).resolve(), environment()
    by_device = {}
    for device in given.devices:
        results = by_device[device] = test(device, suite, python, given.build.resolve(), given.examples, given.only)
        counts = count(results)
        for name, (outcome, reason, raised) in results.items():
            if outcome == "failed":
                print(f"{device}: failed: {name}\n    {raised}")
            elif outcome == "xpassed":
                print(f"{device}: passed, and was expected to fail: {name}")
        print(f"{device}: {counts['passed']} passed, {counts['xfailed']} known to fail, {counts['failed']} failed "
              f"({share(counts):.1f} % passed), {counts['skipped']} left out", flush=True)
    if given.report:
        PAGE.write_text(page(by_device, given.examples))
    sys.exit(any(count(results)["failed"] for results in by_device.values()))


if __name__ == "__main__":
    main()
