"""samples/gpt: gpt_test.py GPT LOSSES TEXT DEVICE... Its losses are PyTorch's (reference.py wrote LOSSES), a training
that was cut in two is the same to the last bit, and what it writes does not depend on what it remembers."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

GPT, LOSSES, TEXT = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:4])
DEVICES = sys.argv[4:]
SIZES = "--context 64 --width 64 --layers 2 --heads 2 --batch 8 --seed 1".split()
NEAR = 1e-3  # of a loss; after 200 steps 1e-5 was seen


class Gpt(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def gpt(self, *words: object, device: str = DEVICES[0]) -> subprocess.CompletedProcess:
        return subprocess.run([GPT, *map(str, words)], env=dict(os.environ, TENON_DEVICE=device), cwd=self.folder,
                              capture_output=True, text=True, errors="replace")

    def good(self, *words: object, device: str = DEVICES[0]) -> str:
        result = self.gpt(*SIZES, "--text", TEXT, *words, device=device)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def test_losses_are_those_of_pytorch(self) -> None:
        expected = [float(line.split()[1]) for line in pathlib.Path(LOSSES).read_text().splitlines()]
        self.assertEqual(len(expected), 200)
        for device in DEVICES:
            n = 200 if device == DEVICES[0] else 60
            out = self.good("--steps", 200, "--until", n, "--steps-losses", device=device)
            losses = [float(line.split()[3]) for line in out.splitlines()]
            self.assertEqual(len(losses), n)
            for i, (ours, theirs) in enumerate(zip(losses, expected)):
                self.assertLess(abs(ours - theirs), NEAR * theirs, f"step {i + 1} on {device}")

    def test_autocast_learns_as_well(self) -> None:
        expected = [float(line.split()[1]) for line in pathlib.Path(LOSSES).read_text().splitlines()]
        for device in DEVICES:
            n = 60 if device == DEVICES[0] else 6
            out = self.good("--steps", 200, "--until", n, "--steps-losses", "--autocast", "bf16", device=device)
            losses = [float(line.split()[3]) for line in out.splitlines()]
            self.assertEqual(len(losses), n)
            self.assertNotEqual(losses[0], expected[0], "nothing was cast")
            for i, (ours, theirs) in enumerate(zip(losses, expected)):
                self.assertLess(abs(ours - theirs), 0.02 * theirs, f"step {i + 1} on {device}")
        self.assertIn("--autocast is bf16, not 'f64'", self.gpt("--autocast", "f64").stderr)

    def test_checkpoints_change_no_bit(self) -> None:
        for device in DEVICES:
            words = ("--steps", 200, "--until", 8 if device == DEVICES[0] else 3, "--steps-losses")
            self.assertEqual(self.good(*words, "--recompute", device=device), self.good(*words, device=device))

    def test_a_training_in_two_parts_is_the_same(self) -> None:
        words = ("--steps", 20, "--steps-losses")
        whole = self.good(*words, "--save", "whole")
        first = self.good(*words, "--until", 9, "--save", "first")
        second = self.good(*words, "--load", "first", "--save", "second")
        self.assertEqual(first + second, whole)
        self.assertEqual((self.folder / "second").read_bytes(), (self.folder / "whole").read_bytes())
        other = self.good(*words, "--until", 9, "--seed", 2)
        self.assertNotEqual(other, first)

    def test_what_is_remembered_changes_nothing_that_is_written(self) -> None:
        self.good("--steps", 30, "--save", "model", "--generate", 0)
        words = ("--load", "model", "--steps", 0, "--temperature", 0)
        for n in (40, 90):  # within the context, and beyond it
            text = self.good(*words, "--prompt", "Lic", "--generate", n).split("\n\n", 1)[1].rstrip("\n")
            self.assertEqual(len(text.encode()), 3 + n)
            if n < 64:
                again = self.good(*words, "--prompt", text[:20], "--generate", n - 17).split("\n\n", 1)[1].rstrip("\n")
                self.assertEqual(again, text)
        warm = [self.good("--load", "model", "--steps", 0, "--seed", seed) for seed in (3, 3, 4)]
        self.assertEqual(warm[0], warm[1])
        self.assertNotEqual(warm[0], warm[2])

    def test_the_curve_and_the_help(self) -> None:
        self.assertIn("gpt.svg", self.good("--steps", 12, "--generate", 1))
        self.assertTrue((self.folder / "gpt.svg").read_text().endswith("</svg>\n"))
        self.assertIn("--steps-losses", self.gpt("--help").stdout)

    def test_bad_input_is_told(self) -> None:
        (self.folder / "short.txt").write_text("a few bytes")
        (self.folder / "none").mkdir()
        (self.folder / "broken").write_bytes(b"\x10" + bytes(40))
        self.good("--until", 1, "--save", "model", "--steps", 1, "--generate", 0)
        for words, message in [(["--text", "nowhere"], "nowhere: No such file"),
                               (["--text", "short.txt"], "--context 128 needs at least 1300"),
                               (["--text", "none"], "no .txt or .md file"),
                               (["--load", "broken", "--text", TEXT], "broken"),
                               (["--load", "model", "--heads", "0"], "--heads is a whole number from 1"),
                               (["--width", "10", "--heads", "4"], "--width 10 is not a multiple of --heads 4"),
                               (["--prompt", ""], "--prompt"), (["--steps", "-1"], "--steps is a whole number"),
                               (["more"], "one word too many: 'more'")]:
            with self.subTest(words):
                result = self.gpt(*words)
                self.assertIn(result.returncode, (1, 2))
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
