"""Timed cases on a good plugin and on one with known mistakes: perf_test.py TENON_CONFORM FAULTY.so GOOD.so"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CONFORM, FAULTY, GOOD = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:4])
ENV = dict(os.environ, FAULTY_GOOD=GOOD)


class Perf(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.folder.name)

    def tearDown(self) -> None:
        self.folder.cleanup()

    def conform(self, *words: object) -> subprocess.CompletedProcess:
        return subprocess.run([CONFORM, *map(str, words)], env=ENV, capture_output=True, text=True, timeout=200)

    def cases(self, plugin: str, *words: object, log: str = "log") -> dict[str, dict]:
        path = self.dir / log
        path.unlink(missing_ok=True)
        self.result = self.conform("run", plugin, "--quiet", "--reruns", 0, "--log", path, *words)
        records = [json.loads(line) for line in path.read_text().splitlines()]
        return {r["case"]: r for r in records if r["record"] == "case"}

    def one(self, plugin: str, line: str) -> dict:
        return next(iter(self.cases(plugin, line).values()))

    def test_small_calls_of_every_operator_are_timed(self) -> None:
        """The cases of the set that are nothing but a call."""
        lines = [x for x in self.conform("list", "--set", "perf").stdout.splitlines() if "ceiling" not in x]
        small = [x for x in lines if max(math.prod(map(int, s.split(","))) for s in re.findall(r"\[(.*?)\]", x)) < 9000]
        operators = {x.split()[0] for x in lines}
        self.assertGreater(len(operators), 80)
        found = self.cases(GOOD, *small)
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        self.assertEqual({x.split()[0] for x in found}, operators)
        for line, verdict in found.items():
            self.assertGreater(verdict["figures"]["ns"], 0, line)
            self.assertGreater(verdict["figures"]["bytes"], 0, line)
            self.assertIn(verdict["figures"]["bound"], ("launch", "copy", "multiply"), line)
            self.assertGreater(verdict["figures"]["share"], 0, line)

    def test_what_a_call_moves_and_computes(self) -> None:
        expected = (
            ("perf/add T=f32 self=[64] other=[64] alpha=1", 3 * 256, 0),
            ("perf/add T=f32 self=[8,8] other=[8,8]/[0,1] alpha=1", 2 * 256 + 32, 0),
            ("perf/bmm T=f32 self=[2,3,4] mat2=[2,4,5]", 4 * (24 + 40 + 30), 2 * 30 * 4),
            ("perf/index_select T=f32 self=[100,4] dim=0 index=[6]", 4 * 24 * 2 + 8 * 6, 0),
            ("perf/sum T=f64 self=[9,9] dim=[1]", 8 * 90, 0),
            ("perf/convolution T=f32 input=[1,2,5,5] weight=[3,2,3,3] bias=none stride=[1,1] padding=[0,0]"
             " dilation=[1,1] groups=1", 4 * (50 + 54 + 27), 2 * 27 * 18),
        )
        found = self.cases(GOOD, *(line for line, _, _ in expected))
        for (line, n_bytes, flop), verdict in zip(expected, found.values(), strict=True):
            with self.subTest(line):
                self.assertEqual((verdict["figures"]["bytes"], verdict["figures"]["flop"]), (n_bytes, flop))

    def test_a_kernel_that_skips_timed_calls_fails(self) -> None:
        line = "mul T=f32 self=[300] other=[300]"
        self.assertEqual(self.one(FAULTY, "kernel/" + line)["status"], "pass")
        verdict = self.one(FAULTY, "perf/" + line)
        self.assertEqual((verdict["status"], verdict["requirement"]), ("fail", 69))
        self.assertIn("found after the timed run", verdict["message"])
        self.assertNotIn("figures", verdict)
        self.assertEqual(self.result.returncode, 1)

    def test_an_element_far_out_is_checked(self) -> None:
        """The oracle computes a part of such a call, which repeats; the mistake is not in the first one."""
        verdict = self.one(FAULTY, "perf/minimum T=f32 self=[300000] other=[300000]")
        self.assertEqual(verdict["status"], "fail")
        self.assertIn("it is element 299998 of the whole output", verdict["message"])
        verdict = self.one(FAULTY, "perf/minimum T=f32 self=[600,500]/[1,600] other=[600,500] out=[600,500]/[1,600]")
        self.assertIn("it is element 299998 of the whole output", verdict["message"])

    def test_large_calls_are_checked_by_a_part(self) -> None:
        found = self.cases(
            GOOD,
            "perf/bmm T=f32 self=[1,300,300] mat2=[1,300,300]",
            "perf/bmm T=f32 self=[40,30,70]/[2100,1,30] mat2=[40,70,31]",
            "perf/softmax T=f32 self=[3000,50] dim=1",
            "perf/sum T=f32 self=[500,400] dim=[0]",
            "perf/cumsum T=f32 self=[4,100000] dim=0",
            "perf/scatter_add T=f32 self=[50,900] dim=0 index=[70,900] src=[70,900]",
            "perf/index_select T=f32 self=[90,40] dim=0 index=[9000]",
            "perf/layer_norm T=f32 input=[900,128] weight=[128] bias=[128] n_dims=1 eps=1e-5",
            "perf/max_pool2d T=f32 self=[40,7,40,40] kernel_size=[2,2] stride=[2,2] padding=[0,0] dilation=[1,1]"
            " ceil_mode=false",
            "perf/convolution T=f32 input=[9,8,20,20] weight=[32,8,3,3] bias=[32] stride=[1,1] padding=[1,1]"
            " dilation=[1,1] groups=1",
            "perf/convolution T=f32 input=[9,8,20,20] weight=[32,2,3,3] bias=[32] stride=[1,1] padding=[1,1]"
            " dilation=[1,1] groups=4",
            "perf/convolution_backward_input T=f32 grad_output=[9,32,20,20] weight=[32,8,3,3] input_size=[9,8,20,20]"
            " stride=[1,1] padding=[1,1] dilation=[1,1] groups=1",
            "perf/convolution_backward_weight T=f32 grad_output=[9,32,20,20] input=[9,8,20,20] weight_size=[32,8,3,3]"
            " stride=[1,1] padding=[1,1] dilation=[1,1] groups=1",
        )
        self.assertEqual({v["status"] for v in found.values()}, {"pass"}, self.result.stderr)

    def test_what_cannot_be_timed_says_why(self) -> None:
        expected = {
            "perf/add T=f32 self=[6] other=[6] alpha=1 in-place=self": "what the next one reads",
            "perf/add T=f32 self=[6] other=[5] alpha=1": "sizes",
            "perf/add": "needs T=DTYPE",
            "perf/ceiling-sky": "no case perf/ceiling-sky",
            "perf/ceiling-multiply": "needs T=DTYPE",
            "perf/ceiling-multiply T=f31": "needs T=DTYPE",
        }
        for words, verdict in zip(expected.values(), self.cases(GOOD, *expected).values(), strict=True):
            self.assertEqual(verdict["status"], "error")
            self.assertIn(words, verdict["message"])

    def test_figures_come_through_log_reports_and_diff(self) -> None:
        line = "perf/bmm T=f32 mat2=[1,16,16] self=[1,16,16]"
        figures = self.cases(GOOD, "--html", self.dir / "x.html", line)[line]["figures"]
        log = self.dir / "log"
        markdown = self.conform("report", log, "--markdown", "-").stdout
        row = next(x for x in markdown.splitlines() if x.startswith(f"| `{line[5:]}` |"))
        self.assertIn(f" | {figures['flop'] / figures['ns']:.3g} | ", row)
        self.assertIn(f"of {figures['bound']} |", row)
        self.assertIn(line[5:], (self.dir / "x.html").read_text())
        slower = self.dir / "slower"
        slower.write_text(log.read_text().replace(f"\"ns\":{figures['ns']:.9g}", f"\"ns\":{1e9 * figures['ns']:.9g}", 1))
        changed = self.conform("diff", log, slower)
        self.assertRegex(changed.stdout, rf"^x 1e\+09 .* {re.escape(line)}\n1 timed in both, x 1e\+09 in the mean\n")
        self.assertEqual(changed.returncode, 0)
        self.assertRegex(self.conform("diff", log, log).stdout, r"^~ 1 ")
        row = next(x for x in self.conform("trend", log, slower, log).stdout.splitlines() if x.startswith("| `bmm T=f32"))
        self.assertRegex(row, r" \| [\d.]+ [mun]s \| \S+ \S+, x 1e\\\+09 \| [\d.]+ [mun]s, x 1, within spread \|$")

    def test_perf_is_a_set_of_its_own(self) -> None:
        perf = self.conform("list", "--set", "perf").stdout.splitlines()
        self.assertEqual({line.split("/")[0] for line in perf}, {"perf"})
        self.assertEqual(perf[0], "perf/ceiling-launch")
        self.assertNotIn("perf/", self.conform("list", "--set", "exhaustive", "--filter", "/^p/").stdout)

    def test_level_load_runs_its_cases_alone(self) -> None:
        found = self.cases(GOOD, "--level", "load")
        self.assertEqual({line.split("/")[0] for line in found}, {"process"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
