#!/usr/bin/env python3
"""Packs wheels (PEP 427): the package tenon from a build, or a plugin as a package of its own.

usage: wheel.py [--auditwheel PROGRAM] WHAT OUT

       tenon BUILD       tenon-VERSION-cp311-abi3-PLATFORM.whl: the package, libtenon, devices cpu and sim
       opencl BUILD      tenon_opencl-VERSION-py3-none-PLATFORM.whl: that plugin, and the OpenCL loader
       cuda BUILD        tenon_cuda13-VERSION-py3-none-PLATFORM.whl: that plugin; NVIDIA's own wheels bring its libraries
       torch BUILD       tenon_torch-VERSION-cp3*-PLATFORM.whl: the bridge, for the minor versions of PyTorch and Python that it
                         was built with
       plugin NAME VERSION FILE.so
                         NAME-VERSION-py3-none-PLATFORM.whl: what `tenon` finds when both are installed

What is in a plugin's wheel is its shared object alone, in tenon_plugins/NAME/. No Python of it is ever run, and it
depends on nothing: neither on tenon nor on a version of Python. With auditwheel the wheel is repaired (tools/repair_wheel.py).
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True  # beside what `tenon new-plugin` copies
sys.path.insert(0, str(ROOT / "plugin-sdk/template/wheel"))
from plugin_wheel import pack, platform, stripped  # noqa: E402  (what a vendor packs with)
from repair_wheel import repair  # noqa: E402

DEVICES = ("cpu", "sim")
# By their sonames, what other wheels bring: a second copy in a process would be another library.
BROUGHT = {"tenon": ["libtenon.so.*"], "torch": ["libtenon.so.*", "libtorch*.so", "libc10*.so"]}
# What the plugin opens at run time, where no toolkit has it, by the names that NVIDIA gives to what is for CUDA 13.
CUDA_EXTRAS = {"nvrtc": ["nvidia-cuda-nvrtc >=13,<14"],
               "all": ["nvidia-cuda-nvrtc >=13,<14", "nvidia-cublas >=13,<14", "nvidia-cudnn-cu13 >=9,<10"]}


def python_version(version):
    """1.0.0-rc1 as PEP 440 writes it."""
    return version.replace("-rc", "rc").replace("-", "+")


def pack_ours(out, name, version, tag, summary, files, readme="", more=()):
    metadata = [("Summary", summary), ("License-Expression", "Apache-2.0"), ("License-File", "LICENSE"), ("Requires-Python", ">=3.11"), *more]
    licence = f"{name.replace('-', '_')}-{version}.dist-info/licenses/LICENSE"
    return pack(out, name, version, tag, metadata, {**files, licence: (ROOT / "LICENSE").read_bytes()}, readme)


def one(folder, pattern):
    found = [p for p in pathlib.Path(folder).rglob(pattern) if p.is_file() and not p.is_symlink()]
    if len(found) != 1:
        sys.exit(f"wheel.py: {len(found)} files {pattern} in {folder}, should be one; is the package built (it needs Python's "
                 "headers)?")
    return found[0]


def installed(build, tag, library):
    """The package with that library as it is installed: {path in it: bytes}."""
    with tempfile.TemporaryDirectory() as stage:
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", stage, "--tags", tag], check=True)
        package = one(stage, library).parent
        return {p.relative_to(package).as_posix(): stripped(p) if p.suffix == ".so" else p.read_bytes()
                for p in sorted(package.rglob("*")) if p.is_file() and "__pycache__" not in p.parts}


def tenon_version():
    return python_version((ROOT / "meson.build").read_text().split("version: '")[1].split("'")[0])


def pack_tenon(build, out):
    files = {f"tenon/{path}": data for path, data in installed(build, "python", "_core.abi3.so").items()}
    files["tenon/py.typed"] = b""
    for folder, name in (("core", "libtenon.so"), ("nn", "libtenon-nn.so")):  # by their sonames
        library = one(build / folder, f"{name}.[0-9]*[0-9]")
        files["tenon/lib/" + ".".join(library.name.split(".")[:3])] = stripped(library)
    for device in DEVICES:
        plugin = one(build / "plugins" / device, f"libtenon_{device}.so")
        files[f"tenon/lib/tenon/plugins/{plugin.name}"] = stripped(plugin)
    return pack_ours(out, "tenon", tenon_version(), f"cp311-abi3-{platform()}",
                     "Tensors with gradients on devices that are plugins", files, (ROOT / "README.md").read_text())


def pack_torch(build, out):
    """Of PyTorch a minor version is asked for: its classes change from one to the next."""
    options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", build], check=True, capture_output=True).stdout)
    python = next(option["value"] for option in options if option["name"] == "torch")
    if not python:
        sys.exit("wheel.py: the build has no bridge to PyTorch; -Dtorch names a Python that has it")
    about = subprocess.run([python, ROOT / "python/torch/about.py"], check=True, capture_output=True, text=True).stdout.splitlines()
    minor = ".".join(about[3].split(".")[:2])
    tag = "cp" + about[2].split("-")[1]  # of cpython-311-x86_64-linux-gnu.so
    script = f"tenon_torch-{tenon_version()}+torch{minor}.data/scripts/tenon-conform-torch"
    files = {script: b"#!python\nimport sys\nfrom tenon_torch.suite.worker import main\nsys.exit(main())\n"}
    files |= {f"tenon_torch/{path}": data for path, data in installed(build, "torch", "_C.cpython-*.so").items()}
    return pack_ours(out, "tenon-torch", f"{tenon_version()}+torch{minor}", f"{tag}-{tag}-{platform()}", "The devices of Tenon in PyTorch",
                     files, more=[("Requires-Dist", f"tenon =={tenon_version()}"), ("Requires-Dist", f"torch =={minor}.*")])


def pack_plugin(name, version, plugin, out, more=()):
    plugin = pathlib.Path(plugin)
    if not plugin.name.startswith("libtenon_") or plugin.suffix != ".so":
        sys.exit(f"wheel.py: {plugin.name}: a plugin is called libtenon_TYPE.so")
    return pack_ours(out, name, python_version(version), f"py3-none-{platform()}", f"Device plugin {plugin.name} for Tenon",
                     {f"tenon_plugins/{name}/{plugin.name}": stripped(plugin)}, more=more)


def pack_opencl(build, out):
    return pack_plugin("tenon-opencl", tenon_version(), one(build / "plugins/opencl", "libtenon_opencl.so"), out)


def pack_cuda(build, out):
    extras = [field for extra, needs in CUDA_EXTRAS.items()
              for field in [("Provides-Extra", extra)] + [("Requires-Dist", f'{need}; extra == "{extra}"') for need in needs]]
    return pack_plugin("tenon-cuda13", tenon_version(), one(build / "plugins/cuda", "libtenon_cuda.so"), out, extras)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--auditwheel")
    parser.add_argument("what", choices=[*OF_A_BUILD, "plugin"])
    parser.add_argument("words", nargs="+")
    given = parser.parse_args()
    if len(given.words) != (4 if given.what == "plugin" else 2):
        parser.error("too few words, or too many")
    if given.what == "plugin":
        wheel = pack_plugin(*given.words)
    else:
        wheel = OF_A_BUILD[given.what](pathlib.Path(given.words[0]).resolve(), given.words[1])
    if given.auditwheel:
        wheel = repair(wheel, given.auditwheel, BROUGHT.get(given.what, ()))
    print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB)")


OF_A_BUILD = {"tenon": pack_tenon, "opencl": pack_opencl, "cuda": pack_cuda, "torch": pack_torch}

if __name__ == "__main__":
    main()
