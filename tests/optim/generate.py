#!/usr/bin/env python3
"""Writes expected.inc beside it: what PyTorch's optimizers and schedulers give (2.15.0 when it was committed).

usage: /tmp/torch/bin/python tests/optim/generate.py     needs PyTorch; the tests do not

A trajectory is the parameter after each of STEPS steps with given gradients, which are exact in halves. Steps in
halves are PyTorch's in f32 with parameter and state rounded after each, which is what its fused optimizers give. PyTorch has no Lion:
that is its authors' (github.com/google/automl, lion/lion_pytorch.py).
"""

import pathlib
import warnings

import torch

STEPS, N = 10, 4
START = [0.5, -1.0, 2.0, -0.25]
GRADS = [[((7 * t + 5 * i + 3 * t * i) % 23 - 11) / 8 for i in range(N)] for t in range(STEPS)]
DTYPES = {torch.float32: 9, torch.float64: 17, torch.bfloat16: 5, torch.float16: 6}  # digits that tell all numbers apart


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                grad = -p.grad if group["maximize"] else p.grad
                p.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                beta1, beta2 = group["betas"]
                p.add_(torch.sign(state["exp_avg"] * beta1 + grad * (1 - beta1)), alpha=-group["lr"])
                state["exp_avg"].mul_(beta2).add_(grad, alpha=1 - beta2)


OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
              "rmsprop": torch.optim.RMSprop, "adagrad": torch.optim.Adagrad, "lion": Lion}

# The options that differ from the defaults. The rates make steps that bf16 can tell apart.
CASES = [
    ("sgd", dict(lr=0.1)),
    ("sgd", dict(lr=0.1, weight_decay=0.2, maximize=True)),
    ("sgd", dict(lr=0.05, momentum=0.9)),
    ("sgd", dict(lr=0.05, momentum=0.8, dampening=0.5, weight_decay=0.1)),
    ("sgd", dict(lr=0.05, momentum=0.9, nesterov=True, maximize=True)),
    ("adam", dict()),
    ("adam", dict(lr=0.05)),
    ("adam", dict(lr=0.05, beta1=0.8, beta2=0.9, eps=1e-3, weight_decay=0.3)),
    ("adam", dict(lr=0.05, weight_decay=0.3, maximize=True)),
    ("adam", dict(lr=0.05, beta2=0.7, amsgrad=True)),
    ("adam", dict(lr=0.05, beta2=0.7, amsgrad=True, weight_decay=0.2, maximize=True)),
    ("adamw", dict()),
    ("adamw", dict(lr=0.05, beta1=0.8, beta2=0.9, eps=1e-3, weight_decay=0.3, maximize=True)),
    ("adamw", dict(lr=0.05, beta2=0.7, weight_decay=0.2, amsgrad=True)),
    ("rmsprop", dict()),
    ("rmsprop", dict(lr=0.05, alpha=0.9, eps=1e-3, weight_decay=0.2)),
    ("rmsprop", dict(lr=0.02, alpha=0.9, momentum=0.5)),
    ("rmsprop", dict(lr=0.02, alpha=0.8, eps=1e-2, centered=True, maximize=True)),
    ("rmsprop", dict(lr=0.02, alpha=0.8, eps=1e-2, centered=True, momentum=0.5, weight_decay=0.1)),
    ("adagrad", dict()),
    ("adagrad", dict(lr=0.2, lr_decay=0.1, weight_decay=0.1)),
    ("adagrad", dict(lr=0.2, initial_accumulator_value=0.5, eps=1e-3, maximize=True)),
    ("lion", dict()),
    ("lion", dict(lr=0.05, beta1=0.7, beta2=0.8, weight_decay=0.3)),
    ("lion", dict(lr=0.05, maximize=True)),
]


def optimizer_of(name, options, p):
    options = dict(options)
    if "beta1" in options or "beta2" in options:
        default = 0.99 if name == "lion" else 0.999
        options["betas"] = (options.pop("beta1", 0.9), options.pop("beta2", default))
    if name == "sgd":
        options.setdefault("lr", 1e-3)
    return OPTIMIZERS[name]([p], **options)


def trajectory(name, options, dtype):
    half = dtype.itemsize == 2
    p = torch.tensor(START, dtype=torch.float32 if half else dtype, requires_grad=True)
    optimizer = optimizer_of(name, options, p)
    points = []
    for grad in GRADS:
        p.grad = torch.tensor(grad, dtype=p.dtype)
        optimizer.step()
        if half:
            with torch.no_grad():
                for t in [p, *optimizer.state[p].values()]:
                    if isinstance(t, torch.Tensor) and t.shape == p.shape:
                        t.copy_(t.to(dtype))
        points += p.detach().double().tolist()
    return points


