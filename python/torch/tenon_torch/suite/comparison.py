"""One test, and its verdict."""

import dataclasses
import re

import torch

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8,
          torch.bool)
SAMPLES = 8
# (atol, rtol) of what both sides round, each in its own order
WIDER = {torch.float16: (1e-2, 1e-2), torch.bfloat16: (3e-2, 2e-2)}
# and where layers or steps add that up
ADDED_UP = WIDER | {torch.float32: (5e-5, 1e-5)}
ABSENT = (re.compile(r"Could not run '(aten::\S+)'"), re.compile(r"(aten::\S+) is not there on Tenon's devices"),
          re.compile(r"(Tenon has no dtype \S+)"), re.compile(r"(a complex number is no argument)"),
          re.compile(r"(not defined for \w+), which is stored, moved and converted only"), re.compile(r"becomes \w+, and (complex tensors have none)"))


class Refused(Exception):
    """PyTorch's own CPU does not do it."""


@dataclasses.dataclass
class Test:
    """`samples(limit)` yields functions of a device, which compare what it does with PyTorch's CPU, and raise."""

    name: str
    dtype: torch.dtype
    samples: object

    @property
    def dtype_name(self):
        return str(self.dtype).removeprefix("torch.")

    def run(self, device, limit=SAMPLES):
        """passed, absent (needs an operator or a dtype that Tenon's table has not), failed, or none: no sample ran; and why."""
        torch.manual_seed(0)
        ran = False
        try:
            for sample in self.samples(limit):
                try:
                    sample(device)
                    ran = True
                except Refused:
                    continue
        except Exception as e:  # noqa: BLE001  (the verdict is what it is)
            text = " ".join(f"{type(e).__name__}: {e}".split())
            for absent in ABSENT:
                if found := absent.search(text):
                    return "absent", found.group(1)
            return "failed", text[:400]
        return ("passed" if ran else "none"), ""


def on_cpu(function, *args, **kwargs):
    """What PyTorch's CPU answers: the reference."""
    try:
        return function(*args, **kwargs)
    except Exception as e:  # noqa: BLE001  (whatever it is that PyTorch's CPU does not do)
        raise Refused from e


def tensors_of(value):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def moved(value, device):
    def move(x):
        if isinstance(x, torch.Tensor):
            return x.detach().to(device).requires_grad_(x.requires_grad)
        if isinstance(x, torch.device):
            return torch.device(device)
        return device if isinstance(x, str) and x == "cpu" else x

    return torch.utils._pytree.tree_map(move, value)


def tolerance(info, dtype, otherwise=WIDER):
    """What PyTorch's own tests of it allow."""
    for decorator in info.decorators:
        for override in getattr(decorator, "decorators", [decorator]):
            found = getattr(override, "d", None)
            if isinstance(found, dict) and dtype in found:  # toleranceOverride, or precisionOverride, which knows atol alone
                return tuple(found[dtype]) if isinstance(found[dtype], tuple) else (found[dtype], otherwise.get(dtype, (0, 1e-5))[1])
    return otherwise.get(dtype, (None, None))


def compare(got, wanted, tolerances=(None, None), draws=False):
    """Shapes and dtypes alone where numbers were drawn."""
    got, wanted = tensors_of(got), tensors_of(wanted)
    if len(got) != len(wanted):
        raise AssertionError(f"{len(got)} tensors, {len(wanted)} wanted")
    for a, b in zip(got, wanted):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise AssertionError(f"{a.dtype} {tuple(a.shape)}, {b.dtype} {tuple(b.shape)} wanted")
        if not draws:
            atol, rtol = tolerances
            torch.testing.assert_close(a.detach().cpu(), b.detach(), atol=atol, rtol=rtol, equal_nan=True)


def gradients(result, inputs):
    """Of the sum of all results by every input, None where there is none."""
    outputs = [t for t in tensors_of(result) if t.requires_grad]
    inputs = [t for t in tensors_of(inputs) if t.requires_grad]
    if not outputs or not inputs:
        return []
    total = sum(t.to(torch.float64 if t.dtype == torch.float64 else torch.float32).sum() for t in outputs)
    return [g for g in torch.autograd.grad(total, inputs, allow_unused=True) if g is not None]
