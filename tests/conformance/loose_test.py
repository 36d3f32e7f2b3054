"""Kernels that do not promise the same bits twice are judged by what is right: loose_test.py TENON_CONFORM LESSER_PLUGIN CPU_PLUGIN

Such are those of many a device whose sums meet in any order.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CONFORM, LESSER, WHOLE = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:])
ENV = dict(os.environ, LESSER_OF=WHOLE, LESSER="loose")
WAYS = ("again", "dense", "slices", "threads", "turns", "host-threads")  # cpu has no streams


class Loose(unittest.TestCase):
    def run_lines(self, lines: list[str]) -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(lines))
            file.flush()
            result = subprocess.run([CONFORM, "run", LESSER, "--quiet", "--cases", file.name], env=ENV, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout + result.stderr

    def test_a_right_device_passes_in_every_way_of_comparing(self) -> None:
        listed = subprocess.run([CONFORM, "list", "--set", "standard", "--filter", "same/* T=f32"], capture_output=True, text=True, check=True)
        lines = listed.stdout.splitlines()
        for way in WAYS:
            of_way = [line for line in lines if f" how={way}" in line and "flash" not in line]
            self.assertGreater(len(of_way), 40, way)
            said = self.run_lines(of_way[:: len(of_way) // 40])
            passed = int(re.search(r"(\d+) passed, 0 failed", said)[1])
            if way == "again":  # the same bits, which nobody promised
                self.assertEqual(passed, 0, said)
            else:
                self.assertGreater(passed, 30, f"{way}: {said}")


unittest.main(argv=sys.argv[:1])
