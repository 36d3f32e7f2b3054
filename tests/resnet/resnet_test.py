"""samples/resnet: resnet_test.py RESNET REFERENCE FOLDER DEVICE... Its losses and logits are PyTorch's (reference.py
wrote REFERENCE), a training that was cut in two is the same to the last bit, for any number of workers, and files
have torchvision's names."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

RESNET, REFERENCE, FOLDER = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:4])
DEVICES = sys.argv[4:]
COMMON = "--batch 16 --rate 0.02 --steps 5 --seed 1 --weight-decay 5e-4".split()  # and RUNS: as in reference.py
RUNS = {"cifar": "--width 4 --schedule cosine".split(),
        "imagenet": "--width 4 --stem imagenet --side 40 --schedule cosine --label-smoothing 0.1".split()}
SMALL = "--width 4 --batch 8 --tested 50".split()
NEAR = 1e-4  # of the largest number of a line; 4e-6 was seen of losses, 3e-5 of logits after them


def reference():
    """{(run, "loss"): [[loss], ...], (run, "start"): [[logit, ...], ...], ...}"""
    out = {}
    for line in pathlib.Path(REFERENCE).read_text().splitlines():
        if not line.startswith("#"):
            run, what, *values = line.split()
            out.setdefault((run, what), []).append([float(x) for x in values])
    return out


def header(path):
    data = path.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])


class ResNet(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def resnet(self, *words: object, device: str = DEVICES[0]) -> subprocess.CompletedProcess:
        # TENON_FALLBACK: an operator that would run on the CPU is an error.
        return subprocess.run([RESNET, *map(str, words)], capture_output=True, text=True, cwd=self.folder,
                              env=dict(os.environ, TENON_DEVICE=device, TENON_FALLBACK="error"))

    def good(self, *words: object, data: str = FOLDER, device: str = DEVICES[0]) -> str:
        result = self.resnet("--data", data, *words, device=device)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def assert_near(self, ours: list, theirs: list, what: str) -> None:
        self.assertEqual(len(ours), len(theirs), what)
        for i, (a, b) in enumerate(zip(ours, theirs)):
            self.assertEqual(len(a), len(b), what)
            for x, y in zip(a, b):
                self.assertLess(abs(x - y), NEAR * max(map(abs, b)), f"{what}, line {i + 1}")

    def test_losses_and_logits_are_those_of_pytorch(self) -> None:
        expected = reference()
        for device in DEVICES:
            for run, options in RUNS.items():
                words = (*COMMON, *options)
                start = self.good(*words, "--logits", 4, device=device)
                losses = self.good(*words, "--steps-losses", "--save", "trained", device=device)
                trained = self.good(*words, "--load", "trained", "--logits", 4, device=device)
                for what, out, first in (("start", start, 0), ("loss", losses, 3), ("trained", trained, 0)):
                    lines = [[float(x) for x in line.split()[first:]] for line in out.splitlines()]
                    self.assert_near(lines, expected[run, what], f"{run} {what} on {device}")

    def test_a_training_in_two_parts_is_the_same_for_any_number_of_workers(self) -> None:
        (self.folder / "cifar").mkdir()
        write_cifar(self.folder / "cifar", 20, seed=1)  # two and a half epochs, so that a cut is in the second
        for data in (FOLDER, str(self.folder / "cifar")):
            words = (*SMALL, "--steps", 9, "--steps-losses")
            whole = self.good(*words, "--save", "whole", data=data)
            first = self.good(*words, "--until", 4, "--save", "first", "--workers", 0, data=data)
            second = self.good(*words, "--load", "first", "--save", "second", "--workers", 3, data=data)
            self.assertEqual(first + second, whole)
            self.assertEqual((self.folder / "second").read_bytes(), (self.folder / "whole").read_bytes())
            self.assertNotEqual(self.good(*words, "--until", 4, "--seed", 2, data=data), first)

    def test_files_have_torchvisions_names(self) -> None:
        self.good(*SMALL, "--steps", 0, "--save", "model", "--width", 64, "--stem", "imagenet", "--tested", 1)
        shapes = {name: x["shape"] for name, x in header(self.folder / "model").items() if name != "__metadata__"}
        self.assertEqual(len(shapes), 122)  # as torchvision.models.resnet18().state_dict() has
        for name, shape in {"conv1.weight": [64, 3, 7, 7], "bn1.weight": [64], "layer1.0.conv1.weight": [64, 64, 3, 3],
                            "layer1.0.bn1.running_mean": [64], "layer2.0.downsample.0.weight": [128, 64, 1, 1],
                            "layer2.0.downsample.1.num_batches_tracked": [], "layer4.1.bn2.running_var": [512],
                            "layer4.1.conv2.weight": [512, 512, 3, 3], "fc.weight": [10, 512],
                            "fc.bias": [10]}.items():
            self.assertEqual(shapes.get(name), shape, name)
        self.assertNotIn("layer1.0.downsample.0.weight", shapes)
        self.assertEqual(sum(x.count("optimizer") for x in shapes), 0)

    def test_a_checkpoint_is_tested(self) -> None:
        out = self.good(*SMALL, "--steps", 30, "--save", "model", "--out", "curve.svg")
        self.assertIn("MNIST (not CIFAR-10)", out)
        self.assertIn("curves are in curve.svg", out)
        self.assertTrue((self.folder / "curve.svg").read_text().endswith("</svg>\n"))
        again = self.good(*SMALL, "--load", "model", "--eval")
        self.assertEqual(again.splitlines()[-1], out.splitlines()[-1])
        self.assertIn("of 50 pictures", again)
        self.assertIn("--label-smoothing", self.resnet("--help").stdout)

    def test_cifar_10_is_read_and_learnt(self) -> None:
        write_cifar(self.folder, 400, seed=1)
        out = self.good("--width", 4, "--batch", 32, "--steps", 60, "--rate", 0.02, data=str(self.folder))
        self.assertIn("CIFAR-10 of", out)
        self.assertIn("800 pictures to learn from, 400 to test on", out)
        self.assertGreater(float(out.split("accuracy ")[1].split()[0]), 0.5)

    def test_bad_input_is_told(self) -> None:
        self.good(*SMALL, "--steps", 1, "--save", "model")
        (self.folder / "broken").write_bytes(b"\x10" + bytes(40))
        (self.folder / "cut").mkdir()
        write_cifar(self.folder / "cut", 10, seed=1)
        (self.folder / "cut" / "data_batch_2.bin").write_bytes(bytes(3000))
        (self.folder / "odd").mkdir()
        write_cifar(self.folder / "odd", 10, seed=1)
        (self.folder / "odd" / "data_batch_1.bin").write_bytes(b"\x0b" * 3073)
        for words, message in [(["--data", "nowhere"], "nowhere/train-images-idx3-ubyte.gz"),
                               (["--data", "cut"], "data_batch_2.bin has 3000 bytes"),
                               (["--data", "odd", "--batch", 1], "sample 0: a label is 11"),
                               (["--data", FOLDER, "--load", "broken"], "broken"),
                               (["--data", FOLDER, "--batch", 60001], "drop_last leaves no batch of 60001"),
                               (["--eval"], "--eval tests what --load loads"),
                               (["--stem", "flower"], "--stem is cifar or imagenet, not 'flower'"),
                               (["--rate", "-1"], "--rate is a number from 0"),
                               (["--steps", "x"], "--steps is a whole number"), (["more"], "one word too many: 'more'")]:
            with self.subTest(words):
                result = self.resnet(*words)
                self.assertIn(result.returncode, (1, 2))
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


def write_cifar(folder, n, seed):
    """Two files to learn from and one to test on: pictures of noise, of the colour of their class."""
    numbers = random.Random(seed)
    for name in ("data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"):
        with open(folder / name, "wb") as file:
            for _ in range(n):
                label = numbers.randrange(10)
                file.write(bytes([label]))
                for channel in range(3):
                    base = 25 * (label * (channel * 2 + 1) % 10)
                    file.write(bytes(base + (b & 15) for b in numbers.randbytes(1024)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
