#!/usr/bin/env python3
"""Closes a test run: what the runners said of each build, what did not run and why, and the sum.

usage: test_summary.py [--some] BUILD...      (plain, asan, tsan; --some: of all tests only
                                              those that were asked for)

Reads Meson's logs, and its lists of the tests that there are. Failed tests are told again with the end
of what they printed: often only the end of a run's output is kept. A cmocka program counts with each of
its test functions, any other test as one. A test that did not run though nothing says that it need
not is a failure; `may_skip` among its suites says that some machines cannot run it.
"""

import json
import math
import pathlib
import re
import sys

CMOCKA_PASSED = re.compile(r"^\[  PASSED  \] (\d+) test", re.M)
CMOCKA_FAILED = re.compile(r"^\[  FAILED  \] (\d+) test", re.M)
CMOCKA_SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) test", re.M)
CMOCKA_SKIPPED_NAME = re.compile(r"^\[  SKIPPED \] (\w*[a-z]\w*)$", re.M)
REASON = re.compile(r"^skipped: *(.*)", re.M)
GOOD = {"OK", "EXPECTEDFAIL"}
BUILDS = ["plain", "asan", "tsan"]

# What the setups in meson.build leave out.
ONCE = {"slow", "source", "install", "conform"}
TOLD_LINES = 20
LEFT_OUT = {"plain": {"not_plain", "lint"}, "asan": ONCE | {"not_asan", "lint"}, "tsan": ONCE | {"not_tsan", "lint"}}


def name_in_log(test):
    """As Meson's logs call a test: "project:suite+suite / name"; of none of a suite, not even the project's, the name."""
    if not test["suite"]:
        return test["name"]
    project = test["suite"][0].split(":")[0]
    suites = "+".join(s.split(":")[1] for s in test["suite"] if ":" in s)
    return f"{project}:{suites} / {test['name']}" if suites else f"{project} / {test['name']}"


def suites_of(test):
    return {s.split(":")[-1] for s in test["suite"] if ":" in s}


class Build:
    def __init__(self, name):
        self.name = name
        self.cmocka = [0, 0, 0]  # passed, failed, skipped: functions of cmocka programs
        self.plain = [0, 0, 0]   # the same of other tests
        self.meson = {}
        self.failed = []         # their records
        self.did_not_run = {}    # reason: names
        self.missing = {}        # the same of what should have run
        folder = pathlib.Path("build" if name == "plain" else f"build-{name}")
        self.read(folder / f"meson-logs/testlog-{name}.json", folder / "meson-info/intro-tests.json")

    def read(self, log, tests):
        try:
            self.tests = json.loads(tests.read_text())
            self.log = [json.loads(line) for line in log.read_text(errors="replace").splitlines()]
        except OSError as error:
            self.tests, self.log = [], []
            self.missing[f"{error.filename} is not there"] = ["everything"]

    def count(self, record):
        result = record["result"]
        self.meson[result] = self.meson.get(result, 0) + 1
        if result not in GOOD and result != "SKIP":
            self.failed.append(record)
        text = record.get("stdout", "") + record.get("stderr", "")
        functions = [sum(map(int, p.findall(text)))
                     for p in (CMOCKA_PASSED, CMOCKA_FAILED, CMOCKA_SKIPPED)]
        if any(functions):
            functions[0] -= functions[2]  # cmocka counts a skipped test as passed
            if result not in GOOD and not functions[1]:
                functions[1] = 1  # crashed or leaked after its last test function
            self.cmocka = [a + b for a, b in zip(self.cmocka, functions)]
        else:
            kind = 0 if result in GOOD else 2 if result == "SKIP" else 1
            self.plain[kind] += 1

    def look_for_skipped(self, record, may_skip):
        text = record.get("stdout", "") + record.get("stderr", "")
        name = record["name"].split(" / ", 1)[-1]
        if record["result"] == "SKIP":
            reason = REASON.search(text)
            kept = self.did_not_run if may_skip else self.missing
            kept.setdefault(reason[1] if reason else "skipped, without a reason", []).append(name)
        functions = set(CMOCKA_SKIPPED_NAME.findall(text))
        if functions:
            self.did_not_run.setdefault(f"functions of '{name}' that this machine or build cannot run",
                                        []).extend(sorted(functions))

    def add_all(self, only_some):
        logged = {record["name"]: record for record in self.log}
        for record in self.log:
            self.count(record)
        left_out = LEFT_OUT.get(self.name, set())
        for test in self.tests:
            record = logged.get(name_in_log(test)) or logged.get(test["name"])
            suites = suites_of(test)
            if record:
                self.look_for_skipped(record, "may_skip" in suites)
            elif suites & left_out:
                which = ("./dev lint runs it" if "lint" in suites
                         else "the plain build runs it" if suites & ONCE else f"not_{self.name}")
                self.did_not_run.setdefault(which, []).append(test["name"])
            elif only_some:
                self.did_not_run.setdefault("not asked for", []).append(test["name"])
            else:
                self.missing.setdefault("nothing says why", []).append(test["name"])

    def total(self, kind):
        return self.cmocka[kind] + self.plain[kind]


def print_build(build):
    passed, failed, skipped = build.cmocka
    print(f"{build.name:6} cmocka  [  PASSED  ] {passed} test(s)."
          + (f"  [  FAILED  ] {failed} test(s)." if failed else "")
          + (f"  [  SKIPPED ] {skipped} test(s)." if skipped else ""))
    print(f"{build.name:6} meson   " + ", ".join(f"{k}: {v}" for k, v in sorted(build.meson.items())))


def print_failed(build):
    """The failed tests, each with the end of what it printed."""
    for record in build.failed:
        print(f"  {build.name:6} {record['name']} ({record['result']}, {record['duration']:.1f} s):")
        text = (record.get("stdout", "") + record.get("stderr", "")).rstrip().splitlines()
        for line in text[-TOLD_LINES:]:
            print(f"         | {line}")


def print_reasons(build, reasons, most=math.inf):
    for reason, names in reasons.items():
        listed = ", ".join(names) if len(names) <= most else f"{len(names)} tests"
        print(f"  {build.name:6} {listed}: {reason}")


def main():
    names = sys.argv[1:]
    only_some = "--some" in names
    builds = [Build(name) for name in names if name != "--some"]
    for build in builds:
        build.add_all(only_some)
        print_build(build)

    absent = [name for name in BUILDS if name not in names]
    if absent or any(build.did_not_run for build in builds):
        print("did not run:")
    for build in builds:
        print_reasons(build, build.did_not_run, most=12)
    if absent:
        print(f"  {', '.join(absent)}, fuzzing: not asked for")

    if any(build.failed for build in builds):
        print("FAILED:")
    for build in builds:
        print_failed(build)

    missing = any(build.missing for build in builds)
    if missing:
        print("DID NOT RUN, AND SHOULD HAVE:")
        for build in builds:
            print_reasons(build, build.missing)
    passed, failed, skipped = (sum(b.total(kind) for b in builds) for kind in range(3))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or missing or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
