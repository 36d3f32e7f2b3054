"""Where Tenon differs from PyTorch on purpose: the rules of docs/values.md, by name. A call that one applies to
is marked with it, and its expectation is what the page promises; or it is left out where the page promises
nothing.
"""

import math

import torch

from inputs import FLOATS, INTS, Tensor, upstream


class LeftOut(Exception):
    """A call that docs/values.md promises nothing about."""


def tensors(call):
    return [t.tensor() for t in call.tensors]


def scalar(call, name):
    return next((v for a, v in zip(call.op.schema.args, call.complete()) if a.name == name), None)


# ---- calls that PyTorch refuses ------------------------------------------------------------------


def wrapped(x, dtype):
    """Python's integers in a dtype."""
    bits, signed = torch.iinfo(dtype).bits, torch.iinfo(dtype).min < 0
    x &= (1 << bits) - 1
    return x - (1 << bits) if signed and x >> (bits - 1) else x


def whole(call, function):
    """function(a, b) for each pair of integers, in the dtype that they promote to."""
    a, b = call.complete()[:2]
    dtype = torch.result_type(*(t.tensor() if isinstance(t, Tensor) else t for t in (a, b)))
    left, a, b = call.args[0], operand(a), operand(b)
    is_lossy = call.op.form == "inplace" and not torch.can_cast(dtype, a.dtype)
    if dtype.is_floating_point or dtype == torch.bool or is_lossy:
        return None
    a, b = torch.broadcast_tensors(a.to(dtype), b.to(dtype))
    got = [wrapped(function(x, y), dtype) for x, y in zip(a.flatten().tolist(), b.flatten().tolist())]
    dtype = left.tensor().dtype if call.op.form == "inplace" else dtype
    return [torch.tensor(got, dtype=dtype).reshape(a.shape)]


def power(x, n):
    return x**n if n >= 0 else (1 if x == 1 else 0 if x != -1 else 1 if n % 2 == 0 else -1)


