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
from torch.autograd import forward_ad

import rules
import torch_calls
from calls import Dtype
from inputs import DTYPES, FLOATS, FORMS, NAMES, Tensor, hashed, raw, tangent, upstream

DISTURBANCE = 2.0**-20
ANYTHING, NOTHING = 32767, -32768  # of a code: any value passes; zero
REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, ZeroDivisionError)  # that PyTorch raises


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
        if not self.elementwise and error.numel():  # of a sum: which element was lucky says nothing
            error = error.max().expand_as(error)
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


def flat_tensors(args):
    return [t for a in args for t in (a if isinstance(a, list) else [a]) if isinstance(t, torch.Tensor)]


class Evaluator:
    """One call, made as often and in as many ways as its expectation needs."""

    def __init__(self, call, pointwise):
        self.call, self.op, self.pointwise = call, call.op, pointwise
        self.function = torch_calls.function_of(call.op.schema)
        self.tolerance = call.op.entry["tolerance"]
        named = [v for a, v in zip(self.op.schema.args, call.args) if a.name in ("index", "indices", "offsets")]
        # no numbers to be widened
        self.places = {id(t) for v in named for t in (v if isinstance(v, list) else [v])}
        self.cancels = "cancels" in call.op.entry.get("check", [])

    # ---- ways to make the call ----

    def arguments(self, change=lambda t, given: t):
        """The arguments as PyTorch's, tensors changed by change(tensor, input)."""
        def one(a):
            if isinstance(a, Tensor):
                return change(a.tensor(), a)
            if isinstance(a, Dtype):
                return DTYPES[a]
            return list(a) if isinstance(a, tuple) else [one(x) for x in a] if isinstance(a, list) else a
        return [one(a) for a in self.call.complete()]

    def wide_arguments(self, change):
        """With f64 as the dtype that is asked for."""
        args = self.arguments(change)
        return [torch.float64 if a.kind == "dtype" else given for a, given in zip(self.op.schema.args, args)]

    def to_wide(self, dtype):
        """Floating tensors in f64; whole ones too where they are numbers of a floating result."""
        def change(t, given):
            if given.is_float:
                return t.double()
            is_number = given.kind != "mask" and not given.kind.startswith("idx") and id(given) not in self.places
            if dtype in FLOATS and is_number:
                return t.to(DTYPES[dtype]).double()
            return t
        return change

    def disturbed(self, change, attempt):
        """Inputs moved by DISTURBANCE of themselves, up or down."""
        def moved(t, given):
            t = change(t, given)
            if not t.is_floating_point():
                return t
            signs = [1.0 if hashed(given.seed + 1000 * attempt, i) >> 20 & 1 else -1.0 for i in range(t.numel())]
            return t * (1 + DISTURBANCE * torch.tensor(signs, dtype=torch.float64).reshape(t.shape))
        return moved

    def magnitudes(self, args):
        """Tensors without their signs, and factors too."""
        out = []
        for a, given in zip(self.op.schema.args, args):
            if isinstance(given, torch.Tensor) and given.is_floating_point():
                given = given.abs()
            elif isinstance(given, list) and any(isinstance(g, torch.Tensor) for g in given):
                given = [g.abs() if isinstance(g, torch.Tensor) and g.is_floating_point() else g for g in given]
            elif a.name in ("alpha", "beta", "value", "weight", "other") and isinstance(given, (int, float)):
                given = abs(given)
            out.append(given)
        return out

    def in_f32(self):
        return self.arguments(lambda t, given: t.float() if given.dtype == "f64" else t)

    def run(self, args):
        return flat(self.function(*args))

    def differentiated(self, args, upstream_of):
        """Gradients by the floating tensors, or None; upstream_of(i, result) is what the pass begins with."""
        leaves = [t.requires_grad_() for t in flat_tensors(args) if t.is_floating_point()]
        roots = [r for r in self.run(args) if r.requires_grad]
        if not roots:
            return None
        return torch.autograd.grad(roots, leaves, [upstream_of(i, r) for i, r in enumerate(roots)], allow_unused=True)

    # ---- results ----

    def results(self):
        out = [Result(t.detach()) for t in self.run(self.arguments())]
        if not any(r.dtype in FLOATS for r in out):
            return out
        change = self.to_wide(out[0].dtype)
        if self.tolerance == "exact":
            return self.halves_rounded(out, change)
        wide = [t.detach() for t in self.run(self.wide_arguments(change))]
        for r, w, s in zip(out, wide, self.scales(wide, change)):
            if r.dtype in FLOATS and w.is_floating_point():
                r.wide, r.scale, r.elementwise = w, s, self.pointwise
        self.add_errors(out, lambda: self.run(self.in_f32()))
        return out

    def halves_rounded(self, out, change):
        """PyTorch rounds halves within an operator: what is exact is exact in f64."""
        if self.op.form != "functional" or not any(r.dtype in ("f16", "bf16") for r in out):
            return out
        for r, w in zip(out, self.run(self.wide_arguments(change))):
            if r.dtype in ("f16", "bf16"):
                r.native = w.detach().to(r.native.dtype)
        return out

    def scales(self, wide, change):
        """M or S for each result."""
        if self.tolerance == "composite" and not self.cancels:
            return most_moved(wide, [self.run(self.wide_arguments(self.disturbed(change, k))) for k in range(3)])
        args = self.wide_arguments(change)
        out = [known(m.abs()) if m.shape == w.shape else torch.zeros_like(w)
               for w, m in zip(wide, self.run(self.magnitudes(args)))]
        for t in flat_tensors(args) if self.cancels else []:
            out = [torch.maximum(o, largest(t, o.shape, self.pointwise)) for o in out]
        return out

    @staticmethod
    def add_errors(results, in_f32):
        """f64 has nothing wider to be compared with: PyTorch is taken to be as bad in f64 as in f32, in ulps; beside
        narrower tensors it is what it is."""
        if not any(r.dtype == "f64" and r.wide is not None for r in results):
            return
        for r, narrow in zip(results, in_f32()):
            if r.dtype == "f64" and r.wide is not None and narrow is not None:
                scaled = known((narrow.detach().double() - r.wide).abs() * 2.0**-29)
                seen = known((r.native.double() - r.wide).abs())
                r.error = torch.maximum(torch.maximum(scaled, seen), seen if r.error is None else r.error)

    # ---- gradients ----

    def gradients(self):
        """By each floating input: zeros where it has none. None for a call without gradients."""
        native = self.differentiated(self.arguments(), lambda i, r: upstream(i, NAMES[r.dtype], r.shape))
        if native is None or all(g is None for g in native):
            return None
        results = self.run(self.arguments())
        dtypes = [NAMES[r.dtype] for r in results if r.is_floating_point()]
        change = self.to_wide(dtypes[0])
        is_given = [t.is_float for t in self.call.tensors if change(t.tensor(), t).is_floating_point()]

        def wide(change, factor=1.0):
            grads = self.differentiated(self.wide_arguments(change), lambda i, r: factor * upstream(i, dtypes[i], r.shape).double())
            return [g for g, given in zip(grads, is_given) if given]
        exact = wide(change)
        moved = [wide(self.disturbed(change, k), 1 + DISTURBANCE * (k - 1)) for k in range(3)]
        inputs = [t for t in self.call.tensors if t.is_float]
        out = [self.gradient(t, *of, results[0]) for t, *of in zip(inputs, native, exact, most_moved(exact, moved))]
        self.add_errors(out, lambda: self.differentiated(self.in_f32(), lambda i, r: upstream(i, dtypes[i], r.shape).to(r.dtype)))
        for t, r in zip(inputs, out):
            if t.dtype == "f64" and r.elementwise:  # PyTorch's steps may overflow where others do not
                at_the_top = t.tensor().isfinite() & (t.tensor().abs() > 2.0**1000)
                r.error = torch.where(r.wide.isinf() & at_the_top, math.inf, r.error)
        return out

    # ---- forward mode ----

    def moved_along(self, args, attempt=None):
        """J v of the floating results, v the tangents of the floating inputs, in an attempt moved a little; None for
        each that does not depend on them."""
        places = [i for i, t in enumerate(self.call.tensors) if t.is_float]
        tensors = flat_tensors(args)
        with forward_ad.dual_level():
            duals = {}
            for n, i in enumerate(places):
                v = tangent(n, self.call.tensors[i]).to(tensors[i].dtype)
                if attempt is not None:
                    v = self.disturbed(lambda t, given: t, attempt + 3)(v, self.call.tensors[i])
                duals[id(tensors[i])] = forward_ad.make_dual(tensors[i], v)

            def one(a):
                return [one(x) for x in a] if isinstance(a, list) else duals.get(id(a), a)
            return [forward_ad.unpack_dual(r).tangent for r in self.run([one(a) for a in args]) if r.is_floating_point()]

    def tangents(self):
        """Of each floating result: zeros where it does not depend on the inputs. None where PyTorch has no formula,
        or one that contradicts its gradients, and where dtypes are mixed or narrower than f32."""
        results = [r for r in self.run(self.arguments()) if r.is_floating_point()]
        dtypes = {t.dtype for t in self.call.tensors if t.is_float} | {NAMES[r.dtype] for r in results}
        if dtypes not in ({"f64"}, {"f32"}) or (self.op.schema.base, *dtypes) in rules.COARSE_TANGENTS:
            return None
        change = self.to_wide(*dtypes)
        try:
            native = self.moved_along(self.arguments())
            exact = self.moved_along(self.wide_arguments(change))
        except REFUSALS:
            return None
        if not self.is_transposed(change, exact):
            return None
        moved = [self.moved_along(self.wide_arguments(self.disturbed(change, k)), k) for k in range(3)]
        out = [self.slope(r, *of) for r, *of in zip(results, native, exact, most_moved(exact, moved))]
        for r, again in zip(out, self.reversed_twice(self.arguments())):
            if again is not None:  # as near as either of PyTorch's ways is near enough
                r.error = torch.maximum(r.error, (again.double() - r.wide).abs().nan_to_num(nan=math.inf))
        self.add_errors(out, lambda: self.moved_along(self.in_f32()))
        self.add_errors(out, lambda: self.reversed_twice(self.in_f32()))
        return out

    def reversed_twice(self, args):
        """J v as the derivative of u J by u along v; None for what cannot be differentiated twice."""
        leaves = [t.requires_grad_() for t in flat_tensors(args) if t.is_floating_point()]
        results = [r for r in self.run(args) if r.is_floating_point()]
        ups = [torch.ones_like(r, requires_grad=True) for r in results]
        roots = [(r, u) for r, u in zip(results, ups) if r.requires_grad]
        given = [t for t in self.call.tensors if t.is_float]
        try:
            grads = torch.autograd.grad([r for r, _ in roots], leaves, [u for _, u in roots], create_graph=True, allow_unused=True)
            along = [(g, tangent(i, t).to(g.dtype)) for i, (g, t) in enumerate(zip(grads, given)) if g is not None and g.requires_grad]
            moved = torch.autograd.grad([g for g, _ in along], ups, [v for _, v in along], allow_unused=True)
        except REFUSALS:
            return [None] * len(results)
        return [None if m is None else m.detach() for m in moved]

    def is_transposed(self, change, tangents):
        """Is u (J v) what (u J) v is?"""
        args = self.wide_arguments(change)
        leaves = [t.requires_grad_() for t in flat_tensors(args) if t.is_floating_point()]
        roots = [(r, t) for r, t in zip([r for r in self.run(args) if r.is_floating_point()], tangents) if r.requires_grad]
        ups = [upstream(i, "f64", r.shape) for i, (r, _) in enumerate(roots)]
        grads = torch.autograd.grad([r for r, _ in roots], leaves, ups, allow_unused=True)
        given = [t for t in self.call.tensors if t.is_float]
        forward = [(u * t).flatten() for u, (_, t) in zip(ups, roots) if t is not None]
        reverse = [(g * tangent(i, t)).flatten() for i, (g, t) in enumerate(zip(grads, given)) if g is not None]
        terms = [torch.cat(x) if x else torch.zeros(0, dtype=torch.float64) for x in (forward, reverse)]
        return bool((terms[0].sum() - terms[1].sum()).abs() <= 2e-14 * torch.cat(terms).abs().sum())

    def slope(self, result, native, exact, scale):
        if native is None or exact is None:
            native, exact = torch.zeros_like(result), torch.zeros(result.shape, dtype=torch.float64)
            scale = exact
        for t in flat_tensors(self.arguments()) if result.dtype == torch.float64 else []:
            scale = torch.maximum(scale, largest(t, exact.shape, self.pointwise))  # nothing better is known
        error = (native.double() - exact).abs()
        # What has no value moves nowhere; and steps may overflow where PyTorch's do not.
        nowhere = result.isnan() | (exact.abs() > torch.finfo(result.dtype).max / 8)
        return Result(native.detach(), exact.detach(), scale, torch.where(nowhere, math.inf, error).detach(), self.pointwise)

    def gradient(self, t, native, exact, scale, result):
        if native is None or exact is None:
            native, exact = torch.zeros(t.sizes, dtype=DTYPES[t.dtype]), torch.zeros(t.sizes, dtype=torch.float64)
            scale = exact
        own = self.pointwise and t.sizes == tuple(result.shape)
        if self.pointwise and t.dtype == "f64":  # nothing better is known than the terms
            scale = torch.maximum(scale, largest(t.tensor(), exact.shape, own))
        error = (native.double() - exact).abs()
        if t.dtype not in ("f16", "bf16") and result.dtype in (torch.float16, torch.bfloat16):
            # The result was rounded, and may have been saved.
            error = torch.maximum(error, torch.finfo(result.dtype).eps / 2 * (exact.abs() + scale))
        # What is below the normal numbers came of steps that may have lost their digits there.
        normal = 2.0 ** FORMS[t.dtype][2]
        error = torch.where((exact != 0) & (exact.abs() < normal), torch.maximum(error, torch.tensor(normal)), error)
        return Result(native, exact, scale, error, own)


