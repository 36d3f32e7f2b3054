#!/usr/bin/env python3
"""Calls from Python, beside PyTorch's in the same process: PYTHON-WITH-TORCH bench/python.py [BUILD]

Tensors of one element (four where a view needs them), one thread. Both sides in turns, medians of the rounds.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
sys.path.insert(0, str(BUILD / "python"))
import tenon  # noqa: E402
import torch  # noqa: E402
import turns  # noqa: E402


def calls(m):
    """{row: a function that does it once}, of either module."""
    a, b, four, leaf = m.ones(1), m.ones(1), m.ones(4), m.ones(1, requires_grad=True)
    return {
        "a + b": lambda: a + b,
        "a.add(b)": lambda: a.add(b),
        "a + 1": lambda: a + 1,
        "add(a, b, alpha=2)": lambda: m.add(a, b, alpha=2),
        "leaf * leaf, recorded": lambda: leaf * leaf,
        "a.sum()": lambda: a.sum(),
        "four.view(2, 2)": lambda: four.view(2, 2),
        "four[1]": lambda: four[1],
        "empty(1)": lambda: m.empty(1),
        "(leaf * leaf).backward()": lambda: (leaf * leaf).backward(),
    }


def main():
    torch.set_num_threads(1)
    tenon.set_num_threads(1)
    turns.compare(calls(tenon), calls(torch), ("tenon", "PyTorch"), 20000,
                  f"tenon {tenon.__version__}, PyTorch {torch.__version__}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
