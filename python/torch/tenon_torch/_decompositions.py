"""Operators that Tenon's table does not have, by PyTorch's own decompositions in others.

They run on the device like everything else; only operators with neither a kernel here nor one that PyTorch composes are taken, with their
in-place and out forms.
"""

import threading

import torch
from torch._decomp import decomposition_table
from torch._prims_common.wrappers import _maybe_resize_out, _safe_copy_out

from . import _formulas, _recurrent

registered = []


class _Active(threading.local):
    def __init__(self):
        self.names = set()


_active = _Active()
_library = None


def _has(name, *keys):
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)


def _is_missing(name):
    return not _has(name, "PrivateUse1", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


def _outputs(schema):
    return [a for a in schema.arguments if a.is_out]


def _writes(schema):
    return any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)


def _out_form(overload, function):
    names = [a.name for a in _outputs(overload._schema)]

    def out_form(*args, **kwargs):
        outputs = [kwargs.pop(name) for name in names]
        results = function(*args, **kwargs)
        if results is NotImplemented:
            return results
        results = results if isinstance(results, (tuple, list)) else (results,)
        for output, result in zip(outputs, results):
            _maybe_resize_out(output, result.shape)
            _safe_copy_out(copy_from=result, copy_to=output)
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    return out_form


def _functional_of(overload):
    """The functional overload with the same inputs."""
    wanted = [(a.name, str(a.type)) for a in overload._schema.arguments if not a.is_out]
    packet = overload.overloadpacket
    for other in packet.overloads():
        candidate = getattr(packet, other)
        if not _writes(candidate._schema) and [(a.name, str(a.type)) for a in candidate._schema.arguments] == wanted:
            return candidate
    return None


def _guarded(name, function):
    """Some decompositions end in the operator itself, which PyTorch expects of a backend, or decline with NotImplemented."""

    def decomposition(*args, **kwargs):
        if name in _active.names:
            raise NotImplementedError(f"{name} is not there on Tenon's devices: PyTorch's decomposition of it needs a kernel of it")
        _active.names.add(name)
        try:
            result = function(*args, **kwargs)
        finally:
            _active.names.discard(name)
        if result is NotImplemented:
            raise NotImplementedError(f"{name} is not there on Tenon's devices: PyTorch's decomposition of it declines these arguments")
        return result

    return decomposition


def _register(name, function):
    _library.impl(name, _guarded(name, function))
    registered.append(name.removeprefix("aten::"))


def register():
    global _library
    _library = torch.library.Library("aten", "IMPL", "PrivateUse1")
    for name, function in (_recurrent.OPERATORS | _formulas.OPERATORS).items():
        if not _has(f"aten::{name}", "PrivateUse1"):
            _register(f"aten::{name}", function)
    for overload, function in decomposition_table.items():
        if not isinstance(overload, torch._ops.OpOverload) or overload.namespace != "aten":
            continue
        schema = overload._schema
        if _outputs(schema):
            continue  # made of the functional one below
        full = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        if _is_missing(full):
            _register(full, function)
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::") or not _is_missing(full) or not _has(full, "CPU"):
            continue
        base, _, overload_name = full.removeprefix("aten::").partition(".")
        overload = getattr(getattr(torch.ops.aten, base), overload_name or "default")
        if not _outputs(overload._schema):
            continue
        functional = _functional_of(overload)
        if functional is not None and functional in decomposition_table:
            _register(full, _out_form(overload, decomposition_table[functional]))
