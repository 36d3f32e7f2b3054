"""Right devices that differ from ours pass: right_devices_test.py TENON_CONFORM LESSER_PLUGIN CPU_PLUGIN SIM_PLUGIN

What the interface leaves open is not held against a device, though neither cpu nor sim makes use of it.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CONFORM, LESSER, CPU, SIM = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:])
WAYS = ("again", "dense", "slices", "threads", "turns", "host-threads")  # cpu has no streams


def listed(pattern: str) -> list[str]:
    command = [CONFORM, "list", "--set", "standard", "--filter", pattern]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def some(lines: list[str], n: int) -> list[str]:
    return lines[:: max(1, len(lines) // n)]


def said(whole: str, variant: str, lines: list[str]) -> tuple[int, str]:
    """The exit status of a run of these lines on what is made of a device, and all that was printed."""
    env = dict(os.environ, LESSER_OF=whole, LESSER=variant)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(lines))
        file.flush()
        command = [CONFORM, "run", LESSER, "--quiet", "--reruns", "0", "--cases", file.name]
        result = subprocess.run(command, env=env, capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


class RightDevices(unittest.TestCase):
    def passed(self, whole: str, variant: str, lines: list[str]) -> int:
        """How many of the lines pass; none fails."""
        status, text = said(whole, variant, lines)
        self.assertEqual(status, 0, text)
        return int(re.search(r"(\d+) passed, 0 failed", text)[1])

    def test_kernels_that_do_not_promise_the_same_bits_twice(self) -> None:
        """As those of many a device, whose sums meet in any order."""
        lines = listed("same/* T=f32")
        for way in WAYS:
            of_way = [line for line in lines if f" how={way}" in line and "flash" not in line]
            self.assertGreater(len(of_way), 40, way)
            passed = self.passed(CPU, "loose", some(of_way, 40))
            if way == "again":  # the same bits, which nobody promised
                self.assertEqual(passed, 0)
            else:
                self.assertGreater(passed, 30, way)

    def test_kernels_that_decline_now_and_then(self) -> None:
        """But a lost device: that it is lost is what it says of every call (TNP-88)."""
        lines = [line for line in listed("contract/*") + listed("process/*") if "/lost-" not in line]
        lines = some(lines, 100) + some(listed("same/* T=f32"), 70) + some(listed("kernel/* T=f32"), 50)
        for whole, variant in ((SIM, "declines-prepare"), (SIM, "declines-run"), (CPU, "declines-run")):
            with self.subTest(f"{variant} of {pathlib.Path(whole).name}"):
                self.assertGreater(self.passed(whole, variant, lines), 60)

    def test_memory_of_a_mebibyte_in_one(self) -> None:
        """Who says so and has not even that is at fault all the same."""
        lines = some(listed("contract/*"), 70) + listed("process/exhaustion*") + some(listed("kernel/* T=f32"), 30)
        for whole in (CPU, SIM):
            with self.subTest(pathlib.Path(whole).name):
                self.assertGreater(self.passed(whole, "small", lines), 40)
                self.assertEqual(said(whole, "broken-small", lines)[0], 1)


unittest.main(argv=sys.argv[:1])
