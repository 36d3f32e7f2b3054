"""Operators that neither Tenon's table nor PyTorch's decompositions have, most of them backward, of other operators.

Resampling and padding are linear, one dimension at a time, and an output takes few inputs: the gradient goes back by the same weights, which are
what the forward operator makes of unit vectors. Maxima over windows send the gradient to where they were found.
"""

import math

import torch
from torch._decomp import decomposition_table

aten = torch.ops.aten


def _only(values, d, others):
    """One value of each dimension: that of d, and `others` elsewhere."""
    return [value if i == d else others for i, value in enumerate(values)]


def _adjoint(grad, sizes, taps, forward):
    """sizes: of the input's last dimensions; taps: how many inputs an output takes; forward(x, d): the operator on dimension d alone, of
    x [n, 1, .. n at d .. 1]."""
    result = grad.to(torch.float32 if grad.dtype in (torch.float16, torch.bfloat16) else grad.dtype)
    for d, n in enumerate(sizes):
        unit = torch.eye(n, dtype=result.dtype, device=grad.device)
        weights = forward(unit.reshape([n, 1] + _only([n] * len(sizes), d, 1)), d).reshape(n, -1)
        place = d - len(sizes)
        sources = weights.abs().topk(min(taps, n), 0).indices
        target = torch.zeros([*result.shape[:place], n, *result.shape[place:][1:]], dtype=result.dtype, device=grad.device)
        along = [-1] + [1] * (len(sizes) - 1 - d)
        for source in sources:
            weight = weights.gather(0, source[None])[0].reshape(along)
            part = torch.where(weight != 0, result * weight, torch.zeros_like(result))  # not NaN, where it is not taken
            target = target.index_add(place, source, part)
        result = target
    return result.to(grad.dtype)


def _resampled(forward, taps, corners):
    """The gradient of an upsampling: grad, output_size, input_size, [align_corners,] a scale for each dimension."""

    def backward(grad, output_size, input_size, *more):
        align, scales = (more[:1], more[1:]) if corners else ((), more)
        return _adjoint(grad, input_size[2:], taps,
                        lambda x, d: forward(x, _only(output_size, d, 1), *align, *_only(scales or [None] * len(output_size), d, None)))

    return backward


def replication_pad_backward(grad, x, padding):
    n = len(padding) // 2
    forward = {1: aten.replication_pad1d, 2: aten.replication_pad2d, 3: aten.replication_pad3d}[n]
    pairs = [padding[2 * i : 2 * i + 2] for i in reversed(range(n))]  # the last dimension's comes first

    def along(unit, d):
        return forward(unit, [side for pair in reversed(_only(pairs, d, [0, 0])) for side in pair])

    return _adjoint(grad, x.shape[-n:], 1, along)


def _by_planes(grad, x, backward):
    """The gradient of means over windows in three dimensions, by those in two: over depth, and then over height and width;
    backward(grad, input, over depth?), where the input's sizes alone count."""
    n, (depth, height, width) = math.prod(x.shape[:-3]), x.shape[-3:]
    out_depth, out_height, out_width = grad.shape[-3:]
    one = grad.new_empty([1, 1, 1, 1])
    grad = backward(grad.reshape(n, 1, out_depth, out_height * out_width), one.expand(n, 1, depth, out_height * out_width), True)
    return backward(grad.reshape(n, depth, out_height, out_width), one.expand(n, depth, height, width), False).reshape(x.shape)


def adaptive_avg_pool3d_backward(grad, x):
    return _by_planes(grad, x, lambda grad, like, over_depth: aten._adaptive_avg_pool2d_backward(grad, like))


