"""Modules: parameters and buffers by name, training and evaluation."""

from .._core import Tensor


class Parameter(Tensor):
    """A leaf that a module finds among its attributes."""

    def __new__(cls, data, requires_grad=True):
        self = super().__new__(cls, data.detach())
        self.requires_grad = requires_grad
        return self

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()


class Module:
    """A part of a model: subclass it, set parameters and modules as attributes in __init__, write forward."""

    def __init__(self):
        self.__dict__.update(_parameters={}, _buffers={}, _modules={}, training=True)

    def forward(self, *inputs):
        raise NotImplementedError(f"{type(self).__name__}.forward is not written")

    def __call__(self, *inputs, **named):
        return self.forward(*inputs, **named)

    # ---- attributes ----

    def __setattr__(self, name, value):
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}.__init__ must call super().__init__() first")
        kind = "_parameters" if isinstance(value, Parameter) else "_modules" if isinstance(value, Module) else None
        if kind is None and name in self._buffers and (value is None or isinstance(value, Tensor)):
            kind = "_buffers"
        if kind is None and value is None and name in self._parameters:
            kind = "_parameters"
        for place in ("_parameters", "_buffers", "_modules"):
            if place != kind:
                self.__dict__[place].pop(name, None)
        if kind:
            self.__dict__.pop(name, None)
            self.__dict__[kind][name] = value
        else:
            self.__dict__[name] = value

    def __getattr__(self, name):
        for place in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(place, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")

    def __delattr__(self, name):
        for place in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__[place]:
                del self.__dict__[place][name]
                return
        super().__delattr__(name)

    def register_buffer(self, name, tensor):
        """A tensor that is saved with the model and is no parameter."""
        self.__dict__.pop(name, None)
        self._buffers[name] = tensor

    def register_parameter(self, name, parameter):
        self.__dict__.pop(name, None)
        self._parameters[name] = parameter

    def add_module(self, name, module):
        self.__dict__.pop(name, None)
        self._modules[name] = module

    # ---- what it consists of ----

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self):
        return (module for _, module in self.named_modules())

    def children(self):
        return (module for module in self._modules.values() if module is not None)

    def _named(self, place, prefix):
        seen = set()
        for path, module in self.named_modules(prefix):
            for name, tensor in module.__dict__[place].items():
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield f"{path}.{name}" if path else name, tensor

    def named_parameters(self, prefix=""):
        return self._named("_parameters", prefix)

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self, prefix=""):
        return self._named("_buffers", prefix)

    def buffers(self):
        return (buffer for _, buffer in self.named_buffers())

    # ---- state ----

    def state_dict(self):
        """{name: tensor} of all parameters and buffers, which share memory with them."""
        state = {}
        for path, module in self.named_modules():
            for place in ("_parameters", "_buffers"):
                for name, tensor in module.__dict__[place].items():
                    if tensor is not None:
                        state[f"{path}.{name}" if path else name] = tensor.detach()
        return state

    def load_state_dict(self, state, strict=True):
        """Copies tensors into parameters and buffers; names that are missing or unknown are an error where strict."""
        own = self.state_dict()
        missing, unknown = [n for n in own if n not in state], [n for n in state if n not in own]
        if strict and (missing or unknown):
            raise KeyError(f"{type(self).__name__}: missing in the state: {missing}; not in the model: {unknown}")
        for name, tensor in own.items():
            if name in state and tuple(state[name].shape) != tensor.shape:
                raise ValueError(f"{name}: the state has {list(state[name].shape)}, the model {list(tensor.shape)}")
        for name, tensor in own.items():
            if name in state:
                tensor.copy_(state[name].to(tensor.device))
        return missing, unknown

    # ---- changes ----

    def apply(self, fn):
        """Calls fn with each module, the inner ones first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        for module in self.modules():
            module.__dict__["training"] = mode
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def to(self, *to, **named):
        """Moves or converts parameters and buffers (floating ones alone are converted). Parameters are new objects:
        make the optimizer afterwards."""
        def move(tensor):
            made = tensor.detach().to(*to, **named)
            if made.dtype is not tensor.dtype and not tensor.dtype.is_floating_point:
                made = tensor.detach().to(device=made.device)
            return made

        moved = {}
        for module in self.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    if id(parameter) not in moved:
                        moved[id(parameter)] = parameter, Parameter(move(parameter), parameter.requires_grad)
                    module._parameters[name] = moved[id(parameter)][1]
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = move(buffer)
        return self

    def extra_repr(self):
        return ""

    def __repr__(self):
        lines = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        inner = self.extra_repr() if not lines else "\n  " + "\n  ".join(lines) + "\n"
        return f"{type(self).__name__}({inner})"


class ModuleList(Module):
    """A list of modules, which is no function itself."""

    def __init__(self, modules=()):
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module):
        self.add_module(str(len(self._modules)), module)
        return self

    def __getitem__(self, i):
        return list(self._modules.values())[i]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())


class Sequential(ModuleList):
    """Modules one after the other."""

    def __init__(self, *modules):
        super().__init__(modules)

    def forward(self, x):
        for module in self:
            x = module(x)
        return x


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules=()):
        super().__init__()
        for name, module in dict(modules).items():
            self.add_module(name, module)

    def __getitem__(self, name):
        return self._modules[name]

    def __setitem__(self, name, module):
        self.add_module(name, module)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def items(self):
        return self._modules.items()
