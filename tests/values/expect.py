"""What a call should give. Results that Tenon's table promises exactly are PyTorch's own. The others are
computed by PyTorch in f64 from the same inputs, so that PyTorch's rounding in f32, f16 and bf16 is no part of the
expectation; beside each element go two scales:

  scale  what the bound of the table is relative to (plugin-sdk/conformance/worker/core/outcome.h): M, the operator on
         magnitudes, or S, how far the result moves for inputs that move a little
  error  how far PyTorch's own result in that dtype is from the one in f64. Where that is more than the bound,
         twice as much is allowed: nobody has to be better than PyTorch.
"""

import math
import struct
from dataclasses import dataclass

import torch

import rules
import torch_calls
from calls import Dtype
from inputs import DTYPES, FLOATS, FORMS, NAMES, Tensor, hashed, raw, store, values

DISTURBANCE = 2.0**-20
ANYTHING, NOTHING = 32767, -32768  # of a code: any value passes; zero
UPSTREAM_SEED = 1  # of the gradient of a call's first result; the others' follow


@dataclass
class Result:
    """A tensor that is expected; `wide` in f64 with scale and error where it is not exact."""

    native: torch.Tensor
    wide: torch.Tensor = None
    scale: torch.Tensor = None
    error: torch.Tensor = None  # where it is known otherwise than from `native`
    elementwise: bool = False

    @property
    def dtype(self):
        return NAMES[self.native.dtype]

    def __str__(self):
        how = "" if self.wide is None else "~" if self.elementwise else "~largest"
        return f"{self.dtype}[{','.join(map(str, self.native.shape))}]{how}"

    def blob(self):
        if self.wide is None:
            return raw(self.native)
        native = self.native.double()
        stored = self.wide.to(torch.float64 if self.dtype == "f64" else torch.float32)
        either = (native.isfinite() != narrowed(self.wide, self.native.dtype).isfinite()) | (native.isnan() != self.wide.isnan())
        error = (native - self.wide).abs() if self.error is None else self.error
        if self.error is not None:
            either |= error.isinf()
        error = torch.where(error.isfinite(), error, 0)
        errors = [ANYTHING if e else code(x) for e, x in zip(either.flatten().tolist(), error.flatten().tolist())]
        scales = [code(x) for x in self.scale.flatten().tolist()]
        return raw(stored) + struct.pack(f"<{len(scales)}h", *scales) + struct.pack(f"<{len(errors)}h", *errors)


def narrowed(wide, dtype):
    return wide.to(dtype).double()


def code(x):
    """A magnitude as half its binary exponents, rounded up."""
    if x == 0 or math.isnan(x):
        return NOTHING
    return 2050 if math.isinf(x) else math.ceil(2 * math.log2(x))


def flat(results):
    """What a call returned, as a list of tensors."""
    if isinstance(results, torch.Tensor):
        return [results]
    return [t for r in results for t in flat(r)]


def upstream(i, dtype, shape):
    """The gradient of result i that a backward pass begins with."""
    n = math.prod(shape)
    return store(values("any", dtype, UPSTREAM_SEED + i, n), tuple(shape), dtype)


