"""The layers."""

import math

from .. import _core
from . import functional, init
from .module import Module, Parameter

__all__ = ["Linear", "Conv1d", "Conv2d", "ConvTranspose2d", "Embedding", "LayerNorm", "RMSNorm", "GroupNorm", "BatchNorm1d",
           "BatchNorm2d", "Dropout", "Flatten", "Identity", "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "ReLU", "LeakyReLU",
           "GELU", "SiLU", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "CrossEntropyLoss", "MSELoss", "L1Loss", "NLLLoss",
           "BCEWithLogitsLoss", "MultiheadAttention"]


def _pair(value, n=2):
    return (value,) * n if isinstance(value, int) else tuple(value)


def _weight_and_bias(shape, fan_in, bias, n_bias, dtype, device):
    weight = Parameter(init.kaiming_uniform_(_core.empty(shape, dtype=dtype, device=device), a=math.sqrt(5)))
    if not bias:
        return weight, None
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
    return weight, Parameter(init.uniform_(_core.empty((n_bias,), dtype=dtype, device=device), -bound, bound))


class Linear(Module):
    """x @ weight transposed + bias; weight [out_features, in_features]."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight, bias_made = _weight_and_bias((out_features, in_features), in_features, bias, out_features, dtype, device)
        self.register_parameter("bias", bias_made)

    def forward(self, x):
        return _core.linear(x, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class _Convolution(Module):
    dims = 2

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, device=None,
                 dtype=None):
        super().__init__()
        kernel = _pair(kernel_size, self.dims)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel
        self.stride, self.padding = _pair(stride, self.dims), _pair(padding, self.dims)
        self.dilation, self.groups = _pair(dilation, self.dims), groups
        fan_in = in_channels // groups * math.prod(kernel)
        self.weight, bias_made = _weight_and_bias((out_channels, in_channels // groups, *kernel), fan_in, bias, out_channels,
                                                  dtype, device)
        self.register_parameter("bias", bias_made)

    def forward(self, x):
        convolve = _core.conv2d if self.dims == 2 else _core.conv1d
        return convolve(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self):
        return (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
                f"padding={self.padding}")


class Conv1d(_Convolution):
    """Convolution of [N, C, L]; weight [out, in / groups, K]."""

    dims = 1


class Conv2d(_Convolution):
    """Convolution of [N, C, H, W]; weight [out, in / groups, KH, KW]."""


class ConvTranspose2d(Module):
    """The transposed convolution; weight [in, out / groups, KH, KW]."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
                 dilation=1, device=None, dtype=None):
        super().__init__()
        kernel = _pair(kernel_size)
        self.stride, self.padding, self.output_padding = _pair(stride), _pair(padding), _pair(output_padding)
        self.groups, self.dilation = groups, _pair(dilation)
        fan_in = out_channels // groups * math.prod(kernel)
        self.weight, bias_made = _weight_and_bias((in_channels, out_channels // groups, *kernel), fan_in, bias, out_channels,
                                                  dtype, device)
        self.register_parameter("bias", bias_made)

    def forward(self, x):
        return _core.conv_transpose2d(x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups,
                                      self.dilation)


class Embedding(Module):
    """Rows of weight [num_embeddings, embedding_dim] by number."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, device=None, dtype=None):
        super().__init__()
        self.padding_idx = padding_idx
        self.weight = Parameter(init.normal_(_core.empty((num_embeddings, embedding_dim), dtype=dtype, device=device)))
        if padding_idx is not None:
            init.zeros_(self.weight.detach()[padding_idx])

    def forward(self, indices):
        return functional.embedding(indices, self.weight, self.padding_idx)


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last dimensions, then weight and bias."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps = _pair(normalized_shape, 1), eps
        shape = {"dtype": dtype, "device": device}
        self.register_parameter("weight", Parameter(_core.ones(self.normalized_shape, **shape)) if elementwise_affine else None)
        self.register_parameter("bias", Parameter(_core.zeros(self.normalized_shape, **shape))
                                if elementwise_affine and bias else None)

    def forward(self, x):
        return _core.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Mean square 1 over the last dimensions, then weight."""

    def __init__(self, normalized_shape, eps=None, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps = _pair(normalized_shape, 1), eps
        self.weight = Parameter(_core.ones(self.normalized_shape, dtype=dtype, device=device))

    def forward(self, x):
        return _core.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Mean 0 and variance 1 over each group of channels, then weight and bias of each channel."""

    def __init__(self, num_groups, num_channels, eps=1e-5, device=None, dtype=None):
        super().__init__()
        self.num_groups, self.eps = num_groups, eps
        self.weight = Parameter(_core.ones((num_channels,), dtype=dtype, device=device))
        self.bias = Parameter(_core.zeros((num_channels,), dtype=dtype, device=device))

    def forward(self, x):
        return _core.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class BatchNorm2d(Module):
    """Mean 0 and variance 1 of each channel over the batch, or as they ran in training."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, device=None, dtype=None):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        shape = {"dtype": dtype, "device": device}
        self.register_parameter("weight", Parameter(_core.ones((num_features,), **shape)) if affine else None)
        self.register_parameter("bias", Parameter(_core.zeros((num_features,), **shape)) if affine else None)
        self.register_buffer("running_mean", _core.zeros((num_features,), **shape))
        self.register_buffer("running_var", _core.ones((num_features,), **shape))
        self.register_buffer("num_batches_tracked", _core.zeros((), dtype=_core.int64, device=device))

    def forward(self, x):
        if self.training:
            self.num_batches_tracked += 1
        return _core.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, self.training, self.momentum,
                                self.eps)


class BatchNorm1d(BatchNorm2d):
    """BatchNorm2d for [N, C] and [N, C, L]."""


class Dropout(Module):
    """In training each element is 0 with probability p, the others are scaled."""

    def __init__(self, p=0.5):
        super().__init__()
        self.p = p

    def forward(self, x):
        return _core.dropout(x, self.p, self.training)


class Flatten(Module):
    """Dimensions start_dim to end_dim as one."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x):
        return x.flatten(self.start_dim, self.end_dim)


class Identity(Module):
    """What comes in."""

    def forward(self, x):
        return x


class MaxPool2d(Module):
    """The largest of each window."""

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        super().__init__()
        self.window = (_pair(kernel_size), _pair(kernel_size if stride is None else stride), _pair(padding), _pair(dilation),
                       ceil_mode)

    def forward(self, x):
        return x.max_pool2d(*self.window)


class AvgPool2d(Module):
    """The mean of each window."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.window = (_pair(kernel_size), _pair(kernel_size if stride is None else stride), _pair(padding), ceil_mode,
                       count_include_pad)

    def forward(self, x):
        return x.avg_pool2d(*self.window)


