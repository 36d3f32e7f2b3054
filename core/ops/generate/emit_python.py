"""What the Python package has of each operator: methods.inc, its methods, and _core.pyi, its types."""

import keyword

TYPES = {
    "Tensor": "Tensor", "Tensor?": "Tensor | None", "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]", "int": "int", "int?": "int | None", "int[]": "Sequence[int]",
    "int[]?": "Sequence[int] | None", "float": "float", "bool": "builtins.bool", "Scalar": "Number",
    "Scalar?": "Number | None", "ScalarType": "DType", "ScalarType?": "DType | None", "Device": "Device",
    "Device?": "Device | None", "str": "str",
}


def packets(table):
    """{name: [operator]} in the order of the table."""
    found = {}
    for op in table.ops:
        found.setdefault(op.schema.base, []).append(op)
    return found


PROPERTIES = ("real", "imag")  # of a tensor, as PyTorch and NumPy have them


def is_method(ops):
    """Those that begin with `self`, a tensor."""
    first = ops[0].schema.args[:1]
    return ops[0].schema.base not in PROPERTIES and bool(first) and first[0].name == "self" and first[0].type == "Tensor"


def text_of(ops):
    return "\n".join(op.schema.text for op in ops) + "\n\n" + ops[0].entry["doc"]


def c_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def methods(table):
    lines = ["/* Generated from operators.toml. Do not edit. */\n"]
    for name, ops in packets(table).items():
        if is_method(ops):
            lines.append(f"TNP_METHOD({name}, {c_string(text_of(ops))})\n")
    return "".join(lines)


HEAD = '''\
"""Generated: the types of tenon._core, of operators by operators.toml, of the rest by core/ops/generate/emit_python.py."""

import builtins
from collections.abc import Sequence
from os import PathLike
from typing import Any, Optional, Union, overload

Number = Union[int, float, builtins.bool]


class dtype:
    name: str
    itemsize: int
    is_floating_point: bool
    is_complex: bool
    is_signed: bool


class device:
    type: str
    index: int
    product: str
    def __init__(self, name: Union[str, "device", None] = None) -> None: ...
    def has_dtype(self, dtype: "DType") -> builtins.bool: ...


DType = Union[dtype, str, type]
Device = Union[device, str]
Path = Union[str, bytes, "PathLike[Any]"]

float32: dtype
float64: dtype
float16: dtype
bfloat16: dtype
int8: dtype
int16: dtype
int32: dtype
int64: dtype
uint8: dtype
uint16: dtype
uint32: dtype
uint64: dtype
complex64: dtype
complex128: dtype
bool: dtype
inf: float
nan: float
pi: float
e: float


class Error(RuntimeError):
    status: str
    operator: str


class ArgumentError(Error, ValueError): ...
class DeviceError(Error, ValueError): ...
class NotFoundError(Error, LookupError): ...
class OutOfMemoryError(Error, MemoryError): ...
class UnsupportedError(Error, NotImplementedError): ...
class OutOfRangeError(Error, IndexError): ...
class FileError(Error, OSError): ...


class Stream:
    id: int
    device: device
    def __init__(self, device: Optional[Device] = None, priority: int = 0) -> None: ...
    def query(self) -> builtins.bool: ...
    def synchronize(self) -> None: ...
    def wait(self, event: "Event") -> None: ...
    def record(self, event: "Event") -> None: ...


class Event:
    def __init__(self, device: Optional[Device] = None, enable_timing: builtins.bool = False) -> None: ...
    def query(self) -> builtins.bool: ...
    def synchronize(self) -> None: ...
    def elapsed_time(self, end: "Event") -> float: ...


class Optimizer:
    lr: float
    params: tuple["Tensor", ...]
    def step(self) -> None: ...
    def zero_grad(self) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def default_device() -> device: ...
def set_default_device(device: Device) -> None: ...
def device_count(type: str) -> int: ...
def device_types() -> list[str]: ...
def promote_types(a: DType, b: DType) -> dtype: ...
def synchronize(device: Optional[Device] = None) -> None: ...
def current_stream(device: Optional[Device] = None) -> Stream: ...
def set_current_stream(stream: Stream) -> None: ...
def memory_stats(device: Optional[Device] = None) -> dict[str, int]: ...
def empty_cache(device: Optional[Device] = None) -> None: ...
def set_memory_limit(bytes: int, device: Optional[Device] = None) -> None: ...
def manual_seed(seed: int) -> None: ...
def get_rng_state(device: Optional[Device] = None) -> tuple[int, int]: ...
def set_rng_state(state: tuple[int, int], device: Optional[Device] = None) -> None: ...
def set_num_threads(n: int) -> None: ...
def get_num_threads() -> int: ...
def load_plugin(path: str) -> None: ...
def version() -> str: ...
def op_schemas() -> list[str]: ...
def tensor(data: Any, *, dtype: Optional[DType] = None, device: Optional[Device] = None,
           requires_grad: builtins.bool = False) -> "Tensor": ...
def from_bytes(data: builtins.bytes, shape: Sequence[int], dtype: DType, device: Optional[Device] = None) -> "Tensor": ...
def from_dlpack(x: Any, *, device: Optional[Device] = None, copy: Optional[builtins.bool] = None) -> "Tensor": ...
def load(path: Path, device: Optional[Device] = None) -> dict[str, "Tensor"]: ...
def save(tensors: dict[str, "Tensor"], path: Path) -> None: ...
def read_idx(path: Path, device: Optional[Device] = None) -> "Tensor": ...
def backward(tensors: Any, grad_tensors: Any = None, retain_graph: Optional[builtins.bool] = None,
             create_graph: builtins.bool = False) -> None: ...
def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: Optional[builtins.bool] = None,
         create_graph: builtins.bool = False, allow_unused: builtins.bool = False) -> tuple[Optional["Tensor"], ...]: ...
def is_capturing() -> builtins.bool: ...
def is_grad_enabled() -> builtins.bool: ...
def is_inference_mode_enabled() -> builtins.bool: ...
def clip_grad_norm_(params: Any, max_norm: float, norm_type: float = 2.0) -> "Tensor": ...

'''

