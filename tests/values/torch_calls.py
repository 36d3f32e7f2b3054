"""What PyTorch calls Tenon's operators. An operator that is not named here is ATen's of the same name, and
its arguments go by their names. The others are functions of the arguments in Tenon's order, every one of them given.
"""

import math

import torch
import torch.nn.functional as F

aten = torch.ops.aten


def renamed(name, **arguments):
    """ATen's operator `name`, with arguments called otherwise: torch's name = ours."""
    return name, {ours: theirs for theirs, ours in arguments.items()}


# ATen's overload of what Tenon calls by a shorter name.
OVERLOADS = {
    "flatten": renamed("flatten.using_ints"), "transpose": renamed("transpose.int"), "select": renamed("select.int"),
    "slice": renamed("slice.Tensor"), "unbind": renamed("unbind.int"), "split": renamed("split.Tensor"),
    "pow.Tensor": renamed("pow.Tensor_Tensor"), "pow_.Tensor": renamed("pow_.Tensor"),
    "ldexp_.Tensor": renamed("ldexp_"),
    "pow.out": renamed("pow.Tensor_Tensor_out"),
    "pow.Scalar": renamed("pow.Tensor_Scalar"), "where": renamed("where.self"), "clamp_.Tensor": renamed("clamp_.Tensor"),
    "floor_divide.Tensor": renamed("floor_divide"), "sum.dim": renamed("sum.dim_IntList"),
    "sum.dim_out": renamed("sum.IntList_out"),
    "any.dim": renamed("any.dims"), "all.dim": renamed("all.dims"), "prod.dim": renamed("prod.dim_int"),
    "var.dim": renamed("var.correction"), "std.dim": renamed("std.correction"), "nonzero": renamed("nonzero"),
    "softmax": renamed("softmax.int"), "log_softmax": renamed("log_softmax.int"),
    "maximum.out": renamed("maximum.out"), "arange.start": renamed("arange.start_step"),
    "fill_": renamed("fill_.Scalar"), "rsub.Scalar": renamed("rsub.Scalar"), "eye": renamed("eye"), "eye.m": renamed("eye.m"),
    "lerp.Tensor": renamed("lerp.Tensor"), "lerp.Scalar": renamed("lerp.Scalar"),
}


def convolution_gradient(which, grad, input, weight, stride, padding, dilation, groups):
    mask = [which == 0, which == 1, False]
    return aten.convolution_backward(grad, input, weight, None, stride, padding, dilation, False, [0, 0], groups, mask)[which]


def native_layer_norm_backward(grad, x, shape, mean, rstd, weight, bias):
    """All three gradients, where PyTorch leaves out those of what is left out."""
    weight = x.new_ones(shape) if weight is None else weight
    bias = x.new_zeros(shape) if bias is None else bias
    return aten.native_layer_norm_backward(grad, x, shape, mean, rstd, weight, bias, [True, True, True])


def native_group_norm_backward(grad, x, mean, rstd, weight, *rest):
    return aten.native_group_norm_backward(grad, x, mean, rstd, x.new_ones(rest[1]) if weight is None else weight,
        *rest, [True] * 3)


def max_pool2d_backward(grad, indices, size):
    planes = torch.zeros(list(size[:-2]) + [size[-2] * size[-1]], dtype=grad.dtype)
    return planes.scatter_add(-1, indices.flatten(-2), grad.flatten(-2)).reshape(size)


def sgd(self, grad, buffer, lr, momentum, dampening, weight_decay, nesterov, maximize):
    """torch.optim.SGD's step, on a buffer that there is already."""
    grad = -grad if maximize else grad
    grad = grad + weight_decay * self
    new = buffer * momentum + (1 - dampening) * grad
    return self - lr * (grad + momentum * new if nesterov else new), new


def adamw(self, grad, mean, square, lr, beta1, beta2, eps, decay, step, maximize):
    """torch.optim.AdamW's step."""
    grad = -grad if maximize else grad
    mean = mean * beta1 + (1 - beta1) * grad
    square = square * beta2 + (1 - beta2) * grad * grad
    root = (square / (1 - beta2**step)).sqrt() + eps
    return self * (1 - lr * decay) - lr / (1 - beta1**step) * mean / root, mean, square


