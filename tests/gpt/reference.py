#!/usr/bin/env python3
"""The losses of samples/gpt as PyTorch has them: same start, same pieces of text, same optimizer.

usage: reference.py GPT TEXT > losses.txt      needs torch and numpy; GPT: the built sample

GPT writes its start weights; everything else here is PyTorch's, but for the places in the text, which are drawn
by counting (samples/gpt/corpus.h).
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import torch.nn.functional as F

SIZES = dict(context=64, width=64, layers=2, heads=2, batch=8, steps=200, seed=1)
RATE, WARM = 2e-3, SIZES["steps"] // 20
MASK = (1 << 64) - 1


def words(sizes):
    return [word for name, value in sizes.items() for word in (f"--{name}", str(value))]


def start(gpt, text):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "start.safetensors"
        subprocess.run([gpt, *words(SIZES), "--text", text, "--until", "0", "--generate", "0", "--save", file],
                       check=True, capture_output=True)
        data = file.read_bytes()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    return {name: torch.from_numpy(numpy.frombuffer(data[8 + n:][slice(*entry["data_offsets"])], "<f4")
                                   .reshape(entry["shape"]).copy()).requires_grad_()
            for name, entry in header.items() if not name.startswith("optimizer.")}


def counted_random(seed, i):
    z = (seed * 0xd1342543de82ef95 + (i + 1) * 0x9e3779b97f4a7c15) & MASK
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & MASK
    return z ^ (z >> 31)


def forward(p, tokens):
    n, t = tokens.shape
    width, heads = SIZES["width"], SIZES["heads"]
    x = p["wte.weight"][tokens] + p["wpe.weight"][:t]
    for i in range(SIZES["layers"]):
        def w(name):
            return p[f"h.{i}.{name}"]
        h = F.layer_norm(x, (width,), w("ln_1.weight"), w("ln_1.bias"))
        q, k, v = (part.view(n, t, heads, -1).transpose(1, 2)
                   for part in (h @ w("attn.c_attn.weight") + w("attn.c_attn.bias")).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, width)
        x = x + y @ w("attn.c_proj.weight") + w("attn.c_proj.bias")
        h = F.layer_norm(x, (width,), w("ln_2.weight"), w("ln_2.bias"))
        h = F.gelu(h @ w("mlp.c_fc.weight") + w("mlp.c_fc.bias"), approximate="tanh")
        x = x + h @ w("mlp.c_proj.weight") + w("mlp.c_proj.bias")
    return F.layer_norm(x, (width,), p["ln_f.weight"], p["ln_f.bias"]) @ p["wte.weight"].T


def rate(step):
    if step < WARM:
        return RATE * (step + 1) / WARM
    return 0.1 * RATE + 0.9 * RATE * (1 + math.cos(math.pi * (step - WARM) / (SIZES["steps"] - WARM))) / 2


def main(gpt, text):
    p = start(gpt, text)
    data = torch.tensor(list(pathlib.Path(text).read_bytes()))
    data = data[:len(data) - len(data) // 10]
    n, t = SIZES["batch"], SIZES["context"]
    groups = [{"params": [x for x in p.values() if x.dim() == 2], "weight_decay": 0.1},
              {"params": [x for x in p.values() if x.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95))
    for step in range(SIZES["steps"]):
        at = [counted_random(SIZES["seed"], step * n + i) % (len(data) - t) for i in range(n)]
        pieces = torch.stack([data[k:k + t + 1] for k in at])
        loss = F.cross_entropy(forward(p, pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        print(f"{step + 1} {loss.item():.9g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
