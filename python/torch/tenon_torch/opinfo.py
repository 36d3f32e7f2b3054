"""PyTorch's own tests of its operators (OpInfo, from its wheel) on a device of Tenon.

    python -m tenon_torch.opinfo [--device 0] [--backward] [--expect FILE] [--log FILE] ...

For every operator and dtype, samples of PyTorch's are run on PyTorch's CPU and on the device; results, and with --backward gradients, are
compared by torch.testing. A pair of operator and dtype is

    passed    as on PyTorch's CPU
    absent    needs an operator of PyTorch's, or a dtype, that Tenon's table does not have: the text says which
    failed    anything else that differs
    none      has no sample that PyTorch's CPU runs

With --expect, a file of lines `OPERATOR DTYPE OF STATUS REASON` says which pairs do not pass, OF results, gradients or both (`*`). A pair that
does otherwise than the file says is an error, also where it passes, unless fewer samples run than it was written with. Exit code 1 then;
without --expect where anything failed.
"""

import argparse
import collections
import fnmatch
import json
import re
import sys
import time

import torch

import tenon_torch

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8,
          torch.bool)
# Numbers are drawn, or memory is not filled: shapes and dtypes are compared alone.
DRAWS = ("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "nn.functional.*dropout*",
         "nn.functional.rrelu", "nn.functional.fractional_max_pool*", "nn.functional.multi_head_attention_forward", "rand_like", "randint",
         "randint_like", "randn", "randn_like", "uniform", "empty", "empty_*", "new_empty*", "svd_lowrank", "pca_lowrank")
# Of equal elements either may be the one that is found: the first result is compared, places are not.
TIES = ("sort", "topk", "kthvalue", "mode", "median", "nanmedian")
# (atol, rtol) of what both sides round, each in its own order
WIDER = {torch.float16: (1e-2, 1e-2), torch.bfloat16: (3e-2, 2e-2)}
SAMPLES = 8
OF = ("results", "gradients")
ABSENT = (re.compile(r"Could not run '(aten::\S+)'"), re.compile(r"(aten::\S+) is not there on Tenon's devices"),
          re.compile(r"(Tenon has no dtype \S+)"), re.compile(r"(Tenon has no complex numbers)"))


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


def tolerance(op, dtype):
    """What the operator's own tests in PyTorch allow."""
    for decorator in op.decorators:
        for override in getattr(decorator, "decorators", [decorator]):
            found = getattr(override, "d", None)
            if isinstance(found, dict) and dtype in found:  # toleranceOverride, or precisionOverride, which knows atol alone
                return tuple(found[dtype]) if isinstance(found[dtype], tuple) else (found[dtype], WIDER.get(dtype, (0, 1e-5))[1])
    return WIDER.get(dtype, (None, None))


def compare(got, wanted, tolerances, draws):
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


def run_sample(op, sample, dtype, device, backward):
    """False where PyTorch's own CPU refuses the sample."""
    here = (sample.input, sample.args, sample.kwargs)
    there = moved(here, device)
    draws = any(fnmatch.fnmatch(op.name, name) for name in DRAWS) or sample.kwargs.get("dropout_p", 0) > 0
    try:
        wanted = op(here[0], *here[1], **here[2])
        wanted_gradients = gradients(wanted, here) if backward else []
    except Exception:  # noqa: BLE001  (whatever it is that PyTorch's CPU does not do)
        return False
    got = op(there[0], *there[1], **there[2])
    if op.name in TIES and not isinstance(got, torch.Tensor):
        got, wanted = got[0], wanted[0]
    compare(got, wanted, tolerance(op, dtype), draws)
    if backward:
        compare(gradients(got, there), wanted_gradients, tolerance(op, dtype), draws)
    return True


def run_pair(op, dtype, device, limit, backward):
    torch.manual_seed(0)
    ran = False
    try:
        for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=backward)):
            if i == limit:
                break
            ran |= run_sample(op, sample, dtype, device, backward)
    except Exception as e:  # noqa: BLE001  (the verdict is what it is)
        text = " ".join(f"{type(e).__name__}: {e}".split())
        for absent in ABSENT:
            if found := absent.search(text):
                return "absent", found.group(1)
        return "failed", text[:400]
    return ("passed" if ran else "none"), ""


def name_of(op):
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def pairs(options):
    from torch.testing._internal.common_methods_invocations import op_db

    chosen = [getattr(torch, d) for d in options.dtypes.split(",") if d] or DTYPES
    n = 0
    for op in op_db:
        name = name_of(op)
        if options.backward and not op.supports_autograd:
            continue
        supported = op.supported_backward_dtypes("cpu") if options.backward else op.supported_dtypes("cpu")
        for dtype in chosen:
            if dtype not in supported or (options.backward and not dtype.is_floating_point):
                continue
            n += 1
            if n % options.every == 0 and fnmatch.fnmatch(name, options.filter):
                yield op, name, dtype


def read_expected(path):
    """{(operator, dtype, "results" or "gradients"): (status, reason)}"""
    expected = {}
    for line in open(path) if path else ():
        if line.strip() and not line.startswith("#"):
            name, dtype, of, status, reason = line.split(maxsplit=4)
            for one in OF if of == "*" else (of,):
                expected[name, dtype, one] = status, reason.strip()
    return expected


def surprises_us(status, wanted, samples):
    """Is it otherwise than expected? What has no sample that runs says nothing, and what passes with few samples little."""
    return status not in (wanted, "none") and not (status == "passed" and samples < SAMPLES)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=int, default=0, help="index of the device (tenon_torch.devices())")
    parser.add_argument("--backward", action="store_true", help="gradients, too, of floating dtypes")
    parser.add_argument("--filter", default="*", help="operators of this pattern alone")
    parser.add_argument("--dtypes", default="", help="float32,int64: these alone")
    parser.add_argument("--every", type=int, default=1, help="every Nth pair alone")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="at most so many of each pair")
    parser.add_argument("--expect", help="file of what does not pass")
    parser.add_argument("--log", help="a line of JSON for each pair goes there")
    options = parser.parse_args()

    expected, surprises = read_expected(options.expect), 0
    counts, start = collections.Counter(), time.time()
    log = open(options.log, "w") if options.log else None
    for op, name, dtype in pairs(options):
        text = str(dtype).removeprefix("torch.")
        wanted, reason = expected.get((name, text, OF[options.backward]), ("passed", ""))
        status, why = run_pair(op, dtype, f"{tenon_torch.name}:{options.device}", options.samples, options.backward)
        counts[status] += 1
        if log:
            record = {"operator": name, "dtype": text, "status": status, "text": why, "reason": reason}
            print(json.dumps(record), file=log, flush=True)
        surprise = surprises_us(status, wanted, options.samples) if options.expect else status == "failed"
        if surprise:
            surprises += 1
            print(f"{name} {text}: {status}{f', {wanted} expected' if options.expect else ''}: {why}", flush=True)
    there = counts["passed"] + counts["failed"]
    print(f"{tenon_torch.devices()[options.device]}: " + ", ".join(f"{counts[s]} {s}" for s in ("passed", "failed", "absent", "none")) +
          f"; {100 * counts['passed'] / max(there, 1):.1f} % of the pairs whose operators are there; "
          f"{tenon_torch.fallback_count()} fallbacks; {time.time() - start:.0f} s")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
