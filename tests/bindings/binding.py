"""A language binding over ctypes: made from `tenon ops --json` and `tenon dtypes --json` alone.

Nothing here knows an operator. Calls are boxed (tn_op_call), so that arguments are what the description
says and results are the caller's; what else makes tensors is owned too (tn_set_results_owned). A
Tensor drops its reference when Python is done with it.
"""

import ctypes
import json
import struct
import subprocess

NONE, TENSOR, TENSORS, I64, F64, BOOL, INTS, STRING = range(8)


class Cell(ctypes.Structure):  # tn_cell
    _fields_ = [("tag", ctypes.c_uint32), ("n", ctypes.c_uint32), ("value", ctypes.c_uint64)]


class Ints(ctypes.Structure):  # tn_ints
    _fields_ = [("data", ctypes.POINTER(ctypes.c_int64)), ("n", ctypes.c_int64)]


class Device(ctypes.Structure):  # tn_device
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", DLDevice), ("ndim", ctypes.c_int32), ("dtype", DLDataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", DELETER)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("dl_tensor", DLTensor)]


class Error(Exception):
    pass


# ---- capsules ------------------------------------------------------------------------------------

CAPSULES = {  # name -> (name once taken, struct, C function that takes it)
    b"dltensor_versioned": (b"used_dltensor_versioned", DLManagedTensorVersioned, "tn_from_dlpack"),
    b"dltensor": (b"used_dltensor", DLManagedTensor, "tn_from_dlpack_legacy"),
}
python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
capsule_new = python.PyCapsule_New


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def end_capsule(capsule):
    """A capsule that nobody took ends what it carries. The object is dying, so it is not wrapped."""
    is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", python))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", python))
    for name, (_, kind, _) in CAPSULES.items():
        if is_valid(capsule, name):
            managed = pointer(capsule, name)
            kind.from_address(managed).deleter(managed)


# ---- the library ---------------------------------------------------------------------------------


