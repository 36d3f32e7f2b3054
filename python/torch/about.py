"""Says to the build where PyTorch is, where Python's headers are, and how its extensions are called.

PyTorch is not imported: to build against it nothing that it needs to run has to be there.
"""

import importlib.metadata
import importlib.util
import sysconfig

print(*importlib.util.find_spec("torch").submodule_search_locations)
print(sysconfig.get_paths()["include"])
print(sysconfig.get_config_var("EXT_SUFFIX").removeprefix("."))
print(importlib.metadata.version("torch"))
