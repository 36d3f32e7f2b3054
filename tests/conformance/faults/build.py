#!/usr/bin/env python3
"""Builds faulty devices: the project's own plugins, each with one fault of the catalogue.

usage: build.py [--build BUILD] [-j N] [NAME...]

Each fault is applied to a copy of its plugin's folder and of plugins/shared. What was compiled from a changed file is compiled again, as
compile_commands.json says, and linked as ninja says with the base's other objects to
BUILD/faults/NAME/libtenon_BASE.so. Of the CPU plugin's instruction sets only the one that this machine selects gets
the fault. A device is kept while its sources and commands are the same. The base must have been built.
"""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import shlex
import shutil
import subprocess
import sys

import catalogue

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "plugins"
SOURCES = (".c", ".h", ".inc", ".cl", ".py")
DEVICE_CODE = "device_code.c" # what plugins/shared/gpu/embed.py makes of plugins/shared/gpu/device


def selected_isa():
    """What plugins/cpu/plugin.c chooses on this machine."""
    try:
        flags = set(pathlib.Path("/proc/cpuinfo").read_text().split("flags", 1)[1].splitlines()[0].split())
    except (OSError, IndexError):
        flags = set()
    if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "bmi2"} <= flags:
        return "avx512_bf16" if "avx512_bf16" in flags else "avx512"
    return "avx2" if {"avx2", "fma", "bmi2"} <= flags else "base"


def path_of(base, file):
    """Of a file as a fault names it."""
    return PLUGINS / (file if file.startswith("shared/") else f"{base}/{file}")


class Base:
    """A plugin as it was built: its sources, how each object is compiled, how all are linked."""

    def __init__(self, build, name):
        self.build, self.name = build, name
        self.library = f"plugins/{name}/libtenon_{name}.so"
        entries = json.loads((build / "compile_commands.json").read_text())
        self.objects = {e["output"]: e for e in entries if e["output"].startswith(f"plugins/{name}/")}
        if not self.objects:
            raise catalogue.Stale(f"plugins/{name} is not built in {build}")
        order = ("avx512_bf16", "avx512", "avx2", "base")
        candidates = order[order.index(selected_isa()):]
        self.isa = next((i for i in candidates if any(f"_{i}.a.p/" in o for o in self.objects)), "base")
        commands = self.ninja("commands", self.library).splitlines()
        self.link = shlex.split(commands[-1])
        self.embed = next((shlex.split(c) for c in commands if "embed.py" in c), None)
        self.depends = self.read_depends()
        digest = hashlib.sha256()
        for path in self.sources():
            digest.update(path.read_bytes())
        headers = [h for root in (ROOT, build) for h in sorted((root / "plugin-sdk" / "include").rglob("*.h"))]
        for path in headers + [ROOT / "plugins" / "plugin.map"]:
            digest.update(path.read_bytes())
        digest.update("\n".join(commands).encode())
        self.digest = digest.hexdigest()

    def sources(self):
        return sorted(path for folder in (self.name, "shared") for path in (PLUGINS / folder).rglob("*")
                      if path.suffix in SOURCES)

    def ninja(self, tool, *targets):
        return subprocess.run(["ninja", "-C", self.build, "-t", tool, *targets], check=True, capture_output=True,
                              text=True).stdout

    def read_depends(self):
        """{object: files of plugins/ that it was made from}"""
        depends, current = {}, None
        for line in self.ninja("deps", *self.objects).splitlines():
            if line.startswith(" "):
                path = (self.build / line.strip()).resolve()
                if path.is_relative_to(PLUGINS):
                    depends[current].add(path)
            elif ": #deps" in line:
                current = line.split(":")[0]
                depends[current] = set()
        for name in self.objects:
            if DEVICE_CODE in name:
                depends[name] |= {PLUGINS / "shared/elementary.h", *(PLUGINS / "shared/gpu/device").iterdir()}
        return depends

    def text(self, file):
        path = path_of(self.name, file)
        if not path.is_file():
            raise catalogue.Stale(f"there is no file {path.relative_to(ROOT)}")
        return path.read_text()

    def affected(self, files):
        """The objects that are made from any of `files`, of one instruction set."""
        paths = {path_of(self.name, file) for file in files}
        found = [o for o in sorted(self.objects) if self.depends.get(o, set()) & paths]
        sets = (self.isa, "avx512") if self.isa == "avx512_bf16" else (self.isa,)  # which has products alone
        chosen = [o for o in found if ".a.p/" not in o or any(f"_{isa}.a.p/" in o for isa in sets)]
        return chosen or found  # the fault of a set that this machine lacks is built, and nobody can tell


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}\n{done.stderr}")


