#!/usr/bin/env python3
"""Trains a small CNN on MNIST in plain PyTorch, on a device of Tenon.

usage: mnist.py [--device tenon:0] [--data FOLDER] [--epochs N] [--images N]

TENON_DEVICE names the device that is tenon:0; `--device cpu` is PyTorch's own CPU, for comparison.
"""

import argparse
import pathlib
import time

import tenon
import torch
from torch import nn
from torch.nn import functional as F

import tenon_torch

DATA = pathlib.Path(__file__).resolve().parents[1] / "mnist" / "data"


def read_idx(path):
    return torch.from_numpy(tenon.read_idx(path, "cpu:0").numpy())


def load(folder, name, device, limit):
    images = read_idx(folder / f"{name}-images-idx3-ubyte.gz")[:limit].to(device)
    labels = read_idx(folder / f"{name}-labels-idx1-ubyte.gz")[:limit].to(device)
    return images[:, None].float() / 255, labels.long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.head = nn.Conv2d(8, 16, 3, padding=1), nn.Linear(16 * 7 * 7, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        return self.head(F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1))


def main():
    options = argparse.ArgumentParser(description="Trains a small CNN on MNIST with PyTorch.")
    options.add_argument("--device", default=f"{tenon_torch.name}:0")
    options.add_argument("--data", type=pathlib.Path, default=DATA, help="where the four IDX files are")
    options.add_argument("--epochs", type=int, default=1)
    options.add_argument("--images", type=int, default=None, help="of the training set; all without it")
    given = options.parse_args()

    torch.manual_seed(1)
    images, labels = load(given.data, "train", given.device, given.images)
    test_images, test_labels = load(given.data, "t10k", given.device, None)
    model = Net().to(given.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    what = "PyTorch's CPU" if given.device == "cpu" else tenon_torch.devices()[torch.device(given.device).index or 0]
    print(f"{given.device} ({what}), {len(images)} images")
    for epoch in range(given.epochs):
        start, total = time.perf_counter(), 0.0
        for batch in torch.randperm(len(images)).to(given.device).split(64):
            loss = F.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        with torch.no_grad():
            model.eval()
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in zip(test_images.split(1000), test_labels.split(1000)))
            model.train()
        print(f"epoch {epoch + 1}: loss {total / len(images):.4f}, test accuracy {right / len(test_images):.4f}, "
              f"{time.perf_counter() - start:.1f} s")
    print(f"operators that ran on the CPU in the device's place: {tenon_torch.fallback_count()}")


if __name__ == "__main__":
    main()