class AdaptiveAvgPool2d(Module):
    """Means of as many windows as output_size says."""

    def __init__(self, output_size):
        super().__init__()
        self.output_size = _pair(output_size)

    def forward(self, x):
        return x.adaptive_avg_pool2d(self.output_size)


def _activation(name, doc, call):
    return type(name, (Module,), {"__doc__": doc, "forward": lambda self, x: call(x), "__module__": __name__})


ReLU = _activation("ReLU", "max(x, 0).", _core.relu)
SiLU = _activation("SiLU", "x sigmoid(x).", _core.silu)
Sigmoid = _activation("Sigmoid", "1 / (1 + exp(-x)).", _core.sigmoid)
Tanh = _activation("Tanh", "tanh(x).", _core.tanh)


class LeakyReLU(Module):
    """x, or negative_slope x below 0."""

    def __init__(self, negative_slope=0.01):
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x):
        return x.leaky_relu(self.negative_slope)


class GELU(Module):
    """x Phi(x); approximate: 'none' or 'tanh'."""

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, x):
        return x.gelu(approximate=self.approximate)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along dim."""

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.softmax(self.dim)


class LogSoftmax(Module):
    """log(softmax(x)) along dim."""

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.log_softmax(self.dim)


class _Loss(Module):
    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction


class CrossEntropyLoss(Module):
    """cross_entropy(logits [N, C, ...], classes [N, ...])."""

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__()
        self.register_buffer("weight", weight)
        self.ignore_index, self.reduction, self.label_smoothing = ignore_index, reduction, label_smoothing

    def forward(self, x, target):
        return _core.cross_entropy(x, target, self.weight, self.reduction, self.ignore_index, self.label_smoothing)


class NLLLoss(_Loss):
    """nll_loss(logarithms of probabilities, classes)."""

    def forward(self, x, target):
        return _core.nll_loss(x, target, None, self.reduction)


class MSELoss(_Loss):
    """(x - target)^2."""

    def forward(self, x, target):
        return _core.mse_loss(x, target, self.reduction)


class L1Loss(_Loss):
    """|x - target|."""

    def forward(self, x, target):
        return _core.l1_loss(x, target, self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits."""

    def forward(self, x, target):
        return _core.binary_cross_entropy_with_logits(x, target, reduction=self.reduction)


class MultiheadAttention(Module):
    """Attention in num_heads heads, with PyTorch's names of parameters; batches first."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, device=None, dtype=None):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not a multiple of num_heads {num_heads}")
        self.num_heads, self.dropout = num_heads, dropout
        shape = {"dtype": dtype, "device": device}
        self.in_proj_weight = Parameter(init.xavier_uniform_(_core.empty((3 * embed_dim, embed_dim), **shape)))
        self.register_parameter("in_proj_bias", Parameter(_core.zeros((3 * embed_dim,), **shape)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        if bias:
            init.zeros_(self.out_proj.bias)

    def forward(self, query, key=None, value=None, attn_mask=None, is_causal=False):
        if key is None:
            q, k, v = _core.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        else:
            weights = self.in_proj_weight.chunk(3)
            biases = self.in_proj_bias.chunk(3) if self.in_proj_bias is not None else (None,) * 3
            q, k, v = (_core.linear(x, w, b) for x, w, b in zip((query, key, key if value is None else value), weights, biases))

        def heads(x):
            return x.reshape((*x.shape[:-1], self.num_heads, -1)).transpose(-2, -3)

        made = _core.scaled_dot_product_attention(heads(q), heads(k), heads(v), attn_mask,
                                                  self.dropout if self.training else 0.0, is_causal)
        return self.out_proj(made.transpose(-2, -3).flatten(-2))