def build_fault(base, fault):
    """Makes the faulty device, unless it is there, and returns its path."""
    changed = fault.apply(base.text)
    folder = base.build / "faults" / fault.name
    library, key_file = folder / f"libtenon_{base.name}.so", folder / "key"
    key = hashlib.sha256((base.digest + json.dumps(changed, sort_keys=True)).encode()).hexdigest()
    if library.exists() and key_file.exists() and key_file.read_text() == key:
        return library
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "src"
    texts = {path_of(base.name, file): text for file, text in changed.items()}
    for path in base.sources():
        to = source / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(texts.get(path, path.read_text()))

    replaced = {}
    for name in base.affected(changed):
        entry = base.objects[name]
        out = folder / name.replace("/", "_")
        replaced[name] = str(out)
        if DEVICE_CODE in name:
            file = folder / DEVICE_CODE
            python, embed, _, *inputs = base.embed
            inside = [source / (base.build / i).resolve().relative_to(ROOT) for i in (embed, *inputs)]
            run([python, inside[0], file, *inside[1:]], base.build)
        else:
            file = source / (base.build / entry["file"]).resolve().relative_to(ROOT)
        command = shlex.split(entry["command"])
        # A fault leaves variables unused, so warnings are of no use; and it is built often and run little.
        # Before the project's own root, from which includes are named.
        first = next(i for i, a in enumerate(command) if a.startswith("-iquote"))
        command.insert(first, f"-iquote{source}")
        command = [str(file) if a == entry["file"] else str(out) if a == name else a for a in command]
        command = [a.replace(name, str(out)) if a.endswith(".o.d") else a for a in command] + ["-w", "-O1"]
        run(command, base.build)
    if not replaced:
        raise catalogue.Stale(f"{fault.name}: nothing is compiled from {', '.join(changed)}")
    link = []
    for argument in base.link:
        inside = [o for o in base.objects if o.startswith(argument + ".p/")] if argument.endswith(".a") else []
        if inside:
            link += [replaced.get(o, o) for o in inside]
        else:
            link.append(replaced.get(argument, str(library) if argument == base.library else argument))
    run(link, base.build)
    for out in replaced.values():
        for path in (out, out + ".d"):
            pathlib.Path(path).unlink(missing_ok=True)
    key_file.write_text(key)
    return library


def build_all(build, faults, jobs):
    """{name: path} of all; fails with the names of those that cannot be built."""
    bases = {name: Base(build, name) for name in {f.base for f in faults}}
    for fault in faults:
        fault.apply(bases[fault.base].text)
    paths, wrong = {}, []
    with concurrent.futures.ThreadPoolExecutor(jobs) as threads:
        waiting = {threads.submit(build_fault, bases[f.base], f): f for f in faults}
        for done in concurrent.futures.as_completed(waiting):
            try:
                paths[waiting[done].name] = done.result()
            except RuntimeError as error:
                wrong.append(f"{waiting[done].name}: cannot be compiled:\n{error}")
    if wrong:
        raise catalogue.Stale("\n".join(wrong))
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--catalogue", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("-j", type=int, default=2, dest="jobs")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    try:
        faults = catalogue.load(options.catalogue)
        unknown = set(options.names) - {f.name for f in faults}
        if unknown:
            raise catalogue.Stale(f"there is no fault {', '.join(sorted(unknown))}")
        faults = [f for f in faults if not options.names or f.name in options.names]
        paths = build_all(options.build.resolve(), faults, options.jobs)
    except catalogue.Stale as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    for fault in faults:
        print(paths[fault.name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