class Library:
    def __init__(self, path, command):
        self.c = c = ctypes.CDLL(path)
        self.command = command
        pointer, ints = ctypes.c_void_p, Ints
        for name, result, arguments in (
                ("tn_op_find", pointer, [ctypes.c_char_p]),
                ("tn_op_call", ctypes.c_int32, [pointer, ctypes.POINTER(Cell), ctypes.c_uint32, ctypes.POINTER(Cell)]),
                ("tn_free_list", None, [ctypes.POINTER(Cell)]),
                ("tn_keep", pointer, [pointer]), ("tn_drop", None, [pointer]),
                ("tn_set_results_owned", ctypes.c_int32, [ctypes.c_bool]), ("tn_scope_held", ctypes.c_uint64, []),
                ("tn_error_status", ctypes.c_int32, []), ("tn_error_message", ctypes.c_char_p, []),
                ("tn_error_operator", ctypes.c_char_p, []), ("tn_error_clear", None, []),
                ("tn_status_name", ctypes.c_char_p, [ctypes.c_int32]),
                ("tn_device_parse", Device, [ctypes.c_char_p]), ("tn_device_of", Device, [pointer]),
                ("tn_dtype_of", ctypes.c_int32, [pointer]), ("tn_sizes", ints, [pointer]), ("tn_strides", ints, [pointer]),
                ("tn_from_data", pointer, [pointer, ints, ctypes.c_int32, Device]),
                ("tn_to_host", ctypes.c_int32, [pointer, pointer, ctypes.c_uint64]),
                ("tn_from_blob", pointer, [pointer, ints, ints, ctypes.c_int32, Device, RELEASE, pointer]),
                ("tn_set_requires_grad", pointer, [pointer, ctypes.c_bool]), ("tn_grad", pointer, [pointer]),
                ("tn_backward", ctypes.c_int32, [pointer]),
                ("tn_storage_of", pointer, [pointer]), ("tn_storage_keep", pointer, [pointer]),
                ("tn_storage_drop", None, [pointer]), ("tn_storage_bytes", ctypes.c_uint64, [pointer]),
                ("tn_storage_address", pointer, [pointer]), ("tn_storage_device", Device, [pointer]),
                ("tn_from_storage", pointer, [pointer, ints, ints, ctypes.c_int64, ctypes.c_int32]),
                ("tn_to_dlpack", ctypes.c_int32, [pointer, ctypes.c_uint64, ctypes.POINTER(pointer)]),
                ("tn_to_dlpack_legacy", ctypes.c_int32, [pointer, ctypes.POINTER(pointer)]),
                ("tn_from_dlpack", pointer, [pointer, ctypes.c_int]),
                ("tn_from_dlpack_legacy", pointer, [pointer, ctypes.c_int]),
                ("tn_dlpack_device", DLDevice, [Device]), ("tn_shutdown", ctypes.c_int32, [])):
            function = getattr(c, name)
            function.restype, function.argtypes = result, arguments
        self.dtypes = {d["name"]: d for d in self.described("dtypes")}
        self.dtype_names = {d["number"]: d["name"] for d in self.dtypes.values()}
        self.check(c.tn_set_results_owned(True))
        self.ops = {op["name"]: self.operator(op) for op in self.described("ops")}

    def described(self, what):
        return json.loads(subprocess.run([self.command, what, "--json"], check=True, capture_output=True).stdout)

    def fail(self):
        status = self.c.tn_status_name(self.c.tn_error_status()).decode()
        operator, message = self.c.tn_error_operator().decode(), self.c.tn_error_message().decode()
        self.c.tn_error_clear()
        raise Error(f"{status}: {operator}: {message}")

    def check(self, status):
        return self.fail() if status else None

    def wrap(self, handle):
        return Tensor(self, handle) if handle else self.fail()

    def device(self, name):
        device = self.c.tn_device_parse(name.encode())
        return device if device.type else self.fail()

    def tensor(self, values, shape, dtype="f32", device="cpu:0"):
        data = struct.pack(f"{len(values)}{FORMATS[dtype]}", *values)
        return self.wrap(self.c.tn_from_data(data, ints_of(shape), self.dtypes[dtype]["number"], self.device(device)))

    def from_dlpack(self, other, copy=None):
        try:
            capsule = other.__dlpack__(max_version=(1, 3))
        except TypeError:  # of before 1.0
            capsule = other.__dlpack__()
        for name, (used, _, function) in CAPSULES.items():
            if python.PyCapsule_IsValid(capsule, name):
                mode = {None: 1, False: 0, True: 2}[copy]
                made = self.wrap(getattr(self.c, function)(python.PyCapsule_GetPointer(capsule, name), mode))
                python.PyCapsule_SetName(capsule, used)
                return made
        raise Error("no DLPack capsule, or one that was taken")

    # ---- operators -------------------------------------------------------------------------------

    def operator(self, op):
        """A Python function that calls the operator as its description says."""
        handle = self.c.tn_op_find(op["name"].encode())
        if not handle:
            self.fail()
        by_name = {arg["name"]: i for i, arg in enumerate(op["args"])}
        n_positional = sum(not arg["keyword_only"] for arg in op["args"])

        def call(*args, **named):
            if len(args) > n_positional:
                raise TypeError(f"{op['name']}: {len(args)} positional arguments; there are {n_positional}")
            given = dict(enumerate(args)) | {by_name[name]: value for name, value in named.items()}
            kept = []  # what the cells point to
            cells = (Cell * max(len(op["args"]), 1))()
            for i, arg in enumerate(op["args"]):
                if i not in given and "default" not in arg:
                    raise TypeError(f"{op['name']}: argument '{arg['name']}' is missing")
                cells[i] = self.cell(arg, given.get(i), kept)
            rets = (Cell * max(len(op["returns"]), 1))()
            self.check(self.c.tn_op_call(handle, cells, len(op["args"]), rets))
            results = [self.result(ret, cell, given, by_name) for ret, cell in zip(op["returns"], rets)]
            return results[0] if len(results) == 1 else tuple(results) or None

        call.description = op
        return call

    def cell(self, arg, value, kept):
        kind = arg["type"]
        if value is None:
            return Cell(NONE, 0, 0)
        if kind == "Tensor":
            return Cell(TENSOR, 0, value.handle)
        if kind in ("Tensor[]", "Tensor?[]"):
            array = (ctypes.c_void_p * max(len(value), 1))(*[t.handle if t else None for t in value])
            kept.append(array)
            return Cell(TENSORS, len(value), ctypes.addressof(array))
        if kind == "int[]" and not isinstance(value, int):
            array = (ctypes.c_int64 * max(len(value), 1))(*value)
            kept.append(array)
            return Cell(INTS, len(value), ctypes.addressof(array))
        if kind == "ScalarType":
            return Cell(I64, 0, self.dtypes[value]["number"])
        if kind == "Device":
            device = self.device(value)
            return Cell(I64, 0, device.type << 32 | device.index)
        if kind == "str":
            text = ctypes.create_string_buffer(value.encode())
            kept.append(text)
            return Cell(STRING, 0, ctypes.addressof(text))
        if isinstance(value, bool):
            return Cell(BOOL, 0, value)
        if isinstance(value, int):
            return Cell(I64, 0, value & (1 << 64) - 1)
        return Cell(F64, 0, struct.unpack("Q", struct.pack("d", value))[0])

    def result(self, ret, cell, given, by_name):
        if ret["type"] == "Tensor[]":
            array = ctypes.cast(ctypes.c_void_p(cell.value), ctypes.POINTER(ctypes.c_void_p))
            tensors = [Tensor(self, array[i]) for i in range(cell.n)]
            self.c.tn_free_list(ctypes.byref(cell))
            return tensors
        made = Tensor(self, cell.value)
        if ret["mutable"]:  # it is the argument: the same object, and the reference goes back
            written = given[by_name[ret["argument"]]]
            assert written.handle == made.handle
            return written
        return made


