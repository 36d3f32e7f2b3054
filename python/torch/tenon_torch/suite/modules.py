"""Modules, from ModuleInfo: what they return, their state afterwards, and gradients of inputs and parameters, in training and evaluation."""

import copy
import functools
import itertools

import torch

from .comparison import ADDED_UP, DTYPES, Test, compare, gradients, moved, on_cpu, tolerance


def draws(module):
    """Does its forward draw numbers?"""
    if any(isinstance(m, (torch.nn.FractionalMaxPool2d, torch.nn.FractionalMaxPool3d)) for m in module.modules()):
        return True
    drop = (torch.nn.modules.dropout._DropoutNd, torch.nn.RReLU)
    return module.training and any(isinstance(m, drop) or getattr(m, "dropout", 0) for m in module.modules())


def made(info, sample, dtype, training):
    module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs).to(dtype)
    module.train(training)
    if info.is_lazy:  # its parameters are drawn at the first call
        module(*sample.forward_input.args, **sample.forward_input.kwargs)
    return module


def called(module, args, kwargs):
    """Its results, its state after them, and the gradients."""
    result = module(*args, **kwargs)
    state = [tensor.detach().clone() for tensor in module.state_dict().values() if isinstance(tensor, torch.Tensor)]
    return result, state, gradients(result, [args, kwargs, list(module.parameters())])


def run_sample(info, sample, dtype, training, device):
    module = on_cpu(made, info, sample, dtype, training)
    there = copy.deepcopy(module).to(device)
    inputs = sample.forward_input.args, sample.forward_input.kwargs
    wanted = on_cpu(called, module, *moved(inputs, "cpu"))  # leaves: some samples are computed
    for got, want in zip(called(there, *moved(inputs, device)), wanted):
        compare(got, want, tolerance(info, dtype, ADDED_UP), draws(module))


def samples(info, dtype, training, limit):
    every = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    for sample in itertools.islice((s for s in every if s.forward_input), limit):
        yield functools.partial(run_sample, info, sample, dtype, training)


def tests():
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        for training in (True, False) if info.train_and_eval_differ else (True,):
            name = info.name + (f".{'train' if training else 'eval'}" if info.train_and_eval_differ else "")
            for dtype in DTYPES:
                if dtype in info.supported_dtypes("cpu"):
                    yield Test(name, dtype, functools.partial(samples, info, dtype, training))
