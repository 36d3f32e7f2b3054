"""PyTorch's own tests, from its wheel, on a device of Tenon: `python -m tenon_torch.suite`.

Samples that PyTorch keeps of its operators (OpInfo), modules (ModuleInfo) and optimizers (OptimizerInfo) run on PyTorch's CPU and on the
device, and what comes out is compared by torch.testing. A test is one of them in one dtype.
"""

from . import modules, operators, optimizers

KINDS = {"operator": operators.results, "gradient": operators.gradients, "module": modules.tests, "optimizer": optimizers.tests}
