"""Operators of one's own, written in Python, by the names of torch.library.

    @tenon.library.custom_op("mylib::scaled", schema="(Tensor x, float by=2.0) -> Tensor")
    def scaled(x, by):
        return x * by

They are operators like any other: C finds them, the profiler shows them, graphs capture what they call. A gradient passes
where register_autograd gave one, and through what a composite calls; elsewhere backward fails and names the operator.
"""

import inspect
import typing

from . import _core
from .autograd import Function

_defined = {}  # what was defined here, by name: to be replaced where a cell of a notebook runs again

_TYPES = {_core.Tensor: "Tensor", int: "int", float: "float", bool: "bool", str: "str", _core.dtype: "ScalarType",
          _core.device: "Device", list[int]: "int[]", list[_core.Tensor]: "Tensor[]", typing.List[int]: "int[]",
          typing.List[_core.Tensor]: "Tensor[]", typing.Sequence[int]: "int[]", typing.Sequence[_core.Tensor]: "Tensor[]"}


def _type_of(hint):
    """What a schema calls an annotation: Optional[float] is float?."""
    parts = typing.get_args(hint)
    if type(None) in parts and len(parts) == 2:
        (one,) = (part for part in parts if part is not type(None))
        return _type_of(one) + "?"
    if hint not in _TYPES:
        raise TypeError(f"{hint!r} is no annotation that a schema knows; give the schema")
    return _TYPES[hint]


def _default_of(name, value):
    """As a schema writes it."""
    plain = isinstance(value, str) and not set(value) & set("'\"\\")
    if not plain and not isinstance(value, (bool, int, float, list, tuple, type(None))):
        raise TypeError(f"argument '{name}': a schema has no way to write its default {value!r}; give the schema, or None for it")
    return repr(list(value) if isinstance(value, tuple) else value)


def infer_schema(fn, /, *, mutates_args=()):
    """infer_schema(fn, *, mutates_args=()): the schema, without a name, that a function's annotations say."""
    hints, parts, n_written = typing.get_type_hints(fn), [], 0
    is_named = False
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"*{name} stands for any number of arguments, and an operator has so many as its schema says")
        if name not in hints:
            raise TypeError(f"argument '{name}' has no annotation; annotate it, or give the schema")
        if parameter.kind == parameter.KEYWORD_ONLY and not is_named:
            is_named = True
            parts.append("*")
        kind = _type_of(hints[name])
        if name in mutates_args:
            kind = f"Tensor({chr(ord('a') + n_written)}!){kind[len('Tensor'):]}"
            n_written += 1
        default = parameter.default
        parts.append(f"{kind} {name}" + ("" if default is parameter.empty else f"={_default_of(name, default)}"))
    if n_written != len(set(mutates_args)):
        raise ValueError(f"mutates_args names arguments that are not there: {tuple(mutates_args)}")
    returned = hints.get("return", type(None))
    if returned is type(None):
        returns = "()"
    elif typing.get_origin(returned) is tuple:
        returns = "(" + ", ".join(map(_type_of, typing.get_args(returned))) + ")"
    else:
        returns = _type_of(returned)
    return f"({', '.join(parts)}) -> {returns}"