def avg_pool3d_backward(grad, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    def three(values):
        return list(values) * 3 if len(values) == 1 else list(values)

    kernel, padding = three(kernel_size), three(padding)
    stride = three(stride) if stride else kernel

    def along(grad, like, over_depth):
        of = (lambda values, other: [values[0], other]) if over_depth else (lambda values, other: values[1:])
        divisor = divisor_override if over_depth or not divisor_override else 1
        return aten.avg_pool2d_backward(grad, like, of(kernel, 1), of(stride, 1), of(padding, 0), ceil_mode, count_include_pad, divisor)

    return _by_planes(grad, x, along)


def adaptive_max_pool3d(x, output_size):
    """Windows that differ in length are filled up with their last element, which is never found in place of an earlier one."""
    sizes, values = x.shape[-3:], x
    flat = torch.arange(math.prod(sizes), device=x.device).reshape(sizes)
    for d, (n, out) in enumerate(zip(sizes, output_size)):
        start, end = [i * n // out for i in range(out)], [-(-(i + 1) * n // out) for i in range(out)]
        longest = max((e - s for s, e in zip(start, end)), default=1)
        places = torch.tensor([[min(s + k, e - 1) for k in range(longest)] for s, e in zip(start, end)], device=x.device).reshape(-1)
        values, flat = (t.index_select(t.dim() - 3 + d, places) for t in (values, flat))
        sizes = [*sizes[:d], out * longest, *sizes[d + 1 :]]
    split = [size for out, n in zip(output_size, sizes) for size in (out, n // out if out else 1)]
    order = [0, 2, 4, 1, 3, 5]

    def windows(t):
        lead = t.dim() - 3
        t = t.reshape([*t.shape[:lead], *split]).permute([*range(lead), *(lead + i for i in order)])
        return t.reshape([*t.shape[: lead + 3], math.prod(t.shape[lead + 3 :])])

    values, found = windows(values).max(-1)
    return values, windows(flat).expand([*found.shape, -1]).gather(-1, found[..., None])[..., 0]


def _to_maxima(dims):
    """Gradients of maxima over windows: `indices` are places within the input's last `dims` dimensions, as one."""

    def backward(grad, x, *more):
        indices = more[-1]
        flat = torch.zeros([*x.shape[:-dims], math.prod(x.shape[-dims:])], dtype=grad.dtype, device=grad.device)
        return flat.scatter_add(-1, indices.flatten(-dims), grad.flatten(-dims)).reshape(x.shape)

    return backward


def shrink_backward(grad, x, lambd):
    return torch.where((x >= -lambd) & (x <= lambd), torch.zeros_like(grad), grad)


def _rows(x, *others):
    """As [rows, classes], where one row, or one element, has fewer dimensions."""
    width = x.shape[-1] if x.dim() else 1
    return [t.reshape(-1, width) for t in (x, *others)]


def _unreduced(grad, rows, reduction):
    """The gradient of each row's loss: reduction is none, mean or sum."""
    return grad.reshape(-1, 1) / (rows.shape[0] if reduction == 1 else 1)


def multi_margin_loss_backward(grad, x, target, p, margin, weight=None, reduction=1):
    (rows,), places = _rows(x), target.reshape(-1, 1)
    distance = margin - rows.gather(1, places) + rows
    slope = torch.where(distance > 0, distance if p == 2 else torch.ones_like(distance), torch.zeros_like(distance)) * (p / rows.shape[1])
    if weight is not None:
        slope = slope * weight[places]
    slope = slope.scatter(1, places, 0.0)
    slope = slope.scatter(1, places, -slope.sum(1, keepdim=True))
    return (slope * _unreduced(grad, rows, reduction)).reshape(x.shape)


def multilabel_margin_loss_forward(x, target, reduction):
    """PyTorch's decomposition gives one row's loss a dimension."""
    loss, is_target = decomposition_table[aten.multilabel_margin_loss_forward.default](x, target, reduction)
    return loss.reshape([]) if x.dim() < 2 else loss, is_target


def multilabel_margin_loss_backward(grad, x, target, reduction, is_target):
    """Targets of a row end at its first -1."""
    rows, labels, mine = _rows(x, target, is_target.to(x.dtype))
    there = (labels >= 0).long().cumprod(1).to(x.dtype)
    places = labels.clamp(min=0)
    met = ((1 - rows.gather(1, places)).unsqueeze(2) + rows.unsqueeze(1) > 0).to(x.dtype) * there.unsqueeze(2) * (1 - mine).unsqueeze(1)
    slope = met.sum(1).scatter_add(1, places, -met.sum(2)) / rows.shape[1]
    return (slope * _unreduced(grad, rows, reduction)).reshape(x.shape)


OPERATORS = {
    "_adaptive_avg_pool3d_backward": adaptive_avg_pool3d_backward, "avg_pool3d_backward": avg_pool3d_backward,
    "adaptive_max_pool3d": adaptive_max_pool3d,
    "adaptive_max_pool2d_backward": _to_maxima(2), "adaptive_max_pool3d_backward": _to_maxima(3),
    "max_pool3d_with_indices_backward": _to_maxima(3),
    "replication_pad1d_backward": replication_pad_backward, "replication_pad2d_backward": replication_pad_backward,
    "replication_pad3d_backward": replication_pad_backward,
    "hardshrink_backward": shrink_backward, "softshrink_backward": shrink_backward,
    "multilabel_margin_loss_forward": multilabel_margin_loss_forward,
    "multi_margin_loss_backward": multi_margin_loss_backward, "multilabel_margin_loss_backward": multilabel_margin_loss_backward,
    "upsample_linear1d_backward": _resampled(aten.upsample_linear1d, 2, True),
    "upsample_bilinear2d_backward": _resampled(aten.upsample_bilinear2d, 2, True),
    "upsample_bicubic2d_backward": _resampled(aten.upsample_bicubic2d, 4, True),
    "upsample_trilinear3d_backward": _resampled(aten.upsample_trilinear3d, 2, True),
} | {f"{kind}{n}d_backward": _resampled(getattr(aten, f"{kind}{n}d"), 1, False)
     for kind in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)}
