#!/usr/bin/env python3
"""Writes the files of this folder with Python's own library.

usage: generate.py FOLDER    with safetensors 0.8, numpy and ml_dtypes; no build or test runs it
"""

import pathlib
import sys

import ml_dtypes
import numpy as np
from safetensors import serialize_file
from safetensors.numpy import save_file

folder = pathlib.Path(sys.argv[1])
n = np.arange(6)
fractions = n / 4 - 1
every = {
    "f64": fractions.astype(np.float64).reshape(2, 3),
    "f32": fractions.astype(np.float32).reshape(3, 2),
    "f16": fractions.astype(np.float16),
    "bf16": fractions.astype(ml_dtypes.bfloat16),
    "i64": n.astype(np.int64) - 3,
    "i32": n.astype(np.int32) - 3,
    "i16": n.astype(np.int16) - 3,
    "i8": n.astype(np.int8) - 3,
    "u8": (n + 250).astype(np.uint8),
    "bool": n % 2 == 1,
    "scalar": np.array(2.5, np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "blocks.0.wä\"ght": np.ones(1, np.int8),
}
save_file(every, folder / "every_dtype.safetensors", {"format": "np"})
save_file({"a": np.array([1, 2, 3], np.uint32), "b": np.array([1.5], np.float32)}, folder / "uint32.safetensors")
serialize_file({"a": {"dtype": "float8_e4m3fn", "shape": [3], "data": bytes([0x38, 0x40, 0x44])},
                "b": {"dtype": "float32", "shape": [1], "data": np.array([1.5], np.float32).tobytes()}},
               str(folder / "float8.safetensors"), None)
