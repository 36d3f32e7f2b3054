"""Gradients of whole functions, and functions with a derivative of one's own."""

from . import _core
from ._core import backward, grad  # noqa: F401


class FunctionContext:
    """What forward leaves for backward."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self._to_save = ()
        self.saved_tensors = ()

    def save_for_backward(self, *tensors):
        """Tensors that backward finds as saved_tensors; that they were not written is checked."""
        self._to_save = tensors


class Function:
    """A differentiable function written in Python: subclass it with forward and backward, call apply.

        class Square(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return 2 * x * grad

    forward may return a tensor or a tuple of them; backward returns a gradient, or None, for each argument of
    forward. `n_outputs` is how many forward returns.
    """

    n_outputs = 1

    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError("forward is not written")

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("backward is not written")

    @classmethod
    def apply(cls, *args):
        places = [i for i, a in enumerate(args) if isinstance(a, _core.Tensor)]
        inputs, n_args = tuple(args[i] for i in places), len(args)
        ctx = FunctionContext(tuple(isinstance(a, _core.Tensor) and a.requires_grad for a in args))

        def forward(tensors):
            given = list(args)
            for i, tensor in zip(places, tensors):
                given[i] = tensor
            made = cls.forward(ctx, *given)
            saved, ctx._to_save = tuple(ctx._to_save), ()
            return made if isinstance(made, tuple) else (made,), saved

        def backward_(grads, saved):
            ctx.saved_tensors = saved
            try:
                made = cls.backward(ctx, *grads)
            finally:
                ctx.saved_tensors = ()
            made = made if isinstance(made, tuple) else (made,)
            if len(made) != n_args:
                raise ValueError(f"{cls.__name__}.backward returned {len(made)} gradients for {n_args} arguments")
            return tuple(made[i] for i in places)

        outputs = _core._function_apply(cls.__name__ + "Backward", forward, backward_, inputs, cls.n_outputs)
        return outputs[0] if cls.n_outputs == 1 else outputs
