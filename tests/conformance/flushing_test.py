"""Who declares that it flushes subnormal numbers may, and nobody else: flushing_test.py TENON_CONFORM FLUSHING_PLUGIN CPU_PLUGIN"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CONFORM, FLUSHING, WHOLE = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:])
F32, F64, ALL = 1, 2, 15
PATTERNS = ("kernel/* data=special", "kernel/* data=exponents", "same/* data=special", "operator/* T=f16 scale=13")


def lines_of(pattern: str, at_most: int) -> list[str]:
    listed = subprocess.run([CONFORM, "list", "--set", "standard", "--filter", pattern], capture_output=True, text=True, check=True)
    lines = listed.stdout.splitlines()
    return lines[:: max(1, len(lines) // at_most)]


class Flushing(unittest.TestCase):
    def failures(self, lines: list[str], flushes: int, declares: int) -> int:
        env = dict(os.environ, FLUSHING_OF=WHOLE, FLUSHES=str(flushes), DECLARES=str(declares))
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(lines))
            file.flush()
            command = [CONFORM, "run", FLUSHING, "--quiet", "--reruns=0", "--cases", file.name]
            result = subprocess.run(command, env=env, capture_output=True, text=True)
        self.said = result.stdout + result.stderr
        self.assertNotIn("inconclusive", self.said)
        passed, failed = map(int, re.search(r"(\d+) passed, (\d+) failed", self.said).groups())
        self.assertGreater(passed + failed, len(lines) // 3, self.said)
        return failed

    def test_who_declares_it_may_flush_inputs_and_results(self) -> None:
        for pattern in PATTERNS:
            self.assertEqual(self.failures(lines_of(pattern, 200), ALL, ALL), 0, f"{pattern}: {self.said}")

    def test_who_does_not_declare_it_fails(self) -> None:
        for dtype in ("f32", "f64", "f16", "bf16"):
            lines = lines_of(f"kernel/mul T={dtype} data=special", 50)
            self.assertGreater(self.failures(lines, ALL, 0), 0, dtype)

    def test_one_dtype_does_not_stand_for_another(self) -> None:
        for dtype, fails in (("f32", False), ("f64", True)):
            lines = lines_of(f"kernel/mul T={dtype} data=special", 50)
            self.assertEqual(self.failures(lines, F32 | F64, F32) > 0, fails, self.said)


unittest.main(argv=sys.argv[:1])