FORMATS = {"f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "bool": "?"}


def ints_of(values):
    if values is None:
        return Ints(None, -1)
    return Ints((ctypes.c_int64 * max(len(values), 1))(*values), len(values))


class Tensor:
    """Owns one reference."""

    def __init__(self, library, handle):
        self.library, self.handle = library, handle

    def __del__(self):
        self.library.c.tn_drop(self.handle)

    @property
    def shape(self):
        sizes = self.library.c.tn_sizes(self.handle)
        return tuple(sizes.data[: sizes.n])

    @property
    def dtype(self):
        return self.library.dtype_names[self.library.c.tn_dtype_of(self.handle)]

    def tolist(self):
        count = 1
        for size in self.shape:
            count *= size
        data = ctypes.create_string_buffer(count * self.library.dtypes[self.dtype]["bytes"] or 1)
        self.library.check(self.library.c.tn_to_host(self.handle, data, len(data) if count else 0))
        return list(struct.unpack_from(f"{count}{FORMATS[self.dtype]}", data))

    def __dlpack_device__(self):
        device = self.library.c.tn_dlpack_device(self.library.c.tn_device_of(self.handle))
        return device.device_type, device.device_id

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None, flags=0):
        managed, c = ctypes.c_void_p(), self.library.c
        if max_version and max_version[0] >= 1:
            self.library.check(c.tn_to_dlpack(self.handle, flags, ctypes.byref(managed)))
            return capsule_new(managed, b"dltensor_versioned", ctypes.cast(end_capsule, ctypes.c_void_p))
        self.library.check(c.tn_to_dlpack_legacy(self.handle, ctypes.byref(managed)))
        return capsule_new(managed, b"dltensor", ctypes.cast(end_capsule, ctypes.c_void_p))
