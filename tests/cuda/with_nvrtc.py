"""Runs a program or a script of ours where NVRTC works, and skips where not: with_nvrtc.py LIBRARY PROGRAM..."""

import ctypes
import os
import sys

SKIPPED = 77


def works(path: str) -> bool:
    major, minor = ctypes.c_int(), ctypes.c_int()
    try:
        return ctypes.CDLL(path).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
    except OSError:
        return False


if __name__ == "__main__":
    if not works(sys.argv[1]):
        print("skipped: there is no NVRTC; it is a part of the CUDA Toolkit")
        sys.exit(SKIPPED)
    command = [sys.executable, *sys.argv[2:]] if sys.argv[2].endswith(".py") else sys.argv[2:]
    os.execv(command[0], command)
