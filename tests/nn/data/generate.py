"""Writes the files of tests/nn/data with Python's library: generate.py FOLDER (safetensors 0.8, numpy, ml_dtypes)."""
import sys, numpy as np
from safetensors.numpy import save_file
import ml_dtypes
out = sys.argv[1]
n = np.arange(6)
every = {
 "f64": (n/4-1).astype(np.float64).reshape(2,3), "f32": (n/4-1).astype(np.float32).reshape(3,2),
 "f16": (n/4-1).astype(np.float16), "bf16": (n/4-1).astype(ml_dtypes.bfloat16),
 "i64": n.astype(np.int64)-3, "i32": n.astype(np.int32)-3, "i16": n.astype(np.int16)-3, "i8": n.astype(np.int8)-3,
 "u8": (n+250).astype(np.uint8), "bool": (n%2==1),
 "scalar": np.array(2.5, np.float32), "empty": np.zeros((0,3), np.float32), "blocks.0.wä\"ght": np.ones(1,np.int8)}
save_file(every, out+"/every_dtype.safetensors", {"format":"np"})
save_file({"a": np.array([1,2,3], np.uint32), "b": np.array([1.5], np.float32)}, out+"/uint32.safetensors")
