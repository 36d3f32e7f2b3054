#!/usr/bin/env python3
"""Packs wheels (PEP 427): the package tenon from a build, or a plugin as a package of its own.

usage: wheel.py tenon BUILD OUT            tenon-VERSION-cp311-abi3-linux_*.whl: the package, libtenon, devices cpu and sim
       wheel.py plugin NAME VERSION FILE.so OUT
                                           NAME-VERSION-py3-none-linux_*.whl: what `tenon` finds when both are installed

What is in a plugin's wheel is its shared object alone, in tenon_plugins/NAME/. No Python of it is ever run, and it
depends on nothing: neither on tenon nor on a version of Python.
"""

import base64
import hashlib
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


def pack(out, name, version, tag, pure, summary, files, readme=""):
    """files: {path in the wheel: bytes}"""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = (f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\nLicense: Apache-2.0\n"
                f"Requires-Python: >=3.11\nDescription-Content-Type: text/markdown\n\n{readme}")
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
            entry.external_attr = (0o755 if ".so" in place else 0o644) << 16
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
    with tempfile.TemporaryDirectory() as stage:
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", stage, "--tags",
                        "python"], check=True)
        package = one(stage, "_core.abi3.so").parent
        files = {f"tenon/{p.relative_to(package).as_posix()}": library_of(p) if p.suffix == ".so" else p.read_bytes() for p in sorted(package.rglob("*"))
                 if p.is_file() and "__pycache__" not in p.parts}
        files["tenon/py.typed"] = b""
    for folder, name in (("core", "libtenon.so"), ("nn", "libtenon-nn.so")):  # by their sonames
        library = one(build / folder, f"{name}.[0-9]*[0-9]")
        files["tenon/lib/" + ".".join(library.name.split(".")[:3])] = library_of(library)
    for device in DEVICES:
        plugin = one(build / "plugins" / device, f"libtenon_{device}.so")
        files[f"tenon/lib/tenon/plugins/{plugin.name}"] = library_of(plugin)
    version = (ROOT / "meson.build").read_text().split("version: '")[1].split("'")[0]
    pack(out, "tenon", python_version(version), f"cp311-abi3-{MACHINE}", False,
         "Tensors with gradients on devices that are plugins", files, (ROOT / "README.md").read_text())


def pack_plugin(name, version, plugin, out):
    plugin = pathlib.Path(plugin)
    if not plugin.name.startswith("libtenon_") or plugin.suffix != ".so":
        sys.exit(f"wheel.py: {plugin.name}: a plugin is called libtenon_TYPE.so")
    pack(out, name, python_version(version), f"py3-none-{MACHINE}", False, f"Device plugin {plugin.name} for Tenon",
         {f"tenon_plugins/{name}/{plugin.name}": library_of(plugin)})


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "tenon":
        pack_tenon(*sys.argv[2:])
    elif len(sys.argv) == 6 and sys.argv[1] == "plugin":
        pack_plugin(*sys.argv[2:])
    else:
        sys.exit(__doc__)