def known(t):
    """Without what is not finite."""
    return t.nan_to_num(0, 0, 0)


def most_moved(results, moved):
    """How far results move in disturbed calls, relative to the disturbance."""
    out = [None if r is None else torch.zeros_like(r) for r in results]
    for again in moved:
        for o, r, m in zip(out, results, again):
            if o is not None and m is not None and m.shape == r.shape:
                o.copy_(torch.maximum(o, known((m - r).abs() / DISTURBANCE)))
    return out


def largest(t, shape, elementwise):
    """The magnitude of what meets in an element, or of the whole tensor."""
    if not t.is_floating_point() or not t.numel():
        return torch.zeros(shape, dtype=torch.float64)
    size = known(t.double().abs())
    fits = elementwise and torch.broadcast_shapes(t.shape, shape) == shape
    return size.expand(shape) if fits else size.max().expand(shape)


def expected(call, pointwise):
    """(results, gradients or None, tangents or None), after rules.py has had its say; an exception where PyTorch
    refuses."""
    e = Evaluator(call, pointwise)
    try:
        if rules.traps(call):
            raise ZeroDivisionError("it would be the last call of the process")
        results = e.results()
    except REFUSALS:
        results = rules.instead(call)
        if results is None:
            raise
        results = [Result(r) for r in results]
    gradients = tangents = None
    if call.gradient:
        try:
            gradients = e.gradients()
        except REFUSALS as error:
            call.lacks_gradient = str(error)
    results, gradients = rules.applied(call, results, gradients)
    if gradients is not None and not call.differs:
        tangents = e.tangents()
    return results, gradients, tangents
