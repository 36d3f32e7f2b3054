"""Saving and loading."""

import json
import os
import struct

from . import _core

# safetensors' names of dtypes (https://github.com/huggingface/safetensors, its README has the format)
_DTYPES = {"F32": _core.float32, "F64": _core.float64, "F16": _core.float16, "BF16": _core.bfloat16, "I8": _core.int8,
           "I16": _core.int16, "I32": _core.int32, "I64": _core.int64, "U8": _core.uint8, "BOOL": _core.bool}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def save(tensors, path):
    """save(tensors, path): a dict of tensors as a safetensors file, which other libraries read; whole or not at all."""
    header, parts, at = {}, [], 0
    for name in sorted(tensors):
        data = tensors[name].detach().tobytes()
        header[name] = {"dtype": _NAMES[tensors[name].dtype], "shape": list(tensors[name].shape),
                        "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for data in parts:
                file.write(data)
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def load(path, device=None):
    """load(path, device=None): the dict of tensors of a safetensors file."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(8)
        if len(head) < 8 or struct.unpack("<Q", head)[0] > size - 8:
            raise ValueError(f"{path}: is no safetensors file, or was cut short")
        n = struct.unpack("<Q", head)[0]
        try:
            header = json.loads(file.read(n))
            entries = {name: (_DTYPES[e["dtype"]], tuple(e["shape"]), *e["data_offsets"])
                       for name, e in header.items() if name != "__metadata__"}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: the header is no safetensors header: {error}") from None
        made = {}
        for name, (dtype, shape, begin, end) in entries.items():
            if not 0 <= begin <= end <= size - 8 - n:
                raise ValueError(f"{path}: the data of '{name}' lies outside of the file")
            file.seek(8 + n + begin)
            made[name] = _core.from_bytes(file.read(end - begin), shape, dtype, device)
    return made
