"""torch.compile(model, backend="tenon"): forward and backward as graphs of PyTorch's core operators, which run through Tenon's.

With mode="reduce-overhead" the device records each of them once and replays it, where it can (docs/graphs.md); elsewhere nothing changes.
"""

import functools

import torch
from functorch.compile import make_boxed_func
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend

from ._capture import Replayed, Saved

MODES = (None, "default", "reduce-overhead")


def _lower(graph, example_inputs):
    return make_boxed_func(graph.forward)


def _recorded(saved, kind, graph, example_inputs):
    """kind: forward (whose last results are saved for backward), backward or inference."""
    known = torch._guards.TracingContext.get().fw_metadata
    stays = known.static_input_indices if kind != "backward" else ()
    replayed = Replayed(graph, stays, known.num_forward_returns if kind == "forward" else None, saved)

    def boxed(inputs):
        return replayed(inputs)

    boxed._boxed_call = True
    return boxed


def backend(graph, example_inputs, mode=None):
    if mode not in MODES:
        raise ValueError(f"torch.compile: mode {mode!r} is none of the backend tenon's: {', '.join(map(repr, MODES))}")
    lowering = dict.fromkeys(("fw_compiler", "bw_compiler", "inference_compiler"), _lower)
    if mode == "reduce-overhead":
        saved = Saved()
        lowering = {f"{short}_compiler": functools.partial(_recorded, saved, kind)
                    for short, kind in (("fw", "forward"), ("bw", "backward"), ("inference", "inference"))}
    return aot_autograd(**lowering, decompositions=core_aten_decompositions())(graph, example_inputs)


register_backend(name="tenon", compiler_fn=backend)
