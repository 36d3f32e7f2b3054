"""Makes the plugin's wheel: `pip wheel --no-deps .`, which calls it as a build backend (PEP 517), or
`python3 plugin_wheel.py FOLDER`.

In the wheel is the shared object alone, in tenon_plugins/NAME/, where the Python package `tenon` finds it. None of your Python
is ever run, and one wheel fits every version of Python: its tag is py3-none-PLATFORM.
"""

import base64
import hashlib
import json
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent

# ---- what a wheel is (PEP 427) -------------------------------------------------------------------


def platform():
    """linux_x86_64; `auditwheel repair` finds on how old a Linux it runs: manylinux_2_NN_x86_64."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write(path, files):
    """files: {path in the wheel: bytes}, without RECORD, which is made."""
    info = next(place.split("/")[0] for place in files if place.endswith(".dist-info/WHEEL"))
    record = "".join(f"{place},{digest(data)},{len(data)}\n" for place, data in files.items()) + f"{info}/RECORD,,\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, data in {**files, f"{info}/RECORD": record.encode()}.items():
            entry = zipfile.ZipInfo(place, (2026, 1, 1, 0, 0, 0))  # the same bytes for the same content
            entry.external_attr = (0o100755 if ".so" in place or "/scripts/" in place else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


def pack(folder, name, version, tag, metadata, files, readme=""):
    """metadata: [(field, value)] besides name and version; files: {path in the wheel: bytes}."""
    base = f"{name.replace('-', '_')}-{version}"
    fields = [("Metadata-Version", "2.4"), ("Name", name), ("Version", version), *metadata, ("Description-Content-Type", "text/markdown")]
    return write(pathlib.Path(folder) / f"{base}-{tag}.whl", {
        **files,
        f"{base}.dist-info/METADATA": ("".join(f"{field}: {value}\n" for field, value in fields) + "\n" + readme).encode(),
        f"{base}.dist-info/WHEEL": f"Wheel-Version: 1.0\nGenerator: tenon\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    })


def stripped(library):
    """Its bytes, without what debuggers read, where there is `strip`."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / library.name
        try:
            subprocess.run(["strip", "--strip-debug", "-o", copy, library], check=True)
        except FileNotFoundError:
            return library.read_bytes()
        return copy.read_bytes()


# ---- this plugin's -------------------------------------------------------------------------------


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import tomllib  # of Python 3.11

    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    metadata = [("Summary", project["description"]), ("Requires-Python", project["requires-python"])]
    metadata += [("Requires-Dist", need) for need in project["dependencies"]]
    with tempfile.TemporaryDirectory() as build:
        meson = ["setup", "--buildtype=release", build, HERE], ["compile", "-C", build]
        for words in meson:
            subprocess.run(["meson", *words], check=True)
        told = subprocess.run(["meson", "introspect", "--projectinfo", build], check=True, capture_output=True)
        plugin, = pathlib.Path(build).glob("libtenon_*.so")
        files = {f"tenon_plugins/{project['name']}/{plugin.name}": stripped(plugin)}
    return pack(wheel_directory, project["name"], json.loads(told.stdout)["version"], f"py3-none-{platform()}", metadata, files,
                (HERE / project["readme"]).read_text()).name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("there is no source distribution; `meson dist -C build` makes an archive")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    print(pathlib.Path(sys.argv[1]) / build_wheel(sys.argv[1]))
