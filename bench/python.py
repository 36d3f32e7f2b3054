#!/usr/bin/env python3
"""Calls from Python, beside PyTorch's in the same process: PYTHON-WITH-TORCH bench/python.py [BUILD]

Tensors of one element (four where a view needs them), one thread. Both sides in turns, medians of the rounds.
"""

import pathlib
import statistics
import sys
import timeit

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
sys.path.insert(0, str(BUILD / "python"))
import tenon  # noqa: E402
import torch  # noqa: E402

ROUNDS, CALLS = 11, 20000


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
    ours, theirs = calls(tenon), calls(torch)
    print(f"tenon {tenon.__version__}, PyTorch {torch.__version__}, Python {sys.version.split()[0]}; ns a call, medians of "
          f"{ROUNDS} rounds of {CALLS}")
    for row in ours:
        times = [(timeit.timeit(ours[row], number=CALLS), timeit.timeit(theirs[row], number=CALLS)) for _ in range(ROUNDS)]
        mine, other = (statistics.median(side) / CALLS * 1e9 for side in zip(*times))
        ratio = statistics.median(b / a for a, b in times)
        print(f"{row:26} tenon {mine:8.0f}   PyTorch {other:8.0f}   ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