def in_wide(step):
    """Steps of optimizers as PyTorch's fused ones compute them: halves in f32, rounded at the end."""
    def run(*args):
        dtype = args[0].dtype
        if not dtype.is_floating_point:
            raise TypeError("a step of parameters that are no numbers")
        wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
        args = [a.to(wide) if isinstance(a, torch.Tensor) else a for a in args]
        return tuple(t.to(dtype) for t in step(*args))
    return run


def batch_norm(x, weight, bias, mean, var, training, momentum, eps):
    mean, var = (None if s is None else s.clone() for s in (mean, var))
    return F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)


def embedding_bag(weight, indices, offsets, by_freq, mode, sparse, per_sample, is_last_given, padding):
    """PyTorch's own of the first and, for the largest, the last result; of the others what they are."""
    words = ("sum", "mean", "max")
    output = F.embedding_bag(indices, weight, offsets, mode=words[mode], scale_grad_by_freq=by_freq, per_sample_weights=per_sample,
                             include_last_offset=is_last_given, padding_idx=padding if padding >= 0 else None)
    bag = torch.searchsorted(offsets, torch.arange(len(indices)), right=True) - 1
    size = torch.bincount(bag[indices != padding], minlength=len(output))
    native = aten._embedding_bag(weight.detach(), indices, offsets, by_freq, mode, sparse, None, is_last_given, padding)
    return output, bag, size, native[3] if mode == 2 else size


def native_batch_norm(x, weight, bias, mean, var, *rest):
    mean, var = (None if s is None else s.clone() for s in (mean, var))
    return torch.native_batch_norm(x, weight, bias, mean, var, *rest)


def instance_norm(x, weight, bias, mean, var, *rest):
    mean, var = (None if s is None else s.clone() for s in (mean, var))
    return torch.instance_norm(x, weight, bias, mean, var, *rest, False)


def unique_dim(x, dim, is_sorted, inverse, counts):
    """PyTorch gives all three always."""
    values, places, numbers = aten.unique_dim(x, dim, is_sorted, inverse, counts)
    return values, places if inverse else places[:0], numbers if counts else numbers[:0]


def alike(x, other):
    """A tensor and a scalar in the dtype that they promote to."""
    dtype = torch.result_type(x, other)
    return x.to(dtype), torch.full((), other, dtype=dtype)


def ctc_loss(x, targets, steps, lengths, blank, reduction, zero_infinity):
    """With the derivative by log_probs, where PyTorch has that by what log_softmax makes them of: it adds the
    probabilities, which take away nothing from a sum that log_softmax holds at 1."""
    loss = aten.ctc_loss.IntList(x, targets, steps, lengths, blank, 0, zero_infinity)
    batch = x if x.dim() == 3 else x.unsqueeze(1)
    sums = torch.stack([batch[:n, i].exp().sum() for i, n in enumerate(steps)]).reshape(loss.shape)
    loss = loss - torch.where(loss.detach() == 0, 0, sums - sums.detach())
    if reduction == "mean":
        loss = loss / torch.tensor(lengths).clamp(min=1).reshape(loss.shape)
    return loss if reduction == "none" else getattr(loss, reduction)()


