#!/usr/bin/env python3
"""The losses and logits of samples/resnet as PyTorch has them: same start, same pictures, same optimizer.

usage: reference.py RESNET FOLDER > reference.txt      needs torch, numpy and safetensors
       reference.py RESNET FOLDER --torchvision        compares a forward pass with torchvision's resnet18, too

RESNET is the built sample, FOLDER has MNIST's files. RESNET writes its start weights; everything else here is
PyTorch's, but for the order of the pictures and what is done to them, which are drawn by counting as tenon/data.h
has it and are written down here a second time.
"""

import gzip
import pathlib
import subprocess
import sys
import tempfile

import numpy
import safetensors.torch
import torch
import torch.nn.functional as F

MASK = (1 << 64) - 1
# A few steps: later what rounding did to them grows, and PyTorch in f32 is 4e-4 (after 9) to 3e-3 (after 10) from
# PyTorch in f64, as Tenon is.
STEPS, BATCH, RATE, SEED, DECAY, N_LOGITS = 5, 16, 0.02, 1, 5e-4, 4
COMMON = ["--batch", BATCH, "--rate", RATE, "--steps", STEPS, "--seed", SEED, "--weight-decay", DECAY]
# What resnet_test.py runs, too. Name, options, and what follows from them here.
RUNS = [("cifar", ["--width", 4, "--schedule", "cosine"], {}),
        ("imagenet", ["--width", 4, "--stem", "imagenet", "--side", 40, "--schedule", "cosine", "--label-smoothing", 0.1],
         {"side": 40, "smoothing": 0.1})]


# ---- random numbers, as nn/data/random.c counts them ---------------------------------------------


class Random:
    def __init__(self, seed, epoch, index):
        self.key, self.epoch, self.index, self.drawn = seed, epoch, index, 0

    def bits(self):
        c = [self.drawn // 2, self.index & 0xffffffff, self.index >> 32, self.epoch]
        k = [self.key & 0xffffffff, self.key >> 32]
        for _ in range(10):
            a, b = 0xd2511f53 * c[0], 0xcd9e8d57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff]
            k = [(k[0] + 0x9e3779b9) & 0xffffffff, (k[1] + 0xbb67ae85) & 0xffffffff]
        at = self.drawn % 2 * 2
        self.drawn += 1
        return c[at + 1] << 32 | c[at]

    def below(self, n):
        while True:
            product = self.bits() * n
            if product & MASK >= (1 << 64) % n:
                return product >> 64


def order(n, seed, epoch):
    random, out = Random(seed, epoch | 1 << 31, 0), list(range(n))
    for i in range(n - 1, 0, -1):
        k = random.below(i + 1)
        out[i], out[k] = out[k], out[i]
    return out


# ---- pictures -------------------------------------------------------------------------------------


def read(folder, prefix):
    def idx(name, header):
        return numpy.frombuffer(gzip.decompress((pathlib.Path(folder) / name).read_bytes()), "u1", offset=header)
    images = idx(f"{prefix}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
    return numpy.pad(images, ((0, 0), (2, 2), (2, 2))), idx(f"{prefix}-labels-idx1-ubyte.gz", 8)


def moved(image, index):
    random = Random(SEED, 0, index)
    down, right = random.below(9), random.below(9)
    return numpy.pad(image, 4)[down:down + 32, right:right + 32]


def prepared(images, side):
    x = torch.from_numpy(numpy.stack(images).astype("f4"))[:, None].expand(-1, 3, -1, -1)
    x = (x - numpy.float32(255 * 0.1001)) * numpy.float32(1 / (255 * 0.2752))
    return x if side == 32 else F.interpolate(x, (side, side), mode="bilinear", align_corners=False)


# ---- the network ----------------------------------------------------------------------------------


class Block(torch.nn.Module):
    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(n_out)
        self.conv2 = torch.nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(n_out)
        self.downsample = torch.nn.Sequential()
        if stride != 1 or n_in != n_out:
            self.downsample = torch.nn.Sequential(torch.nn.Conv2d(n_in, n_out, 1, stride, bias=False),
                                                  torch.nn.BatchNorm2d(n_out))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.downsample(x))


class ResNet(torch.nn.Module):
    def __init__(self, width, large):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, width, 7 if large else 3, 2 if large else 1, 3 if large else 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(width)
        self.large, n_in = large, width
        for i in range(4):
            n_out = width << i
            setattr(self, f"layer{i + 1}", torch.nn.Sequential(Block(n_in, n_out, 2 if i else 1), Block(n_out, n_out, 1)))
            n_in = n_out
        self.fc = torch.nn.Linear(n_in, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        if self.large:
            x = F.max_pool2d(x, 3, 2, 1)
        for i in range(4):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


# ---- both side by side ----------------------------------------------------------------------------


def start(resnet, folder, options):
    with tempfile.TemporaryDirectory() as there:
        file = pathlib.Path(there) / "start.safetensors"
        subprocess.run([resnet, "--data", folder, *map(str, [*COMMON, *options]), "--steps", "0", "--tested", "1", "--save",
                        file], check=True, capture_output=True)
        return safetensors.torch.load_file(file)


def print_logits(name, when, model, test, side):
    model.eval()
    with torch.no_grad():
        logits = model(prepared(list(test[0][:N_LOGITS]), side))
    model.train()
    for row in logits:
        print(name, when, *(f"{x:.9g}" for x in row))


def run(resnet, folder, name, options, side=32, smoothing=0.0):
    model = ResNet(4, name == "imagenet")
    model.load_state_dict(start(resnet, folder, options))  # strict: the same names and shapes
    train, test = read(folder, "train"), read(folder, "t10k")
    print_logits(name, "start", model, test, side)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    places = order(len(train[0]), SEED, 0)
    for step in range(STEPS):
        which = places[step * BATCH:(step + 1) * BATCH]
        labels = torch.from_numpy(train[1][which].astype("i8"))
        images = prepared([moved(train[0][i], i) for i in which], side)
        loss = F.cross_entropy(model(images), labels, label_smoothing=smoothing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        print(name, "loss", f"{loss.item():.9g}")
    print_logits(name, "trained", model, test, side)


def compare_torchvision(resnet, folder):
    """Weights of torchvision's own network, with statistics that are not those of the start."""
    import torchvision
    torch.manual_seed(0)
    model = torchvision.models.resnet18()
    model.train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(4, 3, 64, 64))
    model.eval()
    with tempfile.TemporaryDirectory() as there:
        file = pathlib.Path(there) / "torchvision.safetensors"
        safetensors.torch.save_file(model.state_dict(), file)
        out = subprocess.run([resnet, "--data", folder, "--load", file, "--eval", "--side", "224", "--logits", "4"],
                             check=True, capture_output=True, text=True).stdout
    ours = torch.tensor([[float(x) for x in line.split()] for line in out.splitlines()])
    with torch.no_grad():
        theirs = model(prepared(list(read(folder, "t10k")[0][:4]), 224))
    print("torchvision", torchvision.__version__, tuple(ours.shape), "largest difference",
          f"{(ours - theirs).abs().max().item():.3g}", "of", f"{theirs.abs().max().item():.3g}")


def main(resnet, folder, *words):
    torch.set_num_threads(1)
    if words == ("--torchvision",):
        compare_torchvision(resnet, folder)
        return
    print(f"# tests/resnet/reference.py, PyTorch {torch.__version__}")
    for name, options, more in RUNS:
        run(resnet, folder, name, options, **more)


if __name__ == "__main__":
    main(*sys.argv[1:])
