#!/usr/bin/env python3
"""Closes a test run: what the runners said of each build, and the sum of it.

usage: test_summary.py BUILD...      (plain, asan, tsan, hard)

Reads Meson's logs. A cmocka program counts with each of its test functions, any other test as one.
"""

import json
import pathlib
import re
import sys

CMOCKA_PASSED = re.compile(r"^\[  PASSED  \] (\d+) test", re.M)
CMOCKA_FAILED = re.compile(r"^\[  FAILED  \] (\d+) test", re.M)
CMOCKA_SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) test", re.M)
GOOD = {"OK", "EXPECTEDFAIL"}


class Tally:
    def __init__(self):
        self.cmocka = [0, 0, 0]  # passed, failed, skipped: functions of cmocka programs
        self.plain = [0, 0, 0]   # the same of other tests
        self.meson = {}

    def add(self, record):
        result = record["result"]
        self.meson[result] = self.meson.get(result, 0) + 1
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

    def total(self, kind):
        return self.cmocka[kind] + self.plain[kind]


def read(build):
    folder = pathlib.Path("build" if build == "plain" else f"build-{build}") / "meson-logs"
    tally = Tally()
    try:
        lines = (folder / f"testlog-{build}.json").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return tally
    for line in lines:
        tally.add(json.loads(line))
    return tally


def main():
    tallies = {build: read(build) for build in sys.argv[1:]}
    for build, tally in tallies.items():
        passed, failed, skipped = tally.cmocka
        print(f"{build:6} cmocka  [  PASSED  ] {passed} test(s)."
              + (f"  [  FAILED  ] {failed} test(s)." if failed else "")
              + (f"  [  SKIPPED ] {skipped} test(s)." if skipped else ""))
        print(f"{build:6} meson   " + ", ".join(f"{k}: {v}" for k, v in sorted(tally.meson.items())))
    passed, failed, skipped = (sum(t.total(kind) for t in tallies.values()) for kind in range(3))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


sys.exit(main())
