"""What lists accept and what levels ask, on a worker that misbehaves: levels_test.py TENON_CONFORM MOCK_WORKER."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

from mock_case import CONFORM, MOCK, MockCase

LOAD = Path(__file__).parents[2] / "plugin-sdk/conformance/runner/levels/load.txt"
WAIVER = "[ticket=HW-12 owner=jane until=2999-12-31]"


class Levels(MockCase):
    # ---- lists and levels

    def lists(self, text: str) -> subprocess.CompletedProcess:
        file = self.dir / "list"
        file.write_text(text)
        return self.run_it("--lists", file, "--log", self.log)

    def test_listed_failures_are_accepted(self) -> None:
        self.set_is("kernel/add", "kernel/fail n=1", "kernel/fail n=2", "kernel/hang")
        result = self.lists(
            f"xfail kernel/fail n=1 # known\nwaive kernel/fail n=2 {WAIVER} # accepted\nskip kernel/hang # long\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 xfail, 1 waived, 1 skipped", result.stdout)

    def test_xpass_and_unused_entries_fail(self) -> None:
        self.set_is("kernel/add")
        for entry in ("xfail kernel/add # once", f"waive kernel/add {WAIVER} # once", "skip kernel/gone # once"):
            with self.subTest(entry):
                self.log.unlink(missing_ok=True)
                self.assertEqual(self.lists(entry + "\n").returncode, 1)

    def test_entries_for_larger_sets_are_not_unused(self) -> None:
        self.assertNotIn("unused", self.lists(f"waive kernel/rare {WAIVER} # only there\n").stderr)

    def test_an_entry_without_reason_is_refused_by_line(self) -> None:
        result = self.lists("# fine\nskip kernel/add\n")
        self.assertEqual(result.returncode, 2)
        self.assertIn("list:2: no reason", result.stderr)

    def test_a_waived_failure_is_no_failure_of_a_level(self) -> None:
        self.set_is("process/load", "process/load-fail")
        self.assertIn("levels passed: none", self.lists("xfail process/load-fail # known\n").stdout)
        self.log.unlink()
        result = self.lists(f"waive process/load-fail {WAIVER} # the adder\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("levels passed: Load (1 waived);", result.stdout)
        self.assertEqual(self.cases()["process/load-fail"]["reason"],
                         "the adder (ticket=HW-12 owner=jane until=2999-12-31)")
        self.assertEqual(self.records()[-1]["levels"][0]["terms"], "1 waived")
        page = self.markdown()
        self.assertIn("| Load | passed: 1 waived |  |\n", page)
        self.assertIn("## Waived\n\n* `process/load-fail`  \n  the adder (ticket=HW-12 owner=jane until=2999-12-31)", page)

    def markdown(self) -> str:
        return subprocess.run([CONFORM, "report", str(self.log), "--markdown", "-"], capture_output=True,
                              text=True).stdout.replace("\\", "")

    def test_an_expired_waiver_counts_no_more(self) -> None:
        self.set_is("kernel/fail")
        result = self.lists("waive kernel/fail [ticket=HW-12 owner=jane until=2020-02-29] # the adder\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("expired on 2020-02-29 and counts no more: the adder (ticket=HW-12", result.stderr)
        self.assertIn("0 passed, 1 failed\n", result.stdout)
        self.assertEqual(self.cases()["kernel/fail"]["status"], "fail")
        self.assertNotIn("unused", result.stderr)

    def test_a_waiver_counts_where_its_conditions_hold(self) -> None:
        self.set_is("kernel/fail")
        for condition, status in {"version=1.*": "waived", "version=2.*": "fail", "device=Mock*": "waived",
                                  "version=2.* version=1.2": "waived", "version=1.2 id=other": "fail",
                                  "firmware=*.7": "fail"}.items():
            with self.subTest(condition):
                self.log.unlink(missing_ok=True)
                waiver = WAIVER.replace("]", f" {condition}]")
                result = self.lists(f"waive kernel/fail {waiver} # the adder\n")
                self.assertEqual(self.cases()["kernel/fail"]["status"], status)
                self.assertNotIn("unused", result.stderr)

    def test_a_waiver_must_say_all_that_a_reader_asks(self) -> None:
        for terms, words in {"": "which ticket", "[ticket=HW-12 until=2999-12-31]": "whose",
                             "[ticket=HW-12 owner=jane]": "until when",
                             "[ticket=HW-12 owner=jane until=soon]": "until=soon",
                             "[ticket=HW-12 owner=jane until=2999-13-01]": "until=2999-13-01",
                             "[ticket=HW-12 owner=jane until=2999-12-31 colour=red]": "colour=red",
                             "[ticket= owner=jane until=2999-12-31]": "ticket="}.items():
            with self.subTest(terms):
                result = self.lists(f"# fine\nwaive kernel/fail {terms} # the adder\n")
                self.assertEqual(result.returncode, 2)
                self.assertIn("list:2: ", result.stderr)
                self.assertIn(words, result.stderr)

    # ---- what a level needs

    def core_is(self, *lines: str) -> None:
        self.set_is("process/load", "contract/x", "kernel/copy", *lines)

    def needs(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [CONFORM, "needs", str(self.plugin), "--worker", MOCK, "--core-worker", MOCK, "--timeout", "2", *words],
            env=self.env, capture_output=True, text=True, timeout=120)

    LACKING = ("operator/lacks.a T=f32 items=amax.bool", "operator/lacks.a T=i64 items=amax.bool",
               "operator/lacks.b T=f32 items=amax.bool:copy.f32.i64", "operator/ok T=f32",
               "operator/lacks.c T=bool items=dtype.bool", "operator/unsupported T=f16",
               "operator/unsupported T=f32 how=decomposed", "operator/unsupported T=f32 invalid=size")

    def test_core_asks_every_operator_of_each_dtype(self) -> None:
        self.core_is("operator/ok T=f32", "operator/ok T=i64", "operator/other T=bool", "operator/ok T=f16",
                     "operator/ok T=bf16", "operator/unsupported T=bf16")
        result = self.run_it("--level", "core", "--core-worker", MOCK)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("levels passed: Load, Memory, Core (f32 i64 bool; also f16);", result.stdout)
        for line in ("operator/unsupported T=f32", "operator/unsupported T=i64", "operator/unsupported T=bool layout=x"):
            with self.subTest(line):
                self.core_is("operator/ok T=f32", line)
                result = self.run_it("--level", "core", "--core-worker", MOCK)
                self.assertEqual(result.returncode, 1)
                self.assertIn("level Core: failed: 1 of operators and dtypes do not run: unsupported", result.stderr)

    def test_a_level_that_fails_lists_all_that_is_missing(self) -> None:
        self.core_is(*self.LACKING)
        result = self.run_it("--level", "core", "--core-worker", MOCK, "--log", self.log)
        self.assertEqual(result.returncode, 1)
        self.assertIn("level Core: failed: 4 of operators and dtypes do not run; they lack amax bool, "
                      "tensors of bool, copy f32 -> i64", result.stderr)
        self.assertIn(self.LIST, result.stderr)
        self.assertEqual(self.records()[-1]["needs"], [
            {"item": "amax bool", "frees": ["lacks.a (f32 i64)"], "with_others": ["lacks.b (f32)"]},
            {"item": "tensors of bool", "frees": ["lacks.c (bool)"], "with_others": []},
            {"item": "copy f32 -> i64", "frees": [], "with_others": ["lacks.b (f32)"]}])
        self.assertIn("* **amax bool**: frees lacks.a (f32 i64); with others lacks.b (f32)\n", self.markdown())

    LIST = ("amax bool\n    frees lacks.a (f32 i64)\n    with others lacks.b (f32)\n"
            "tensors of bool\n    frees lacks.c (bool)\ncopy f32 -> i64\n    with others lacks.b (f32)\n")

    def test_needs_prints_the_same_list(self) -> None:
        self.core_is(*self.LACKING)
        result = self.needs()
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertTrue(result.stdout.startswith(
            "for level Core 3 kernels, pairs of copy or dtypes are missing; without them 4 of"), result.stdout)
        self.assertTrue(result.stdout.endswith("\n\n" + self.LIST), result.stdout)
        self.assertEqual([item["item"] for item in json.loads(self.needs("--json").stdout)],
                         ["amax bool", "tensors of bool", "copy f32 -> i64"])
        self.assertIn("nothing is missing", self.needs("--filter", "operator/ok").stdout)
        self.assertEqual(self.needs("--filter", "operator/ok").returncode, 0)

    def test_needs_tells_what_it_cannot_explain(self) -> None:
        self.core_is("operator/fail T=f32", "operator/segv T=i64")
        result = self.needs()
        self.assertEqual(result.returncode, 1)
        self.assertIn("for another reason, which `tenon-conform run` tells\n    fail (f32), segv (i64)\n", result.stdout)

    def test_needs_without_core_cannot_work(self) -> None:
        result = subprocess.run([CONFORM, "needs", str(self.plugin)], env=self.env, capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--core-worker", result.stderr)

    def test_levels(self) -> None:
        self.set_is("process/load", "process/other")
        self.assertEqual(self.run_it("--level", "load").returncode, 0)
        self.assertIn("levels passed: Load;", self.run_it().stdout)
        filtered = self.run_it("--filter", "process/load")
        self.assertEqual((filtered.stdout, filtered.stderr), ("Mock <device>: 1 passed, 0 failed\n", ""))
        asked = self.run_it("--filter", "process/load", "--level", "memory")
        self.assertIn("level Memory: not run", asked.stderr)
        self.assertNotIn("level Perf", asked.stderr)
        self.assertEqual(self.run_it("--level", "memory").returncode, 1)
        self.set_is("process/load", "process/load-segv")
        self.assertIn("levels passed: none", self.run_it().stdout)

    def test_load_asks_the_same_in_every_set(self) -> None:
        def lines(name: str) -> set[str]:
            out = subprocess.run([CONFORM, "list", "--set", name, "--filter", "process/*"], capture_output=True,
                                 text=True, check=True).stdout
            return {line for line in out.splitlines() if line.startswith("process/")}

        asked = [line.split(maxsplit=1)[1] for line in LOAD.read_text().splitlines() if line.startswith("clean ")]
        self.assertEqual({pattern for pattern in asked if "*" in pattern}, {"process/load*"})
        for name in ("smoke", "standard", "exhaustive"):
            with self.subTest(name):
                of_load = {line for line in lines(name) if line in asked or line.startswith("process/load")}
                self.assertEqual(of_load, lines("smoke"))

    def test_what_a_larger_set_adds_is_no_failure_of_load(self) -> None:
        self.set_is("process/load", "process/fail", "contract/x", "kernel/copy")
        result = self.run_it()
        self.assertIn("levels passed: Load;", result.stdout)
        self.assertIn("level Memory: failed: fail: `process/fail`", result.stderr)

    def test_a_level_runs_what_it_asks(self) -> None:
        self.set_is("process/load", "contract/x", "kernel/copy", "kernel/add", "perf/add")

        def ran(*words: str) -> list[str]:
            self.log.unlink(missing_ok=True)
            self.run_it("--log", self.log, *words)
            return list(self.cases())

        self.assertEqual(ran("--level", "load"), ["process/load"])
        self.assertEqual(self.records()[0]["set"], "smoke")
        self.assertEqual(ran("--level", "memory"), ["process/load", "contract/x", "kernel/copy"])
        self.assertEqual(self.records()[0]["set"], "standard")
        self.assertEqual(ran("--level", "load", "--level", "perf", "--filter", "p*"), ["process/load", "perf/add"])
        self.assertEqual(self.records()[0]["set"], "standard+perf")
        self.assertEqual(ran("--level", "load", "kernel/add"), ["kernel/add"])
        self.assertEqual(self.run_it("--level", "load", "--level", "memory").returncode, 0)
        self.assertEqual(self.run_it("--level", "load", "--level", "core").returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
