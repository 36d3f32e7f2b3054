"""Small models in plain PyTorch, and their losses on a device beside PyTorch's CPU."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    """Of ResNet (He et al., 2016)."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.shortcut = nn.Identity() if stride == 1 and channels == out else nn.Sequential(
            nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, width=8, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        blocks, channels = [], width
        for i in range(4):
            for j in range(2):
                out = width << i
                blocks.append(Block(channels, out, 2 if i > 0 and j == 0 else 1))
                channels = out
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class GPT(nn.Module):
    def __init__(self, vocabulary=64, width=32, heads=4, layers=2, length=24):
        super().__init__()
        self.heads, self.token, self.place = heads, nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
            "norm2": nn.LayerNorm(width), "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)}) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        n, length = tokens.shape
        x = self.token(tokens) + self.place(torch.arange(length, device=tokens.device))
        for layer in self.layers:
            q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2) for t in layer["qkv"](layer["norm1"](x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + layer["out"](y.transpose(1, 2).reshape(x.shape))
            x = x + layer["down"](F.gelu(layer["up"](layer["norm2"](x))))
        return self.head(self.norm(x))


def resnet_batch(i):
    generator = torch.Generator().manual_seed(i)
    y = torch.randint(0, 10, (8,), generator=generator)
    return torch.randn(8, 3, 16, 16, generator=generator) + y[:, None, None, None] / 5, y


def gpt_batch(i):
    start = torch.randint(0, 64, (8, 1), generator=torch.Generator().manual_seed(i))
    tokens = (start + torch.arange(25) * 7) % 64
    return tokens[:, :-1], tokens[:, 1:]


def losses(make, batch, optimizer, device, steps, wrap=lambda model: model):
    torch.manual_seed(0)
    model = make().to(device)
    step = optimizer(model.parameters())
    run, seen = wrap(model), []
    for i in range(steps):
        x, y = (t.to(device) for t in batch(i))
        step.zero_grad()
        out = run(x)
        loss = F.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))
        loss.backward()
        step.step()
        seen.append(loss.item())
    return seen
