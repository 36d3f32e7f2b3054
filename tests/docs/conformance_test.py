#!/usr/bin/env python3
"""Runs what docs/conformance.md shows: its sample failure, and its list of what is known.

usage: conformance_test.py PAGE TENON_CONFORM FAULTY.so GOOD.so

Both are of the plugin with known mistakes of tests/conformance. The comments of sources that show such
a list or such a case show the page's.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PAGE = pathlib.Path(sys.argv[1])
CONFORM, FAULTY, GOOD = sys.argv[2:5]
TEXT = PAGE.read_text()
SUITE = PAGE.parents[1] / "plugin-sdk" / "conformance"
BLOCKS = re.findall(r"^```\n(.*?)^```$", TEXT, re.S | re.M)


def block(start: str) -> str:
    (found,) = [b for b in BLOCKS if b.startswith(start)]
    return found


def run(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([CONFORM, "run", FAULTY, *words], env=dict(os.environ, FAULTY_GOOD=GOOD),
                          capture_output=True, text=True, timeout=100)


class Page(unittest.TestCase):
    def test_the_case_prints_the_sample_failure(self) -> None:
        result = run("--quiet", block("kernel/").strip())
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.replace(FAULTY, "./libtenon_npu.so"), block("fail: "))

    def test_each_entry_of_the_list_is_of_use(self) -> None:
        entries = block("skip ")
        filters = [word for entry in entries.splitlines()
                   for word in ("--filter", re.split(r"#| \[", entry.split(None, 1)[1])[0].strip())]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(entries)
            file.flush()
            result = run("--quiet", "--reruns", "0", "--lists", file.name, *filters)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r" 0 failed, [1-9]\d* xfail, [1-9]\d* waived, [1-9]\d* skipped")

    def test_comments_show_the_same(self) -> None:
        for file, start in (("runner/run/expectations.h", "skip "), ("case.h", "kernel/")):
            comment = re.sub(r"^ \*     ", "", (SUITE / file).read_text(), flags=re.M)
            self.assertIn(block(start), comment)

    def test_cases_that_comments_name_exist(self) -> None:
        lines = re.findall(r"^ \*     (contract/.*)$", (SUITE / "case.h").read_text(), re.M)
        self.assertTrue(lines)
        for line in lines:
            listed = subprocess.run([CONFORM, "list", "--filter", line], capture_output=True, text=True, timeout=60)
            self.assertIn(line, listed.stdout.splitlines())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