def truncated(x, y):
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def instead(call):
    """Results of a call that PyTorch refuses and docs/values.md defines, else None."""
    base = call.op.functional.base
    integers = all(not t.is_float for t in call.tensors)
    if not integers or base not in ("floor_divide", "remainder", "fmod", "div", "pow"):
        return None
    if base == "pow":
        call.differs = "integer-to-a-negative-power"
        return whole(call, power)
    call.differs = "integer-division-by-zero"
    if base == "div":
        mode = scalar(call, "rounding_mode")
        return whole(call, truncated if mode == "trunc" else lambda x, y: y and x // y) if mode else None
    if base == "fmod":
        return whole(call, lambda x, y: y and abs(x) % abs(y) * (1 if x > 0 else -1))
    return whole(call, lambda x, y: y and (x // y if base == "floor_divide" else x % y))


def operand(a):
    return a.tensor() if isinstance(a, Tensor) else torch.tensor(a)


def traps(call):
    """Would the most negative integer by -1 end PyTorch's process?"""
    if call.op.functional.base not in ("floor_divide", "remainder", "div") or not whole_only(call):
        return False
    a, b = call.complete()[:2]
    a, b = operand(a), operand(b)
    return a.dtype in (torch.int32, torch.int64) and bool((a == torch.iinfo(a.dtype).min).any()) and bool((b == -1).any())


# ---- calls that Tenon refuses, or promises nothing about ------------------------------------------


def whole_only(call):
    return not any(t.is_float for t in call.tensors)


def gives_bool(call, results):
    return any(r.dtype == "bool" for r in results)


def has_float(call, *names):
    return any(isinstance(scalar(call, n), float) for n in names)


def is_narrowing(call, results):
    """Does some floating number become an integer that does not hold it?"""
    for r in results:
        if r.dtype in INTS:
            bits = INTS[r.dtype]
            low, high = (0.0, 256.0) if r.dtype == "u8" else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
            for t in call.tensors:
                x = t.tensor().double()
                if t.is_float and bool((~x.isfinite() | (x.trunc() < low) | (x.trunc() >= high)).any()):
                    return True
    return False


def squares_overflow(call, results):
    """Do finite numbers have squares that are not, in the dtype that they are computed in?"""
    x = call.tensors[0].tensor().double()
    limit = torch.finfo(torch.float64 if call.tensors[0].dtype == "f64" else torch.float32).max ** 0.5
    return bool((x.isfinite() & (x.abs() > limit)).any())


def products_overflow(call, results):
    """Is there a part of the numbers whose product is none, in the dtype that it is computed in?"""
    x = known_size(call.tensors[0].tensor().double())
    limit = torch.finfo(torch.float64 if call.tensors[0].dtype == "f64" else torch.float32).max
    return bool(x.clamp(min=1).log2().sum() > math.log2(limit))


def is_beyond_quarters(call, results):
    """Is a quotient beyond a quarter of the whole numbers that its dtype has all of?"""
    bits = {"f64": 51, "f32": 22, "f16": 22, "bf16": 22}
    r = results[0]
    return r.dtype in bits and bool((known_size(r.native.double()) > 2.0 ** bits[r.dtype]).any())


def known_size(x):
    return torch.where(x.isfinite(), x.abs(), 0)


FLOATING = ("rnn_tanh_cell", "rnn_relu_cell", "rnn_relu", "embedding_dense_backward", "convolution", "convolution_backward_input", "convolution_backward_weight", "conv1d", "conv2d", "avg_pool2d",
            "avg_pool2d_backward", "max_pool2d_backward", "softmax", "log_softmax", "softmax_forward", "log_softmax_forward",
            "softmax_backward", "log_softmax_backward", "upsample_bilinear2d", "upsample_bicubic2d",
            "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_avg_pool2d_backward",
            "avg_pool1d", "avg_pool3d", "conv3d", "group_norm", "conv_transpose1d",
            "conv_transpose2d", "conv_transpose3d", "grid_sampler_2d")
NUMBERS = ("addr", "col2im", "sign", "index_add", "mm", "bmm", "matmul", "addmm", "linear", "pow", "sum", "prod", "cumsum")

# name of the rule, operators, when it applies. The calls are left out.
LEFT_OUT = [
    ("refused-of-integers", FLOATING, lambda call, results: whole_only(call)),
    ("losses-of-integers", ("l1_loss",), lambda call, results: whole_only(call)),
    ("refused-of-bool", NUMBERS, gives_bool),
    ("refused-of-bool", ("clamp", "clamp_min", "clamp_max"), lambda call, results: call.tensors[0].dtype == "bool"),
    ("refused-floating-factor-of-integers", ("clamp", "clamp_min", "clamp_max", "hardtanh", "addmm", "addmv", "addr", "addbmm", "baddbmm", "addcmul", "threshold", "threshold_backward"), lambda call, results:
     whole_only(call) and has_float(call, "min", "max", "min_val", "max_val", "alpha", "beta", "value", "threshold")),
    ("float-to-integer", ("to", "to_copy", "copy"), is_narrowing),
    ("bounds-do-not-wrap", ("threshold_backward",), lambda call, results: whole_only(call) and scalar(call, "threshold") < 0
     and any(t.dtype == "u8" for t in call.tensors)),
    ("squares-that-overflow", ("var", "std"), squares_overflow),
    ("sign-of-nan", ("signbit",), lambda call, results: any((t.isnan() & t.signbit()).any() for t in tensors(call))),
    ("sign-of-nan", ("copysign",), lambda call, results: any(t.tensor().isnan().any() for t in call.tensors[1:])),
    ("differences-that-wrap", ("isclose",), lambda call, results: whole_only(call)
     and any(t.kind in ("listed", "special", "wide") for t in call.tensors)),
    ("differences-that-wrap", ("trapezoid",), lambda call, results: whole_only(call)),
    ("turns-of-many-digits", ("sinc",), lambda call, results: call.tensors[0].kind in ("listed", "special", "wide")),
    ("products-that-overflow", ("prod",), products_overflow),
    ("quotients-of-many-digits", ("floor_divide",), is_beyond_quarters),
    ("ties", ("topk",), lambda call, results: len(set(call.tensors[0].tensor().flatten().tolist())) < call.tensors[0].tensor().numel()),
]


# ---- results that differ: each rule changes them and says whether it did -----------------------------


def sign_of_nan(call, results, gradients):
    """sign(NaN) is NaN, and so are the gradients that are made of signs."""
    x = tensors(call)[0]
    if not x.is_floating_point() or not x.isnan().any():
        return False
    if call.op.functional.base == "sign":
        results[0].native[x.isnan()] = float("nan")
    else:
        gradients[0].wide[x.isnan()] = gradients[0].native[x.isnan()] = float("nan")
    return True


def any_of_u8(call, results, gradients):
    """any and all give bool."""
    changed = results[0].dtype == "u8"
    results[0].native = results[0].native.to(torch.bool)
    return changed


def all_dimensions(call, results, gradients):
    """An empty list of dimensions means all of them."""
    if scalar(call, "dim"):
        return False
    x = tensors(call)[0]
    keep = (1,) * x.dim() if scalar(call, "keepdim") else ()
    results[0].native = (torch.any if call.op.functional.base == "any" else torch.all)(x != 0).reshape(keep)
    return True


def any_over_dimensions(call, results, gradients):
    return all_dimensions(call, results, gradients) or any_of_u8(call, results, gradients)


def arange_of_integers(call, results, gradients):
    """Of an integer dtype each element of the floating range is truncated."""
    start, step, n = scalar(call, "start"), scalar(call, "step"), results[0].native.numel()
    if results[0].dtype in FLOATS or not any(isinstance(v, float) for v in (start, step)):
        return False
    native = torch.tensor([int(start + i * step) for i in range(n)], dtype=results[0].native.dtype)
    changed = bool((native != results[0].native).any())
    results[0].native = native
    return changed


def gradient_of_nan_extreme(call, results, gradients):
    """Where the largest or smallest is NaN, so is the gradient."""
    if not gradients or not results[0].native.isnan().any():
        return False
    gradients[0].wide.fill_(float("nan"))
    gradients[0].native.fill_(float("nan"))
    return True


def remainder_by_the_smallest(call, results, gradients):
    """Exact, where PyTorch's quotient is beyond what it computes with."""
    r = results[0]
    if r.dtype != "f64" and not call.op.functional.base.startswith("fmod"):
        return False
    a, b = torch.broadcast_tensors(*(operand(a).double() for a in call.args[:2]))
    odd = r.native.isnan() & a.isfinite() & (b != 0) & ~b.isnan()
    if not odd.any():
        return False
    rest = math.fmod if call.op.functional.base.startswith("fmod") else lambda x, y: x % y
    exact = torch.tensor([rest(x, y) for x, y in zip(a[odd].tolist(), b[odd].tolist())], dtype=torch.float64)
    if r.wide is not None:
        r.wide[odd] = exact.to(r.wide.dtype)
    r.native[odd] = exact.to(r.native.dtype)
    return True


def power_of_infinity(call, results, gradients):
    """pow(-inf, 1/2) is inf, as C's."""
    if not gradients or scalar(call, "exponent") != 1.5:
        return False
    odd = torch.isneginf(tensors(call)[0].double()) & gradients[0].wide.isnan()
    slope = upstream(0, results[0].dtype, results[0].native.shape).double() * float("inf")
    gradients[0].wide[odd] = slope[odd]
    gradients[0].native[odd] = slope[odd].to(gradients[0].native.dtype)
    return bool(odd.any())


def product_of_the_others(call, results, gradients):
    """The gradient of a product is the product of the others: PyTorch divides, where something is not finite."""
    return bool(gradients) and not tensors(call)[0].double().isfinite().all() and gradients.clear() is None


def shared_among_infinities(call, results, gradients):
    """The infinities of a row share the gradient of logsumexp; PyTorch's is NaN, or each has the whole."""
    x = tensors(call)[0]
    return bool(gradients) and bool(torch.isposinf(x.double()).any()) and gradients.clear() is None


def gradient_at_nan(call, results, gradients):
    """PyTorch's is NaN or not, as its loops take the element."""
    odd = call.tensors[0].tensor().isnan()
    if not gradients or not odd.any():
        return False
    gradients[0].native[odd], gradients[0].wide[odd] = float("nan"), 0
    return True


def sixth_of_few_digits(call, results, gradients):
    """PyTorch's derivative of hardsigmoid is 1/6 as f32 has it, in f64 too."""
    return bool(gradients) and gradients.clear() is None


def places_among_infinities(call, results, gradients):
    """Derivatives of weights that meet elements which are not finite."""
    return bool(gradients) and not tensors(call)[0].double().isfinite().all() and gradients.clear() is None


def clamp_by_tensors(call, results, gradients):
    """The gradients of minimum(maximum(self, min), max)."""
    if not gradients or any(not t.is_float for t in call.tensors):
        return False
    x, low, high = (a.tensor().double().requires_grad_() if a else None for a in (call.args + [None, None])[:3])
    y = x if low is None else torch.maximum(x, low)
    y = y if high is None else torch.minimum(y, high)
    leaves = [t for t in (x, low, high) if t is not None]
    changed = False
    start = upstream(0, results[0].dtype, results[0].native.shape).double()
    for gradient, through in zip(gradients, torch.autograd.grad(y, leaves, start)):
        changed |= bool(((through - gradient.wide).abs() > 1e-6).any())
        gradient.wide.copy_(through)
        gradient.native.copy_(through)
    return changed


def gradient_of_the_last(call, results, gradients):
    """Of several elements for one place the last is the one that was written: the others have no gradient."""
    if not gradients:
        return False
    lost = ~written_last(call)
    if gradients[-1].wide.shape != lost.shape or not (gradients[-1].wide[lost] != 0).any():
        return False
    for part in (gradients[-1].wide, gradients[-1].native, gradients[-1].error):
        part[lost] = 0
    return True


def written_last(call):
    """Which elements of the last argument are in the result."""
    target, dim, index, src = (a.tensor() if isinstance(a, Tensor) else a for a in call.args[:4])
    if call.op.functional.base == "index_copy":
        column = [-1 if d == dim % max(target.dim(), 1) else 1 for d in range(src.dim())]
        index = index.reshape(column).expand(src.shape)
    number = torch.arange(index.numel()).reshape(index.shape)
    seen = torch.zeros(target.shape, dtype=torch.long).scatter(dim, index, number)
    return seen.gather(dim, index) == number


def gradient_of_the_last_put(call, results, gradients):
    """The same of index_put, by values that are broadcast."""
    if not gradients or scalar(call, "accumulate"):
        return False
    target, values = call.args[0].tensor(), call.args[2].tensor()
    indices = [i and i.tensor() for i in call.args[1]]
    take, put = torch.ops.aten.index, torch.ops.aten.index_put
    shape = take(target, indices).shape
    number = torch.arange(math.prod(shape)).reshape(shape)
    last = take(put(torch.zeros(target.shape, dtype=torch.long), indices, number), indices) == number
    start = upstream(0, results[0].dtype, target.shape).double()
    through = (take(start, indices) * last).sum_to_size(values.shape)
    if last.all():
        return False
    gradients[1].wide, gradients[1].native = through, through.to(values.dtype)
    return True


def frequency_in_the_gradient(call, results, gradients):
    """scale_grad_by_freq divides the gradient of the gradient too; PyTorch's leaves it out."""
    return bool(gradients) and bool(scalar(call, "scale_grad_by_freq")) and gradients.clear() is None


def shared_among_equals(call, results, gradients):
    """Elements that are equally large share the gradient, not in equal parts."""
    target, dim, index, src, word = (a.tensor() if isinstance(a, Tensor) else a for a in call.args[:5])
    if not gradients or word not in ("amax", "amin") or not index.numel():
        return False
    result = results[0].native
    if call.op.functional.base == "index_reduce":
        index = index.reshape([-1 if d == dim % target.dim() else 1 for d in range(target.dim())]).expand(src.shape)
    src = src[tuple(slice(n) for n in index.shape)]
    hits = (target == result).long().scatter_add(dim, index, (src == result.gather(dim, index)).long())
    return bool((hits > 1).any()) and gradients.clear() is None


# operators (of any form): rules
RULES = {
    "scatter.src": gradient_of_the_last, "index_copy": gradient_of_the_last, "index_put": gradient_of_the_last_put,
    "scatter_reduce.two": shared_among_equals, "index_reduce": shared_among_equals,
    "embedding_dense_backward": frequency_in_the_gradient,
    "sign": sign_of_nan, "abs": sign_of_nan, "norm.ScalarOpt_dim": sign_of_nan, "any": any_of_u8, "all": any_of_u8,
    "any.dim": any_over_dimensions, "all.dim": any_over_dimensions, "arange.start": arange_of_integers, "max": gradient_of_nan_extreme,
    "min": gradient_of_nan_extreme, "remainder.Tensor": remainder_by_the_smallest,
    "remainder.Scalar": remainder_by_the_smallest, "fmod.Tensor": remainder_by_the_smallest, "fmod.Scalar": remainder_by_the_smallest, "remainder.Scalar_Tensor": remainder_by_the_smallest, "pow.Scalar": power_of_infinity,
    **{name: gradient_at_nan for name in ("elu", "celu", "selu", "hardtanh", "relu6", "hardswish", "hardshrink", "softshrink")},
    "clamp.Tensor": clamp_by_tensors, "hardsigmoid": sixth_of_few_digits, "prod": product_of_the_others, "prod.dim": product_of_the_others, "logsumexp": shared_among_infinities, "logcumsumexp": shared_among_infinities,
    "grid_sampler_2d": places_among_infinities,
}
OF_CALLS = ("integer-division-by-zero", "integer-to-a-negative-power")  # of instead()
OF_GRADIENTS = ("abs", "norm.ScalarOpt_dim")


def name_of(rule):
    return rule.__name__.replace("_", "-")


def check_page(page):
    """Every rule is on the user's page, by name."""
    names = {name_of(rule) for rule in RULES.values()} | {rule for rule, _, _ in LEFT_OUT} | set(OF_CALLS)
    missing = sorted(name for name in names if f"`{name}`" not in page)
    if missing:
        raise SystemExit(f"docs/values.md names no rule {', '.join(missing)}")


# Forward mode of PyTorch is not compared where it is coarser than our bound: its formula adds a small number to what it
# divides by.
COARSE_TANGENTS = {("logcumsumexp", "f64")}


def applied(call, results, gradients):
    base, name = call.op.functional.base.rstrip("_"), call.op.functional.name
    for rule, names, applies in LEFT_OUT:
        if base in names and applies(call, results):
            raise LeftOut(rule)
    rule = RULES.get(name)
    if rule and (gradients or name not in OF_GRADIENTS) and rule(call, results, gradients):
        call.differs = name_of(rule)
    return results, gradients or None
