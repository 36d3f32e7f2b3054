"""shrink and fuzz on a plugin with known mistakes: shrink_test.py TENON_CONFORM FAULTY.so GOOD.so CC INCLUDE..."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CONFORM, FAULTY, GOOD = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:4])
CC, INCLUDES = sys.argv[4], sys.argv[5:]
ENV = dict(os.environ, FAULTY_GOOD=GOOD)

# What is wrong in FAULTY, as lines that fuzz begins with: among all operators there are seeds that draw none of it.
WRONG = ("--filter", r"/\/(add|exp|maximum) /", "--filter", "*/sub", "--filter", "*/gather")


class Shrink(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.folder.name)

    def tearDown(self) -> None:
        self.folder.cleanup()

    def run_it(self, *words: object, timeout: float = 100) -> subprocess.CompletedProcess:
        return subprocess.run([*map(str, words)], env=ENV, capture_output=True, text=True, timeout=timeout)

    def shrink(self, line: str, *words: object) -> str:
        """The smallest line, having looked that it fails again when pasted back."""
        out = self.run_it(CONFORM, "shrink", FAULTY, line, "--out", self.dir / "r.c", *words)
        self.assertEqual(out.returncode, 1, out.stdout + out.stderr)
        small = re.findall(r"tenon-conform run \S+ '(.*)'", out.stdout)[-1]
        again = self.run_it(CONFORM, "run", FAULTY, "--timeout", 1, "--reruns", 0, small)
        self.assertEqual(again.returncode, 1, again.stdout)
        return small

    def compile(self) -> str:
        program = str(self.dir / "r")
        flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", *(f"-I{i}" for i in INCLUDES)]
        built = self.run_it(CC, *flags, self.dir / "r.c", "-o", program, "-ldl", "-lm")
        self.assertEqual(built.returncode, 0, built.stderr)
        right = self.run_it(program, GOOD)
        self.assertEqual(right.returncode, 0, right.stdout + right.stderr)
        return program

    def test_a_wrong_element(self) -> None:
        line = "kernel/add T=f32 self=[3,4,5]/[40,1,4]+2 other=[3,4,5] alpha=2 data=random"
        self.assertEqual(self.shrink(line), "kernel/add T=f32 alpha=1 data=exact only=0 other=[5] self=[5]")
        wrong = self.run_it(self.compile(), FAULTY)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("output 0, element 2: expected 0 to 0, got 1", wrong.stdout)

    def test_a_crash(self) -> None:
        small = self.shrink("kernel/exp T=f16 self=[2,239] data=special")
        self.assertEqual(small, "kernel/exp T=f32 data=exact only=0 self=[3]")
        self.assertLess(self.run_it(self.compile(), FAULTY).returncode, 0)
        self.assertIn("types[] = {TN_F32};", (self.dir / "r.c").read_text())

    def test_a_hang(self) -> None:
        small = self.shrink("kernel/neg T=f16 self=[1,2,1,1]", "--timeout", 1)
        self.assertIn("self=[1,1,1]", small)
        with self.assertRaises(subprocess.TimeoutExpired):
            self.run_it(self.compile(), FAULTY, timeout=1)

    def test_two_layouts(self) -> None:
        small = self.shrink("same/sub T=f32 alpha=1 how=dense other=[7,9] self=[7,9]/[12,1]+5")
        self.assertRegex(small, r"self=\[\]/\[\]\+5|self=\[1\]/\[1\]\+5")
        wrong = self.run_it(self.compile(), FAULTY)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("in the other", wrong.stdout)

    def test_a_number_that_is_an_integer(self) -> None:
        small = self.shrink("kernel/maximum T=f32 data=wide other=[6,7] scalar=other self=[6,7]")
        self.assertIn("scalar=other", small)
        self.assertEqual(self.run_it(self.compile(), FAULTY).returncode, 1)

    def test_a_refusal(self) -> None:
        small = self.shrink("refuse/gather T=f32 at=27 bad=6 data=random dim=0 index=[4,7] self=[6,9]")
        self.assertIn("self=[1]", small)
        self.assertEqual(self.run_it(self.compile(), FAULTY).returncode, 1)

    def test_what_passes_is_not_shrunk(self) -> None:
        out = self.run_it(CONFORM, "shrink", FAULTY, "kernel/mul T=f32 self=[9] other=[9]")
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)

    def test_fuzz_keeps_what_it_finds(self) -> None:
        words = (CONFORM, "fuzz", FAULTY, "--seed", 1, "--corpus", self.dir / "corpus", "--timeout", 1, "-j2", *WRONG)
        first = self.run_it(*words, "--cases", 200)
        self.assertEqual(first.returncode, 1, first.stdout + first.stderr)
        findings = (self.dir / "corpus" / "findings.txt").read_text()
        self.assertRegex(findings, r"(kernel|same|refuse)/\w+ .* # (fail|crash|timeout) ")
        again = self.run_it(*words, "--cases", 1)
        self.assertRegex(again.stdout, r"fuzz: \d+ cases, [1-9]\d* findings")

    def test_fuzz_finds_nothing_on_a_good_device_and_something_on_a_bad_one(self) -> None:
        for seed in (11, 12):
            good = self.run_it(CONFORM, "fuzz", GOOD, "--seed", seed, "--cases", 200, "-j2")
            self.assertEqual(good.returncode, 0, good.stdout + good.stderr)
            self.assertRegex(good.stdout, r"fuzz: [1-9]\d* cases, 0 findings \(new: 0\)\n$")
            bad = self.run_it(CONFORM, "fuzz", FAULTY, "--seed", seed, "--cases", 200, "-j4", "--timeout", 1, *WRONG)
            self.assertEqual(bad.returncode, 1, bad.stdout + bad.stderr)
            self.assertGreaterEqual(len(re.findall(r"tenon-conform run \S+ '(?:kernel|same|refuse)/", bad.stdout)), 1)

    def test_fuzz_of_some_lines_alone(self) -> None:
        words = (CONFORM, "fuzz", FAULTY, "--cases", 60, "--seed", 5, "--timeout", 1)
        right = self.run_it(*words, "--filter", "*/abs", "--filter", "*/tanh")
        self.assertEqual(right.returncode, 0, right.stdout + right.stderr)
        wrong = self.run_it(*words, "--filter", "*/abs", "--filter", "kernel/add T=f32")
        self.assertEqual(wrong.returncode, 1, wrong.stdout + wrong.stderr)
        for nothing in ("process", "*/matmul"):  # always in a process of its own; no such kernel
            out = self.run_it(*words, "--filter", "*/abs", "--filter", nothing)
            self.assertEqual(out.returncode, 4, out.stdout + out.stderr)
            self.assertIn(f"--filter '{nothing}' finds no line", out.stderr)

    def test_the_same_seed_gives_the_same_cases(self) -> None:
        words = (CONFORM, "fuzz", FAULTY, "--seed", 1, "--cases", 200, "--timeout", 1, *WRONG)
        with concurrent.futures.ThreadPoolExecutor() as pool:  # much of it is waiting for what hangs
            outputs = list(pool.map(lambda _: self.run_it(*words).stdout, range(2)))
        # Which call: how far it shrinks depends on what a device that hangs does in time.
        first = [re.findall(r"tenon-conform run \S+ '(\S+)", out)[:1] for out in outputs]
        self.assertEqual(first[0], first[1])
        self.assertTrue(first[0])

    def test_lines_without_parameters(self) -> None:
        for seed in (1, 3):  # these draw some soon
            out = self.run_it(CONFORM, "fuzz", GOOD, "--seed", seed, "--cases", 200)
            self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        out = self.run_it(CONFORM, "run", GOOD, "process/life-init")
        self.assertIn("process/life-init needs times=, as in 'process/life-init times=100'", out.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