class Evaluator:
    """One call, made as often and in as many ways as its expectation needs."""

    def __init__(self, call, section_pointwise):
        self.call = call
        self.op = call.op
        self.entry = call.op.entry
        self.function = torch_calls.function_of(call.op.schema)
        self.pointwise = section_pointwise
        self.tolerance = self.entry["tolerance"]
        self.cancels = "cancels" in self.entry.get("check", [])

    def arguments(self, change):
        """The arguments as PyTorch's, tensors changed by change(tensor, input)."""
        def one(a):
            if isinstance(a, Tensor):
                return change(a.tensor(), a)
            if isinstance(a, Dtype):
                return DTYPES[a]
            return list(a) if isinstance(a, tuple) else [one(x) for x in a] if isinstance(a, list) else a
        return [one(a) for a in self.call.complete()]

    def run(self, args):
        return flat(self.function(*args))

    def differentiated(self, args, upstream):
        """The results, and gradients by the floating tensors."""
        leaves = []

        def mark(a):
            if isinstance(a, torch.Tensor) and a.is_floating_point():
                leaves.append(a.requires_grad_())
            for x in a if isinstance(a, list) else []:
                mark(x)
        for a in args:
            mark(a)
        roots = [r for r in self.run(args) if r.requires_grad]
        if not roots:
            return None
        grads = [upstream(i, r) for i, r in enumerate(roots)]
        return torch.autograd.grad(roots, leaves, grads, allow_unused=True)

    # ---- the three ways ----

    def to_wide(self, dtype):
        """Floating tensors in f64; whole ones too where they are numbers of a floating result."""
        def change(t, given):
            if given.is_float:
                return t.double()
            if dtype in FLOATS and given.kind != "mask" and not given.kind.startswith("idx"):
                return t.to(DTYPES[dtype]).double()
            return t
        return change

    def with_wide_dtype(self, args):
        for i, a in enumerate(self.op.schema.args):
            if a.kind == "dtype":
                args[i] = torch.float64
        return args

    def magnitudes(self, args):
        """For a bound: the same on magnitudes, factors too."""
        out = []
        for a, given in zip(self.op.schema.args, args):
            if isinstance(given, torch.Tensor) and given.is_floating_point():
                given = given.abs()
            elif isinstance(given, list) and given and isinstance(given[0], torch.Tensor):
                given = [g.abs() for g in given]
            elif a.name in ("alpha", "beta", "value", "weight", "other") and isinstance(given, (int, float)):
                given = abs(given)
            out.append(given)
        return out

    def disturbed(self, change, attempt):
        """Inputs moved by DISTURBANCE of themselves, up or down."""
        def moved(t, given):
            t = change(t, given)
            if not t.is_floating_point():
                return t
            signs = torch.tensor([1.0 if hashed(given.seed + 1000 * attempt, i) >> 20 & 1 else -1.0 for i in range(t.numel())],
                                 dtype=torch.float64).reshape(t.shape)
            return t * (1 + DISTURBANCE * signs)
        return moved

    def scales(self, wide, compute, change):
        """M or S for each result; `compute` maps arguments to results."""
        sensitive = self.tolerance == "composite" and not self.cancels
        out = [torch.zeros_like(w) for w in wide]
        if sensitive:
            for attempt in range(3):
                again = compute(self.with_wide_dtype(self.arguments(self.disturbed(change, attempt))), attempt)
                for o, w, m in zip(out, wide, again):
                    if m.shape == w.shape:
                        o.copy_(torch.maximum(o, ((m - w).abs() / DISTURBANCE).nan_to_num(0, 0, 0)))
            return out
        given = self.with_wide_dtype(self.arguments(change))
        again = compute(self.magnitudes(given), None)
        for o, w, m in zip(out, wide, again):
            if m.shape == w.shape:
                o.copy_(m.abs().nan_to_num(0, 0, 0))
            if self.cancels:
                for t in given:
                    if isinstance(t, torch.Tensor) and t.is_floating_point():
                        size = t.abs().nan_to_num(0, 0, 0)
                        try:
                            size = size.expand(o.shape) if self.pointwise else size.max().expand(o.shape)
                        except RuntimeError:
                            size = size.max().expand(o.shape)
                        o.copy_(torch.maximum(o, size))
        return out

    # ---- results ----

    def results(self):
        native = self.run(self.arguments(lambda t, given: t))
        if self.op.form == "inplace" or self.op.native_inplace:
            native = native if not self.op.schema.rets else native[:1]
        out = [Result(t.detach()) for t in native]
        if not any(r.dtype in FLOATS for r in out):
            return out
        if self.tolerance == "exact":
            return self.halves_rounded(out)
        change = self.to_wide(out[0].dtype)
        compute = lambda args, attempt: self.run(args)
        wide = [t.detach() for t in compute(self.with_wide_dtype(self.arguments(change)), None)]
        scales = self.scales(wide, compute, change)
        for r, w, s in zip(out, wide, scales):
            if r.dtype in FLOATS and w.is_floating_point():
                r.wide, r.scale, r.elementwise = w, s, self.pointwise
        self.add_errors(out, lambda: self.run(self.in_f32()))
        return out

    def halves_rounded(self, out):
        """PyTorch rounds halves within an operator: what is exact is exact in f64."""
        if self.op.form != "functional" or not any(r.dtype in ("f16", "bf16") for r in out):
            return out
        args = self.arguments(self.to_wide(out[0].dtype))
        for r, w in zip(out, self.run(self.with_wide_dtype(args))):
            if r.dtype in ("f16", "bf16"):
                r.native = w.detach().to(r.native.dtype)
        return out

    def in_f32(self):
        return self.arguments(lambda t, given: t.float() if given.dtype == "f64" else t)

    @staticmethod
    def lost_below_normal(r):
        """Errors of a gradient. What is below the normal numbers came of steps that may have lost their digits there."""
        error = (r.native.double() - r.wide).abs()
        normal = 2.0 ** FORMS[r.dtype][2]
        return torch.where((r.wide != 0) & (r.wide.abs() < normal), torch.maximum(error, torch.tensor(normal)), error)

    @staticmethod
    def add_errors(results, in_f32):
        """f64 has nothing wider to be compared with: PyTorch is taken to be as bad in f64 as in f32, in ulps; beside
        narrower tensors it is what it is."""
        if not any(r.dtype == "f64" and r.wide is not None for r in results):
            return
        for r, narrow in zip(results, in_f32()):
            if r.dtype == "f64" and r.wide is not None and narrow is not None:
                error = (narrow.detach().double() - r.wide).abs() * 2.0**-29
                error = torch.maximum(error.nan_to_num(0, 0, 0), (r.native.double() - r.wide).abs().nan_to_num(0, 0, 0))
                r.error = error if r.error is None else torch.maximum(error, r.error)

    def gradients(self):
        """None for an input that has none."""
        def narrow_upstream(i, like):
            return upstream(i, NAMES[like.dtype], like.shape)
        native = self.differentiated(self.arguments(lambda t, given: t), narrow_upstream)
        if native is None:
            return None
        if all(g is None for g in native):
            return None
        first = self.run(self.arguments(lambda t, given: t))
        shape = tuple(first[0].shape)
        roots = [NAMES[r.dtype] for r in first if r.is_floating_point()]

        def wide_upstream_f32(i, like):
            return upstream(i, roots[i], like.shape).to(like.dtype)

        def wide_upstream(factor):
            def make(i, like):
                return upstream(i, roots[i], like.shape).double() * (1 + factor)
            return make
        change = self.to_wide(roots[0])
        wide = self.differentiated(self.with_wide_dtype(self.arguments(change)), wide_upstream(0))
        leaves = [t for t in self.call.tensors if t.is_float]
        cast = [t for t in self.call.tensors if t.is_float or self.casts(t, change)]
        wide = [w for t, w in zip(cast, wide) if t.is_float]
        scales = [torch.zeros_like(w) if w is not None else None for w in wide]
        for attempt in range(3):
            args = self.with_wide_dtype(self.arguments(self.disturbed(change, attempt)))
            again = self.differentiated(args, wide_upstream(DISTURBANCE * (attempt - 1)))
            again = [g for t, g in zip(cast, again) if t.is_float]
            for s, w, g in zip(scales, wide, again):
                if g is not None and w is not None:
                    s.copy_(torch.maximum(s, ((g - w).abs() / DISTURBANCE).nan_to_num(0, 0, 0)))
        out = []
        for t, n, w, s in zip(leaves, native, wide, scales):
            if n is None or w is None:
                n = torch.zeros(t.sizes, dtype=DTYPES[t.dtype])
                w = s = torch.zeros(t.sizes, dtype=torch.float64)
            own = self.pointwise and tuple(t.sizes) == shape
            if self.pointwise and t.dtype == "f64":  # of f64 nothing better is known than the terms
                size = t.tensor().abs().nan_to_num(0, 0, 0)
                s = torch.maximum(s, size if own or not size.numel() else size.max())
            out.append(Result(n, w, s, None, own))
        for r in out:
            r.error = self.lost_below_normal(r)
        self.add_errors(out, lambda: self.differentiated(self.in_f32(), wide_upstream_f32))
        for t, r in zip(leaves, out):
            if t.dtype == "f64" and r.elementwise:  # PyTorch's steps may overflow where others do not
                at_the_top = t.tensor().isfinite() & (t.tensor().abs() > 2.0**1000)
                r.error = torch.where(r.wide.isinf() & at_the_top, math.inf, r.error)
        return out

    @staticmethod
    def casts(t, change):
        return change(t.tensor(), t).is_floating_point()


def expected(call, pointwise):
    """(results, gradients or None), after rules.py has had its say; an exception where PyTorch refuses."""
    e = Evaluator(call, pointwise)
    try:
        if rules.traps(call):
            raise ZeroDivisionError("it would be the last call of the process")
        results = e.results()
    except Exception:
        results = rules.instead(call)
        if results is None:
            raise
        results = [Result(r) for r in results]
    gradients = None
    if call.gradient:
        try:
            gradients = e.gradients()
        except (RuntimeError, NotImplementedError, ValueError) as error:
            call.lacks_gradient = str(error)
    return rules.applied(call, results, gradients)
