"""The first result of a fresh Python process; prints the process's resident memory in MiB."""

import torch

x = torch.full((1,), 2.0)
assert torch.add(x, x).item() == 4.0
with open("/proc/self/status", encoding="ascii") as status:
    print(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS:")), flush=True)