LR = torch.optim.lr_scheduler
LR_STEPS = 20
SCHEDULES = [
    ("step", "tn_lr_step(0.1, t, 3, 0.5)", lambda o: LR.StepLR(o, 3, 0.5)),
    ("multi_step", "tn_lr_multi_step(0.1, t, (int64_t[]){2, 5, 5, 11}, 4, 0.5)",
     lambda o: LR.MultiStepLR(o, [2, 5, 5, 11], 0.5)),
    ("exponential", "tn_lr_exponential(0.1, t, 0.9)", lambda o: LR.ExponentialLR(o, 0.9)),
    ("linear", "tn_lr_linear(0.1, t, 5, 1.0 / 3, 1)", lambda o: LR.LinearLR(o)),
    ("linear_down", "tn_lr_linear(0.1, t, 12, 1, 0.25)", lambda o: LR.LinearLR(o, 1, 0.25, 12)),
    ("cosine", "tn_lr_cosine(0.1, t, 19, 0)", lambda o: LR.CosineAnnealingLR(o, 19)),
    ("cosine_and_back", "tn_lr_cosine(0.1, t, 6, 0.01)", lambda o: LR.CosineAnnealingLR(o, 6, 0.01)),
    ("restarts", "tn_lr_cosine_restarts(0.1, t, 4, 1, 0)", lambda o: LR.CosineAnnealingWarmRestarts(o, 4)),
    ("longer_restarts", "tn_lr_cosine_restarts(0.1, t, 3, 2, 0.01)",
     lambda o: LR.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)),
    ("one_cycle", "tn_lr_one_cycle(0.1, t, cycle(20, 0.3, 25, 1e4, false, false))",
     lambda o: LR.OneCycleLR(o, 0.1, 20, cycle_momentum=False)),
    ("one_cycle_linear", "tn_lr_one_cycle(0.1, t, cycle(20, 0.25, 10, 100, true, false))",
     lambda o: LR.OneCycleLR(o, 0.1, 20, pct_start=0.25, div_factor=10, final_div_factor=100, anneal_strategy="linear",
                             cycle_momentum=False)),
    ("one_cycle_three", "tn_lr_one_cycle(0.1, t, cycle(23, 0.4, 25, 1e4, false, true))",
     lambda o: LR.OneCycleLR(o, 0.1, 23, pct_start=0.4, three_phase=True, cycle_momentum=False)),
]


def rates(make):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    schedule = make(optimizer)
    out = []
    for _ in range(LR_STEPS):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return out


def c_value(value):
    return str(value).lower() if isinstance(value, bool) else repr(value)


def wrapped(numbers, indent, per_line=4, digits=17):
    lines = [numbers[i:i + per_line] for i in range(0, len(numbers), per_line)]
    return ",\n".join(indent + ", ".join(f"{x:.{digits}g}" for x in line) for line in lines)


def main():
    warnings.simplefilter("ignore")  # of schedulers that are stepped past their end
    out = [f"/* Written by generate.py with PyTorch {torch.__version__.split('+')[0]}. */\n",
           f"enum {{ STEPS = {STEPS}, N = {N}, LR_STEPS = {LR_STEPS} }};\n",
           "static const double start[N] = {\n" + wrapped(START, "    ") + "};\n",
           "static const double grads[STEPS][N] = {",
           *(f"    {{{', '.join(map(repr, g))}}}," for g in GRADS), "};\n",
           "/* X(id, optimizer, options, (the parameter after each step in f32), (f64), (bf16), (f16)) */",
           "#define TRAJECTORIES(X) \\"]
    for i, (name, options) in enumerate(CASES):
        text = " ".join(f"o.{k} = {c_value(v)};" for k, v in options.items())
        points = [f"({wrapped(trajectory(name, options, dtype), '      ', N, digits).lstrip()})"
                  for dtype, digits in DTYPES.items()]
        out.append(f"    X({name}_{i}, {name}, {{ {text} }}, \\\n     " + ",\n     ".join(points).replace("\n", " \\\n") + ") \\")
    out += ["", "/* X(name, call, the rate of each step) */", "#define SCHEDULES(X) \\"]
    for name, call, make in SCHEDULES:
        numbers = wrapped(rates(make), "      ").replace("\n", " \\\n")
        out.append(f"    X({name}, ({call}), \\\n{numbers}) \\")
    out += ["", ""]
    (pathlib.Path(__file__).parent / "expected.inc").write_text("\n".join(out))


if __name__ == "__main__":
    main()
