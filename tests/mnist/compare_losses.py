#!/usr/bin/env python3
"""The first ten losses of a model on the simulated chip are the CPU's.

usage: compare_losses.py MNIST_PROGRAM DATA_DIR MODEL
"""

import os
import re
import subprocess
import sys
import tempfile

STEPS = 10
LIMIT = 1e-5


def losses(program, data, model, device):
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run(
            [program, "--data", data, "--model", model, "--quick", "--steps-losses", str(STEPS),
             "--out", os.path.join(folder, "picture.svg")],
            env=os.environ | {"TENON_DEVICE": device}, capture_output=True, text=True, check=True)
    return [float(x) for x in re.findall(r"loss \d+ (\S+)", out.stdout)]


def main(program, data, model):
    cpu, sim = (losses(program, data, model, device) for device in ("cpu:0", "sim:0"))
    if len(cpu) != STEPS or len(sim) != STEPS:
        sys.exit(f"{model}: expected {STEPS} losses, got {len(cpu)} on the CPU and {len(sim)} on sim")
    if cpu[-1] >= cpu[0]:
        sys.exit(f"{model}: nothing was learned: {cpu}")
    worst = max(abs(a - b) for a, b in zip(cpu, sim))
    print(f"{model}: losses {cpu[0]:.6f} to {cpu[-1]:.6f}, largest difference {worst:.2g}")
    if worst > LIMIT:
        sys.exit(f"{model}: the devices differ by {worst:.2g}, more than {LIMIT:g}\n{cpu}\n{sim}")


if __name__ == "__main__":
    main(*sys.argv[1:])
