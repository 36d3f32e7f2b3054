"""Operators, from OpInfo: results, and gradients."""

import fnmatch
import functools
import itertools

import torch

from .comparison import DTYPES, Test, compare, gradients as gradients_of, moved, on_cpu, tolerance

# Numbers are drawn, or memory is not filled.
DRAWS = ("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "nn.functional.*dropout*",
         "nn.functional.rrelu", "nn.functional.fractional_max_pool*", "nn.functional.multi_head_attention_forward", "rand_like", "randint",
         "randint_like", "randn", "randn_like", "uniform", "empty", "empty_*", "new_empty*", "svd_lowrank", "pca_lowrank")
# Of equal elements either may be the one that is found: the first result is compared, places are not.
TIES = ("sort", "topk", "kthvalue", "mode", "median", "nanmedian")


def run_sample(op, sample, dtype, backward, device):
    here = (sample.input, sample.args, sample.kwargs)
    there = moved(here, device)
    draws = any(fnmatch.fnmatch(op.name, name) for name in DRAWS) or sample.kwargs.get("dropout_p", 0) > 0
    wanted = on_cpu(op, here[0], *here[1], **here[2])
    wanted_gradients = on_cpu(gradients_of, wanted, here) if backward else []
    got = op(there[0], *there[1], **there[2])
    if op.name in TIES and not isinstance(got, torch.Tensor):
        got, wanted = got[0], wanted[0]
    compare(got, wanted, tolerance(op, dtype), draws)
    if backward:
        compare(gradients_of(got, there), wanted_gradients, tolerance(op, dtype), draws)


def samples(op, dtype, backward, limit):
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=backward), limit):
        yield functools.partial(run_sample, op, sample, dtype, backward)


def tests(backward):
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if backward and not op.supports_autograd:
            continue
        supported = op.supported_backward_dtypes("cpu") if backward else op.supported_dtypes("cpu")
        for dtype in DTYPES:
            if dtype in supported and (dtype.is_floating_point or not backward):
                name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
                yield Test(name, dtype, functools.partial(samples, op, dtype, backward))


results, gradients = functools.partial(tests, False), functools.partial(tests, True)
