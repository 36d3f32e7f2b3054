"""torch.compile(model, backend="tenon"): forward and backward as graphs of PyTorch's core operators, which run through Tenon's."""

import torch
from functorch.compile import make_boxed_func
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend


def _lower(graph, example_inputs):
    return make_boxed_func(graph.forward)


backend = aot_autograd(fw_compiler=_lower, bw_compiler=_lower, decompositions=core_aten_decompositions())
register_backend(name="tenon", compiler_fn=backend)
