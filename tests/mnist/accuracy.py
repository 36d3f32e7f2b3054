#!/usr/bin/env python3
"""A model learns to read digits on a device: accuracy.py MNIST_PROGRAM DATA_DIR MODEL DEVICE LEAST.

Skips where the device is not there.
"""

import os
import re
import subprocess
import sys
import tempfile

SKIPPED = 77


def main(program, data, model, device, least):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [program, "--data", data, "--model", model, "--quick", "--out", os.path.join(folder, "picture.svg")],
            env=os.environ | {"TENON_DEVICE": device}, capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode != 0 and re.search("no OpenCL driver|there is no device|no device", said):
        print("skipped:", said.strip().splitlines()[-1])
        sys.exit(SKIPPED)
    if done.returncode != 0:
        sys.exit(f"{model} on {device}: exit status {done.returncode}\n{said}")
    found = re.findall(r"test accuracy (\S+)", said)
    print(said)
    if not found or float(found[-1]) < float(least):
        sys.exit(f"{model} on {device}: accuracy {found[-1:]}, and {least} is needed")


if __name__ == "__main__":
    main(*sys.argv[1:])
