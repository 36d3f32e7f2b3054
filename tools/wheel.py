#!/usr/bin/env python3
"""Packs wheels (PEP 427): the package tenon from a build, or a plugin as a package of its own.

usage: wheel.py tenon BUILD OUT            tenon-VERSION-cp311-abi3-linux_*.whl: the package, libtenon, devices cpu and sim
       wheel.py torch BUILD OUT             tenon_torch-VERSION-cp3*-linux_*.whl: the bridge, for the minor versions of PyTorch and
                                           Python that it was built with
       wheel.py plugin NAME VERSION FILE.so OUT
                                           NAME-VERSION-py3-none-linux_*.whl: what `tenon` finds when both are installed

What is in a plugin's wheel is its shared object alone, in tenon_plugins/NAME/. No Python of it is ever run, and it
depends on nothing: neither on tenon nor on a version of Python.
"""

import base64
import hashlib
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
MACHINE = f"linux_{platform.machine()}"
DEVICES = ("cpu", "sim")


def python_version(version):
    """1.0.0-rc1 as PEP 440 writes it."""
    return version.replace("-rc", "rc").replace("-", "+")


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def pack(out, name, version, tag, pure, summary, files, readme="", needs=()):
    """files: {path in the wheel: bytes}"""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = (f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\nLicense: Apache-2.0\n"
                f"Requires-Python: >=3.11\n{''.join(f'Requires-Dist: {need}' + chr(10) for need in needs)}Description-Content-Type: text/markdown\n\n{readme}")
    wheel = f"Wheel-Version: 1.0\nGenerator: tenon\nRoot-Is-Purelib: {str(pure).lower()}\nTag: {tag}\n"
    files = dict(files)
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/WHEEL"] = wheel.encode()
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = "".join(f"{path},{digest(data)},{len(data)}\n" for path, data in files.items()) + f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    path = pathlib.Path(out) / f"{name.replace('-', '_')}-{version}-{tag}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, data in files.items():
            entry = zipfile.ZipInfo(place, (2026, 1, 1, 0, 0, 0))  # the same bytes for the same content
            entry.external_attr = (0o100755 if ".so" in place or "/scripts/" in place else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    print(path)


def one(folder, pattern):
    found = [p for p in pathlib.Path(folder).rglob(pattern) if p.is_file() and not p.is_symlink()]
    if len(found) != 1:
        sys.exit(f"wheel.py: {len(found)} files {pattern} in {folder}, should be one; is the package built (it needs Python's "
                 "headers)?")
    return found[0]


def library_of(path):
    """A shared object without what debuggers read, where there is `strip`."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / path.name
        try:
            subprocess.run(["strip", "--strip-debug", "-o", copy, path], check=True)
        except FileNotFoundError:
            return path.read_bytes()
        return copy.read_bytes()


def pack_tenon(build, out):
    build = pathlib.Path(build).resolve()
    files = {f"tenon/{path}": data for path, data in installed(build, "python", "_core.abi3.so").items()}
    files["tenon/py.typed"] = b""
    for folder, name in (("core", "libtenon.so"), ("nn", "libtenon-nn.so")):  # by their sonames
        library = one(build / folder, f"{name}.[0-9]*[0-9]")
        files["tenon/lib/" + ".".join(library.name.split(".")[:3])] = library_of(library)
    for device in DEVICES:
        plugin = one(build / "plugins" / device, f"libtenon_{device}.so")
        files[f"tenon/lib/tenon/plugins/{plugin.name}"] = library_of(plugin)
    pack(out, "tenon", tenon_version(), f"cp311-abi3-{MACHINE}", False,
         "Tensors with gradients on devices that are plugins", files, (ROOT / "README.md").read_text())


def installed(build, tag, library):
    """The package with that library as it is installed: {path in it: bytes}."""
    with tempfile.TemporaryDirectory() as stage:
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", stage, "--tags", tag], check=True)
        package = one(stage, library).parent
        return {p.relative_to(package).as_posix(): library_of(p) if p.suffix == ".so" else p.read_bytes()
                for p in sorted(package.rglob("*")) if p.is_file() and "__pycache__" not in p.parts}


def tenon_version():
    return python_version((ROOT / "meson.build").read_text().split("version: '")[1].split("'")[0])


def pack_torch(build, out):
    """Of PyTorch a minor version is asked for: its classes change from one to the next."""
    build = pathlib.Path(build).resolve()
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
    pack(out, "tenon-torch", f"{tenon_version()}+torch{minor}", f"{tag}-{tag}-{MACHINE}", False, "The devices of Tenon in PyTorch", files,
         needs=(f"tenon =={tenon_version()}", f"torch =={minor}.*"))


def pack_plugin(name, version, plugin, out):
    plugin = pathlib.Path(plugin)
    if not plugin.name.startswith("libtenon_") or plugin.suffix != ".so":
        sys.exit(f"wheel.py: {plugin.name}: a plugin is called libtenon_TYPE.so")
    pack(out, name, python_version(version), f"py3-none-{MACHINE}", False, f"Device plugin {plugin.name} for Tenon",
         {f"tenon_plugins/{name}/{plugin.name}": library_of(plugin)})


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "tenon":
        pack_tenon(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "torch":
        pack_torch(*sys.argv[2:])
    elif len(sys.argv) == 6 and sys.argv[1] == "plugin":
        pack_plugin(*sys.argv[2:])
    else:
        sys.exit(__doc__)