def with_slope(function, slope):
    """A pointwise function of one tensor whose derivative is another."""
    class Sloped(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return function(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return grad * slope(*ctx.saved_tensors)

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * slope(*ctx.saved_tensors)
    return Sloped.apply


def polygamma(n, x):
    """PyTorch's has ten digits where n is 1, and counts up from negative numbers one by one."""
    if n not in (1, 2, 3):
        return torch.polygamma(n, x)
    if x.dtype not in (torch.float32, torch.float64):
        return polygamma(n, x.float()).to(x.dtype if x.is_floating_point() else torch.float32)
    c, above = 1 / torch.tan(math.pi * (x - x.round())), torch.where(x < 0, 1 - x, x.abs())
    mirror = {1: -(1 + c * c), 2: 2 * c * (1 + c * c), 3: -(1 + c * c) * (2 + 6 * c * c)}[n] * math.pi ** (n + 1)
    value = torch.where(above > 2.0**60, above**-n / n, torch.special.zeta(n + 1.0, above)) * ((-1) ** (n + 1) * math.factorial(n))
    return torch.where(x < 0, (-1) ** n * value - mirror, value)


def i1_slope(x):
    """Infinite where it overflows."""
    slope = torch.i0(x) - torch.special.i1(x) / x
    return torch.where(x.abs() < 1e-20, 0.5, torch.where(slope.isnan() & x.isfinite(), math.inf, slope))


def logit_slope(x, eps):
    low = eps or 0
    return torch.where((x < low) | (x > 1 - low), math.nan if eps is None else 0, 1 / (x * (1 - x)))


def erfcx_slope(x):
    """Without the difference of what is nearly the same."""
    terms, term = 1, 1
    for k in range(1, 13):
        term = term * (1 - 2 * k) / (2 * x * x)
        terms = terms + (2 * k + 1) * term
    return torch.where(x < 12, 2 * x * torch.special.erfcx(x) - 2 / math.pi**0.5, -terms / (math.pi**0.5 * x * x))


CALLS = {
    "one_hot": F.one_hot, "dist": torch.dist,
    # what PyTorch computes with fewer digits than its dtypes have: docs/values.md
    "special_ndtr": lambda x: torch.erfc(x * -(0.5**0.5)) * 0.5,
    "special_erfcx": with_slope(torch.special.erfcx, erfcx_slope),
    "special_i1": with_slope(torch.special.i1, i1_slope),
    "special_log_ndtr": with_slope(torch.special.log_ndtr,
                                   lambda x: (2 / math.pi) ** 0.5 / torch.special.erfcx(x * -(0.5**0.5))),
    # and whose sign at -0.0 is the place's in memory
    "logit": lambda x, eps: with_slope(lambda x: torch.logit(x, eps), lambda x: logit_slope(x, eps))(x),
    "digamma": with_slope(torch.digamma, lambda x: polygamma(1, x)),
    "polygamma": lambda n, x: with_slope(lambda x: polygamma(n, x), lambda x: polygamma(n + 1, x))(x),
    "to": lambda x, dtype, device, copy: x.to(dtype or x.dtype, copy=True),
    "to.dtype": lambda x, dtype: x.to(dtype),
    "to_copy": lambda x, dtype, device: x.to(dtype or x.dtype, copy=True),
    "contiguous": lambda x: x.contiguous(),
    "reshape": lambda x, shape: x.reshape(shape),
    "clone": lambda x: x.clone(),
    "zero_": lambda x: torch.zeros_like(x),
    "norm": lambda x: torch.linalg.vector_norm(x),
    "sort": lambda x, dim, descending: torch.sort(x, dim=dim, descending=descending, stable=True),
    "argsort": lambda x, dim, descending: torch.argsort(x, dim=dim, descending=descending, stable=True),
    "convolution": lambda x, w, b, stride, padding, dilation, groups:
        aten.convolution(x, w, b, stride, padding, dilation, False, [0] * len(stride), groups),
    "convolution_backward_input": lambda g, w, size, stride, padding, dilation, groups:
        convolution_gradient(0, g, g.new_ones(size), w, stride, padding, dilation, groups),
    "convolution_backward_weight": lambda g, x, size, stride, padding, dilation, groups:
        convolution_gradient(1, g, x, g.new_ones(size), stride, padding, dilation, groups),
    "conv1d": F.conv1d, "conv2d": F.conv2d,
    "max_pool2d_with_indices": lambda x, kernel, stride, padding, dilation, ceil:
        F.max_pool2d_with_indices(x, kernel, stride or None, padding, dilation, ceil),
    "max_pool2d": lambda x, kernel, stride, padding, dilation, ceil:
        F.max_pool2d(x, kernel, stride or None, padding, dilation, ceil),
    "max_pool2d_backward": max_pool2d_backward,
    "avg_pool2d": lambda x, kernel, stride, *rest: F.avg_pool2d(x, kernel, stride or None, *rest),
    "avg_pool2d_backward": lambda g, size, *rest: aten.avg_pool2d_backward(g, g.new_zeros(size), *rest),
    "adaptive_avg_pool2d_backward": aten._adaptive_avg_pool2d_backward,
    "avg_pool1d": lambda x, kernel, stride, *rest: F.avg_pool1d(x, kernel, stride or None, *rest),
    "avg_pool3d": lambda x, kernel, stride, *rest: F.avg_pool3d(x, kernel, stride or None, *rest),
    "max_pool1d": lambda x, kernel, stride, *rest: F.max_pool1d(x, kernel, stride or None, *rest),
    "max_pool3d": lambda x, kernel, stride, *rest: F.max_pool3d(x, kernel, stride or None, *rest),
    "max_pool1d_with_indices": lambda x, kernel, stride, *rest: F.max_pool1d_with_indices(x, kernel, stride or None,
        *rest),
    "max_pool3d_with_indices": lambda x, kernel, stride, *rest: F.max_pool3d_with_indices(x, kernel, stride or None,
        *rest),
    "conv3d": F.conv3d, "conv_transpose1d": F.conv_transpose1d, "conv_transpose2d": F.conv_transpose2d,
        "conv_transpose3d": F.conv_transpose3d,
    "cdist": lambda x1, x2, p: torch.cdist(x1, x2, p, "donot_use_mm_for_euclid_dist"),
    "rms_norm": lambda x, shape, weight, eps: F.rms_norm(x, shape, weight, eps),
    "native_batch_norm": native_batch_norm, "instance_norm": instance_norm,
    "native_group_norm_backward": native_group_norm_backward, "group_norm": lambda x, groups, w, b,
        eps: F.group_norm(x, groups, w, b, eps),
    "softmax_forward": lambda x, dim: aten._softmax(x, dim, False),
    "log_softmax_forward": lambda x, dim: aten._log_softmax(x, dim, False),
    "softmax_backward": lambda g, y, dim: aten._softmax_backward_data(g, y, dim, y.dtype),
    "log_softmax_backward": lambda g, y, dim: aten._log_softmax_backward_data(g, y, dim, y.dtype),
    "layer_norm_backward": lambda g, x, mean, rstd, weight, shape:
        aten.native_layer_norm_backward(g, x, shape, mean, rstd, weight, None, [True, False, False])[0],
    "native_layer_norm_backward": native_layer_norm_backward,
    "native_layer_norm": lambda x, shape, w, b, eps: aten.native_layer_norm(x, shape, w, b, eps),
    "layer_norm": F.layer_norm,
    "embedding_bag": embedding_bag,
    "batch_norm": batch_norm,
    "nll_loss": lambda x, t, w, reduction, ignore: F.nll_loss(x, t, w, ignore_index=ignore, reduction=reduction),
    "cross_entropy": lambda x, t, w, reduction, ignore, smoothing:
        F.cross_entropy(x, t, w, ignore_index=ignore, reduction=reduction, label_smoothing=smoothing),
    "l1_loss": lambda x, t, reduction: F.l1_loss(x, t, reduction=reduction),
    "smooth_l1_loss": lambda x, t, reduction, beta: F.smooth_l1_loss(x, t, reduction=reduction, beta=beta),
    "huber_loss": lambda x, t, reduction, delta: F.huber_loss(x, t, reduction=reduction, delta=delta),
    "kl_div": lambda x, t, reduction, log_target: F.kl_div(x, t, reduction=reduction, log_target=log_target),
    "binary_cross_entropy": lambda x, t, weight, reduction: F.binary_cross_entropy(x, t, weight, reduction=reduction),
    "soft_margin_loss": lambda x, t, reduction: F.soft_margin_loss(x, t, reduction=reduction),
    "hinge_embedding_loss": lambda x, t, margin, reduction: F.hinge_embedding_loss(x, t, margin, reduction=reduction),
    "poisson_nll_loss": lambda x, t, log_input, full, eps, reduction:
        F.poisson_nll_loss(x, t, log_input, full, eps=eps, reduction=reduction),
    "unique2": aten._unique2, "unique_dim": unique_dim, "bincount": lambda x, weights, least: torch.bincount(x, weights, least),
    "searchsorted.Tensor": lambda seq, x, narrow, right, sorter:
        torch.searchsorted(seq, x, out_int32=narrow, right=right, sorter=sorter),
    "histc": lambda x, bins, low, high: torch.histc(x, bins, low, high),
    "std_mean": lambda x, dim, unbiased, keepdim: torch.std_mean(x, dim, unbiased=unbiased, keepdim=keepdim),
    "ctc_loss.IntList": ctc_loss,
    "normalize": lambda x, p, dim, eps: F.normalize(x, p, dim, eps),
    "cosine_embedding_loss": lambda x, y, t, margin, how: F.cosine_embedding_loss(x, y, t, margin, reduction=how),
    "margin_ranking_loss": lambda x, y, t, margin, how: F.margin_ranking_loss(x, y, t, margin, reduction=how),
    "triplet_margin_loss": lambda a, x, y, margin, p, eps, swap, how:
        F.triplet_margin_loss(a, x, y, margin, p, eps, swap, reduction=how),
    "multi_margin_loss": lambda x, t, p, margin, weight, how:
        F.multi_margin_loss(x, t, p, margin, weight, reduction=how),
    "multilabel_margin_loss": lambda x, t, how: F.multilabel_margin_loss(x, t, reduction=how),
    "gaussian_nll_loss": lambda x, t, var, full, eps, how:
        F.gaussian_nll_loss(x, t, var, full, eps, how),
    "var_mean": lambda x, dim, unbiased, keepdim: torch.var_mean(x, dim, unbiased=unbiased, keepdim=keepdim),
    "mse_loss": lambda x, t, reduction: F.mse_loss(x, t, reduction=reduction),
    "binary_cross_entropy_with_logits": lambda x, t, *rest: bce(x, t, *rest),
    "embedding": aten.embedding,
    "fused_sgd_": in_wide(sgd), "fused_adamw_": in_wide(adamw),
    "norm.ScalarOpt_dim": lambda x, p, dim, keepdim: torch.linalg.vector_norm(
        x, 2 if p is None else p, dim or None, keepdim),
    "linspace": lambda start, end, steps, dtype, device: torch.linspace(start, end, steps, dtype=dtype),
    "einsum": lambda equation, tensors, path: aten.einsum(equation, tensors, path=path),
    "linear": F.linear,
    "scaled_dot_product_attention": lambda q, k, v, mask, p, causal, scale, grouped: F.scaled_dot_product_attention(
        q, k, v, mask, p, causal, scale=scale, enable_gqa=grouped),
    "leaky_relu": lambda x, slope: F.leaky_relu(x, slope),
    "copy_": lambda x, src, non_blocking: x.copy_(src),
    "squeeze": lambda x: x.squeeze(),
    "maximum.Scalar": lambda x, other: torch.maximum(*alike(x, other)),
    "minimum.Scalar": lambda x, other: torch.minimum(*alike(x, other)),
    "randint": lambda low, high, size, dtype, device: torch.zeros(size, dtype=dtype or torch.int64),
    "var.dim": lambda x, dim, correction, keepdim: torch.var(x, dim or None, correction=correction, keepdim=keepdim),
    "std.dim": lambda x, dim, correction, keepdim: torch.std(x, dim or None, correction=correction, keepdim=keepdim),
    "empty": lambda size, dtype, device: torch.zeros(size, dtype=dtype),
    "random_bits": lambda size, seed, offset, dtype, device: torch.zeros(size, dtype=dtype or torch.int64),
    "bernoulli_mask": lambda size, p, device: torch.zeros(size, dtype=torch.bool),
}


def bce(x, target, *rest):
    """Of a target, optional tensors and the reduction, in whatever order the table has them."""
    tensors = [a for a in rest if not isinstance(a, str)] + [None, None]
    return F.binary_cross_entropy_with_logits(x, target, tensors[0], pos_weight=tensors[1], reduction=rest_word(rest))


def rest_word(rest):
    return next(a for a in rest if isinstance(a, str))


def function_of(schema):
    """The PyTorch function of a Tenon schema, called with its arguments in order."""
    name = schema.name
    if name in CALLS:
        return CALLS[name]
    theirs, names = OVERLOADS.get(name, (name, {}))
    base, _, overload = theirs.partition(".")
    packet = getattr(aten, base)
    if overload and overload not in packet.overloads():
        raise KeyError(f"ATen has no {theirs}")
    op = getattr(packet, overload or "default")
    known = {a.name for a in op._schema.arguments}
    positions = [a.name for a in op._schema.arguments]

    def call(*args):
        given = {}
        for arg, value in zip(schema.args, args):
            if arg.kind == "device":
                continue
            key = names.get(arg.name, arg.name)
            if key not in known and not arg.keyword:  # the same argument under another name
                key = positions[arg.position]
            given[key] = value
        return op(**given)
    return call
