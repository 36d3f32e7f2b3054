"""Says to the build where PyTorch is, where Python's headers are, and how its extensions are called."""

import sysconfig

import torch

print(torch.__path__[0])
print(sysconfig.get_paths()["include"])
print(sysconfig.get_config_var("EXT_SUFFIX").removeprefix("."))
print(torch.__version__)
