#!/usr/bin/env python3
"""The first losses of a model on a device are the CPU's.

usage: compare_losses.py MNIST_PROGRAM DATA_DIR MODEL DEVICE STEPS
"""

import os
import re
import subprocess
import sys
import tempfile

LIMIT = 1e-5


def losses(program, data, model, device, steps):
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run(
            [program, "--data", data, "--model", model, "--quick", "--steps-losses", steps,
             "--out", os.path.join(folder, "picture.svg")],
            env=os.environ | {"TENON_DEVICE": device}, capture_output=True, text=True, check=True)
    return [float(x) for x in re.findall(r"loss \d+ (\S+)", out.stdout)]


def main(program, data, model, device, steps):
    cpu, other = (losses(program, data, model, name, steps) for name in ("cpu:0", device))
    if len(cpu) != int(steps) or len(other) != int(steps):
        sys.exit(f"{model}: expected {steps} losses, got {len(cpu)} on the CPU and {len(other)} on {device}")
    if cpu[-1] >= cpu[0]:
        sys.exit(f"{model}: nothing was learned: {cpu}")
    worst = max(abs(a - b) for a, b in zip(cpu, other))
    print(f"{model}: losses {cpu[0]:.6f} to {cpu[-1]:.6f}, largest difference {worst:.2g}")
    if worst > LIMIT:
        sys.exit(f"{model}: the devices differ by {worst:.2g}, more than {LIMIT:g}\n{cpu}\n{other}")


if __name__ == "__main__":
    main(*sys.argv[1:])
