#!/usr/bin/env python3
"""The summary of `./dev test` names what did not run, and fails over what should have.

usage: summary_test.py SOURCE-ROOT
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = pathlib.Path(sys.argv[1]).resolve() / "tools/test_summary.py"

PASSED = "[  PASSED  ] 3 test(s).\n"


def told(suites, name):
    return {"name": name, "suite": [f"tenon:{s}" for s in suites] or ["tenon"]}


def record(suites, name, result="OK", stdout=""):
    prefix = f"tenon:{'+'.join(suites)}" if suites else "tenon"
    return {"name": f"{prefix} / {name}", "result": result, "stdout": stdout,
            "duration": 1.5}


class Summary(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)

    def put(self, build, tests, records):
        folder = self.root / ("build" if build == "plain" else f"build-{build}")
        for path, text in {f"meson-logs/testlog-{build}.json": "\n".join(map(json.dumps, records)),
                           "meson-info/intro-tests.json": json.dumps(tests)}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)

    def run_summary(self, *words):
        result = subprocess.run([sys.executable, SUMMARY, *words], cwd=self.root,
                                capture_output=True, text=True)
        self.assertEqual(result.stderr, "")
        return result.returncode, result.stdout

    def test_all_that_ran(self):
        self.put("plain", [told([], "core a"), told(["cpu"], "b")],
                 [record([], "core a", stdout=PASSED), record(["cpu"], "b")])
        code, text = self.run_summary("plain")
        self.assertEqual(code, 0, text)
        self.assertIn("4 passed, 0 failed, 0 skipped", text)
        self.assertNotIn("SHOULD HAVE", text)

    def test_one_without_any_suite(self):
        """As Meson has it where `suite` is an empty list."""
        self.put("plain", [{"name": "core a", "suite": []}], [{**record([], "core a", stdout=PASSED), "name": "core a"}])
        code, text = self.run_summary("plain")
        self.assertEqual(code, 0, text)
        self.assertIn("3 passed, 0 failed, 0 skipped", text)

    def test_one_that_is_defined_and_did_not_run(self):
        self.put("plain", [told([], "a"), told(["cpu"], "b")], [record([], "a")])
        code, text = self.run_summary("plain")
        self.assertEqual(code, 1)
        self.assertIn("DID NOT RUN, AND SHOULD HAVE:\n  plain  b: nothing says why", text)
        code, text = self.run_summary("--some", "plain")
        self.assertEqual(code, 0, text)
        self.assertIn("  plain  b: not asked for", text)

    def test_two_of_one_name_are_two(self):
        self.put("plain", [told(["docs"], "a"), told(["source"], "a")], [record(["docs"], "a")])
        self.assertEqual(self.run_summary("plain")[0], 1)

    def test_one_that_skips_needs_leave(self):
        why = "skipped: no OpenCL platform\n"
        self.put("plain", [told([], "a"), told(["opencl"], "b"), told(["cpu", "may_skip"], "c")],
                 [record([], "a"), record(["opencl"], "b", "SKIP", why),
                  record(["cpu", "may_skip"], "c", "SKIP", "skipped: this processor is old\n")])
        code, text = self.run_summary("plain")
        self.assertEqual(code, 1)
        self.assertIn("did not run:\n  plain  c: this processor is old", text)
        self.assertIn("SHOULD HAVE:\n  plain  b: no OpenCL platform", text)

    def test_what_a_build_leaves_out(self):
        tests = [told([], "a"), told(["slow"], "b"), told(["cpu", "not_tsan"], "c"),
                 told(["conform", "not_tsan"], "d")]
        self.put("tsan", tests, [record([], "a")])
        self.put("asan", tests, [record([], "a"), record(["cpu", "not_tsan"], "c")])
        code, text = self.run_summary("asan", "tsan")
        self.assertEqual(code, 0, text)
        for line in ("  asan   b, d: the plain build runs it", "  tsan   b, d: the plain build runs it",
                     "  tsan   c: not_tsan", "  plain, fuzzing: not asked for"):
            self.assertIn(line, text)
        self.put("asan", tests, [record([], "a")]) # nothing excuses c there
        self.assertEqual(self.run_summary("asan", "tsan")[0], 1)

    def test_functions_that_skip_are_named(self):
        self.put("plain", [told([], "a")], [record([], "a", stdout=PASSED + (
            "[  SKIPPED ] raised_privileges\n[  SKIPPED ] 1 test(s), listed below:\n"))])
        code, text = self.run_summary("plain")
        self.assertEqual(code, 0, text)
        self.assertIn("raised_privileges: functions of 'a'", text)
        self.assertIn("2 passed, 0 failed, 1 skipped", text)

    def test_a_build_without_a_log(self):
        self.put("plain", [told([], "a")], [record([], "a")])
        code, text = self.run_summary("plain", "asan")
        self.assertEqual(code, 1)
        self.assertIn("  asan   everything: build-asan/meson-info/intro-tests.json is not there", text)

    def test_one_that_fails(self):
        self.put("plain", [told([], "a"), told([], "b")], [record([], "a"), record([], "b", "FAIL", "far\n" * 99 + "the end\n")])
        code, text = self.run_summary("plain")
        self.assertEqual(code, 1)
        self.assertIn("FAILED:\n  plain  tenon / b (FAIL, 1.5 s):\n", text)
        self.assertIn("         | the end\n", text)
        self.assertEqual(text.count("| far"), 19)
        self.assertIn("1 passed, 1 failed, 0 skipped", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
