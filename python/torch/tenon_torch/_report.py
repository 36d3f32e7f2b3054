"""What answers PyTorch's operators here."""

from . import _C, _decompositions


def report():
    """A list of (operator of PyTorch, how, by what): "operator" is one of Tenon's, "copy of NAME" a form made of another one, "by hand" C++ of
    the bridge, "decomposition" PyTorch's own in other operators, "skipped" what does not fit and why, "left to PyTorch" what it composes."""
    return sorted(_C.report() + [(name, "decomposition", "torch._decomp") for name in _decompositions.registered])


def fallback_count():
    """How often an operator ran on the CPU because a device has neither kernel nor decomposition; 0 unless TENON_FALLBACK allows it."""
    return _C.fallback_count()
