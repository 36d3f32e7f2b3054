#!/usr/bin/env python3
"""Trains an MLP on MNIST from Python, on the device that TENON_DEVICE names.

usage: mnist.py [--data FOLDER] [--epochs N] [--images N]
"""

import argparse
import pathlib
import time

import tenon
from tenon import nn

DATA = pathlib.Path(__file__).resolve().parents[1] / "mnist" / "data"


def load(folder, name, device, limit):
    images = tenon.read_idx(folder / f"{name}-images-idx3-ubyte.gz", device)[:limit]
    labels = tenon.read_idx(folder / f"{name}-labels-idx1-ubyte.gz", device)[:limit]
    return images.float().flatten(1) / 255, labels.long()


def accuracy(model, images, labels):
    with tenon.no_grad():
        return (model(images).argmax(1) == labels).float().mean((0,)).item()


def main():
    options = argparse.ArgumentParser(description="Trains an MLP on MNIST.")
    options.add_argument("--data", type=pathlib.Path, default=DATA, help="where the four IDX files are")
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--images", type=int, default=None, help="of the training set; all without it")
    given = options.parse_args()

    device = tenon.default_device()
    tenon.manual_seed(1)
    images, labels = load(given.data, "train", device, given.images)
    test_images, test_labels = load(given.data, "t10k", device, None)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    optimizer = tenon.optim.AdamW(model.parameters(), lr=2e-3)
    print(f"{device} ({device.product}), {len(images)} images")
    for epoch in range(given.epochs):
        start, total = time.perf_counter(), 0.0
        order = tenon.randperm(len(images), device=device)
        for batch in order.split(64):
            loss = tenon.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1}: loss {total / len(images):.4f}, test accuracy "
              f"{accuracy(model, test_images, test_labels):.4f}, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
