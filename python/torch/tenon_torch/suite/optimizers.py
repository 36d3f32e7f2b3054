"""Optimizers, from OptimizerInfo: parameters and state after steps on one model, as PyTorch's CPU has them, also from a saved state on."""

import copy
import functools
import io
import itertools

import torch

from .comparison import ADDED_UP, Test, compare, on_cpu

STEPS = 3  # before the state is saved, and after


def model(dtype, info):
    """As PyTorch's own comparison of optimizers has it; Muon takes matrices alone."""
    torch.manual_seed(1)
    matrices = info.optim_cls.__name__ == "Muon"
    layers = (torch.nn.Linear(5, 3, bias=not matrices), torch.nn.Sigmoid(), torch.nn.Linear(3, 2, bias=not matrices), torch.nn.Sigmoid())
    return torch.nn.Sequential(*layers).to(dtype), torch.rand(4, 5, dtype=dtype)


def walk(net, x, optimizer):
    def closure():
        optimizer.zero_grad()
        loss = (net(x) * torch.arange(1, 3, dtype=x.dtype, device=x.device)).sum()
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)


def trained(info, options, net, x):
    """Parameters, and the optimizer's state, after steps with one optimizer, then with another that goes on from its saved state."""
    optimizer = info.optim_cls(net.parameters(), **copy.deepcopy(options))
    walk(net, x, optimizer)
    saved = io.BytesIO()
    torch.save(optimizer.state_dict(), saved)
    saved.seek(0)
    again = info.optim_cls(net.parameters(), **copy.deepcopy(options))
    again.load_state_dict(torch.load(saved))
    walk(net, x, again)
    return list(net.parameters()), [t for t in torch.utils._pytree.tree_leaves(again.state_dict()["state"]) if isinstance(t, torch.Tensor)]


def run_sample(info, options, dtype, device):
    net, x = model(dtype, info)
    there, there_x = copy.deepcopy(net).to(device), x.to(device)
    wanted = on_cpu(trained, info, options, net, x)
    got = trained(info, options, there, there_x)
    for mine, theirs in zip(got, wanted):
        compare(mine, theirs, ADDED_UP.get(dtype, (None, None)))


def samples(info, dtype, limit):
    """Each of PyTorch's settings, with foreach and differentiable, too, where the optimizer has them."""
    from torch.testing._internal.common_optimizers import _get_optim_inputs_including_global_cliquey_kwargs as settings

    for sample in itertools.islice(settings("cpu", dtype, info, skip=("fused",)), 2 * limit):
        yield functools.partial(run_sample, info, sample.kwargs, dtype)
    if "foreach" in info.supported_impls:
        yield functools.partial(run_sample, info, {"foreach": True}, dtype)


def tests():
    from torch.testing._internal.common_optimizers import optim_db

    for info in optim_db:
        for dtype in (torch.float32, torch.float64):
            yield Test(info.name, dtype, functools.partial(samples, info, dtype))