TENSOR_HEAD = '''
class Tensor:
    shape: tuple[int, ...]
    ndim: int
    dtype: dtype
    device: device
    itemsize: int
    nbytes: int
    T: "Tensor"
    mT: "Tensor"
    real: "Tensor"
    imag: "Tensor"
    requires_grad: builtins.bool
    grad: Optional["Tensor"]
    is_leaf: builtins.bool
    grad_fn: Optional[str]
    def tolist(self) -> Any: ...
    def item(self) -> Union[Number, complex]: ...
    def backward(self, gradient: Optional["Tensor"] = None, retain_graph: Optional[bool] = None,
                 create_graph: builtins.bool = False) -> None: ...
    def requires_grad_(self, requires_grad: builtins.bool = True) -> "Tensor": ...
    def __getitem__(self, key: Any) -> "Tensor": ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __len__(self) -> int: ...
'''
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")


def parameter(arg):
    name = arg.name + "_" if keyword.iskeyword(arg.name) else arg.name
    kind = TYPES[arg.type]
    if arg.n_ints:
        kind = "int | " + kind
    return f"{name}: {kind}" + (" = ..." if arg.has_default else "")


def signature(op, method):
    """(self, other: Tensor, *, alpha: Number = ...) -> Tensor"""
    parts, star = [], False
    for i, arg in enumerate(op.schema.args):
        if arg.keyword and not star:
            parts.append("*")
            star = True
        parts.append("self" if method and i == 0 else parameter(arg))
    rets = [("tuple[Tensor, ...]" if r.type == "Tensor[]" else "Tensor") for r in op.schema.rets]
    result = rets[0] if len(rets) == 1 else f"tuple[{', '.join(rets)}]" if rets else "None"
    return f"({', '.join(parts)}) -> {result}: ..."


def stubs(name, ops, method, indent):
    out = []
    for op in ops:
        if len(ops) > 1:
            out.append(f"{indent}@overload\n")
        out.append(f"{indent}def {name}{signature(op, method)}\n")
    return "".join(out)


def types(table):
    found = packets(table)
    out = [HEAD, TENSOR_HEAD]
    for word in BINARY:
        out.append(f"    def __{word}__(self, other: Any) -> \"Tensor\": ...\n")
        out.append(f"    def __r{word}__(self, other: Any) -> \"Tensor\": ...\n")
    out += [stubs(name, ops, True, "    ") for name, ops in found.items() if is_method(ops)]
    out.append("\n\n")
    out += [stubs(name, ops, False, "") for name, ops in found.items()]
    return "".join(out)