class CustomOp:
    """An operator that was defined in Python; calling it calls the operator."""

    def __init__(self, name, schema):
        self.name, self.schema, self._handlers = name, name + schema, []
        self._definition = _core._define_op(self.schema)
        self._call = _core._find_op(name.partition(".")[0])

    def __call__(self, *args, **named):
        return self._call(*args, **named)

    def __repr__(self):
        return f"<custom operator {self.schema}>"

    def register_kernel(self, device_types, fn=None):
        """register_kernel(device_types, fn=None): what runs on devices of a type ("npu"), or of several."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn):
        """register_fake(fn): what runs on the device meta, where tensors have shapes and no elements."""
        return register_kernel(self, "meta", fn)

    def register_autograd(self, backward, /, *, setup_context=None):
        """register_autograd(backward, *, setup_context=None): its derivative; see tenon.library.register_autograd."""
        register_autograd(self, backward, setup_context=setup_context)

    def unregister(self):
        """Takes it back with all that was registered for it; calls of it fail from then on."""
        for handler in reversed(self._handlers):
            _core._drop_handler(handler)
        self._handlers.clear()
        definition, self._definition = self._definition, None
        if definition is not None:
            _core._drop_op(definition)
        if _defined.get(self.name) is self:
            del _defined[self.name]


def custom_op(name, fn=None, /, *, schema=None, mutates_args=(), device_types=None, composite=False):
    """custom_op(name, fn=None, *, schema=None, mutates_args=(), device_types=None, composite=False): defines the operator "NAMESPACE::NAME"
    and says what it does: for all devices, or for the types that are named. Without fn a decorator. Without a schema
    ("(Tensor x, float by=2.0) -> Tensor") it is what the annotations say, with the arguments that fn writes in mutates_args.
    A composite is differentiated through the operators that fn calls. A definition of the same name that was made here is
    replaced."""
    if fn is None:
        return lambda function: custom_op(name, function, schema=schema, mutates_args=mutates_args, device_types=device_types,
                                          composite=composite)
    if not name.partition("::")[2]:
        raise ValueError(f"an operator is called NAMESPACE::NAME, not {name!r}")
    schema = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
    if name in _defined:
        _defined[name].unregister()
    made = CustomOp(name, schema)
    try:
        register_kernel(made, device_types, fn)
        if composite:
            _register(made, "Autograd", None, None)
    except BaseException:
        made.unregister()
        raise
    made.__doc__, made.__name__ = fn.__doc__, name
    _defined[name] = made
    return made


def register_kernel(op, device_types, fn=None, /):
    """register_kernel(op, device_types, fn=None): an implementation of an operator, one of Tenon's too ("add.Tensor"), for devices
    of a type, of several, or of all (None). What it returns is new: a result that is an argument, or a view of one, shares its memory,
    of which the schema says nothing. The newest goes before older ones, and before a plugin's kernel. It must not call the
    operator itself with tensors of that type. Without fn a decorator."""
    if fn is None:
        return lambda function: register_kernel(op, device_types, function)
    types = (device_types,) if device_types is None or isinstance(device_types, str) else tuple(device_types)
    for kind in types:
        _register(op, "Backend", kind, fn)
    return fn


def _register(op, key, device_type, fn):
    handler = _core._register_handler(op if isinstance(op, str) else op.name, key, device_type, fn)
    if isinstance(op, CustomOp):
        op._handlers.append(handler)


def _flatten(values):
    """Lists of tensors among others, and how to find them again: None for what is no list, else how long it is."""
    lengths = tuple(len(value) if isinstance(value, list) else None for value in values)
    return lengths, [one for value, n in zip(values, lengths) for one in ([value] if n is None else value)]


def _nest(lengths, flat):
    rest = iter(flat)
    return [next(rest) if n is None else [next(rest) for _ in range(n)] for n in lengths]


def register_autograd(op, backward, /, *, setup_context=None):
    """register_autograd(op, backward, *, setup_context=None): the derivative of an operator that writes none of its arguments.

    backward(ctx, *grads) gets the gradient of each result and returns one, or None, for each argument that is not keyword-only;
    for a list of tensors a list. setup_context(ctx, inputs, output) runs after the operator and saves what backward needs
    (ctx.save_for_backward, attributes of ctx); where the operator has keyword-only arguments it is called with keyword_only_inputs,
    a dict, besides."""
    name = op if isinstance(op, str) else op.name
    arguments, n_outputs = _core._op_arguments(name)
    if n_outputs == 0 or any(written for *_, written in arguments):
        raise ValueError(f"{name} writes an argument or returns nothing, and a derivative is that of results by arguments")
    if any(is_named and kind.startswith("Tensor") for _, kind, is_named, _ in arguments):
        raise ValueError(f"{name}: a tensor that is keyword-only gets no gradient")
    names = [argument for argument, _, is_named, _ in arguments if is_named]
    operator = _core._find_op(name) if isinstance(op, str) else op

    class Recorded(Function):
        @staticmethod
        def forward(ctx, lengths, named, *flat):
            inputs = _nest(lengths, flat)
            output = operator(*inputs, **named)
            ctx._lengths, ctx.needs_input_grad = lengths, tuple(
                any(n) if isinstance(n, list) else n for n in _nest(lengths, ctx.needs_input_grad[2:]))
            if setup_context is not None:
                more = {"keyword_only_inputs": named} if names else {}
                setup_context(ctx=ctx, inputs=tuple(inputs), output=output, **more)
            return output

        @staticmethod
        def backward(ctx, *grads):
            made = backward(ctx, *grads)
            made = made if isinstance(made, tuple) else (made,)
            if len(made) != len(ctx._lengths):
                raise ValueError(f"the backward of {name} returned {len(made)} gradients for {len(ctx._lengths)} arguments")
            flat = []
            for grad, n in zip(made, ctx._lengths):
                if n is not None and grad is not None and len(grad) != n:
                    raise ValueError(f"the backward of {name} returned {len(grad)} gradients for a list of {n} tensors")
                flat += [grad] if n is None else [None] * n if grad is None else list(grad)
            return (None, None, *flat)

    Recorded.n_outputs = n_outputs
    Recorded.__name__ = "".join(part.capitalize() for part in name.partition("::")[2].split("_")) or name

    def record(*inputs, **named):
        lengths, flat = _flatten(inputs)
        return Recorded.apply(lengths, named, *flat)

    _register(op, "Autograd", None, record)
