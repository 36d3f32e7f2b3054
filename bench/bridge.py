#!/usr/bin/env python3
"""Calls through the bridge to PyTorch, beside PyTorch's own on its CPU in the same process: PYTHON-WITH-TORCH bench/bridge.py [BUILD]

Tensors of one element (four where a view needs them), one thread, Tenon's cpu:0. Both sides in turns, medians of the rounds.
"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
sys.path[:0] = [str(BUILD / "python"), str(BUILD / "python/torch")]
os.environ |= {"TENON_TORCH_DEVICES": "cpu:0", "TENON_PLUGIN_PATH": str(BUILD / "plugins/cpu")}
import tenon  # noqa: E402
import tenon_torch  # noqa: E402
import torch  # noqa: E402
import turns  # noqa: E402


def calls(device):
    """{row: a function that does it once}, on either device."""
    a, b, four = torch.ones(1, device=device), torch.ones(1, device=device), torch.ones(4, device=device)
    leaf = torch.ones(1, device=device, requires_grad=True)
    return {
        "a + b": lambda: a + b,
        "a.add_(b)": lambda: a.add_(b),
        "a + 1": lambda: a + 1,
        "a.relu()": lambda: a.relu(),
        "leaf * leaf, recorded": lambda: leaf * leaf,
        "a.sum()": lambda: a.sum(),
        "four.view(2, 2)": lambda: four.view(2, 2),
        "four[1]": lambda: four[1],
        "empty(1)": lambda: torch.empty(1, device=device),
        "(leaf * leaf).backward()": lambda: (leaf * leaf).backward(),
    }


def main():
    torch.set_num_threads(1)
    tenon.set_num_threads(1)
    turns.compare(calls(f"{tenon_torch.name}:0"), calls("cpu"), ("bridge", "PyTorch's CPU"), 10000,
                  f"tenon {tenon.__version__}, PyTorch {torch.__version__}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
