"""The deliberate faults: the *.toml beside this file, one [[fault]] each.

A fault is a change to one of the project's own plugins that makes a faulty device of it:

    name     of letters, digits and dashes; also the name of its folder in build/faults
    base     the plugin that is changed: cpu, sim or opencl
    why      what real silicon or a real driver does to have this defect
    edits    the changes: a file of plugins/BASE (shared/...: of plugins/shared), a text that occurs in it once, and what takes its place
    expect   the patterns of cases that it is tried on first

Its group is the name of its file.
"""

import pathlib
import re
import tomllib

GROUPS = ("numerics", "reach", "layout", "memory", "synchronisation", "capture", "contract")
BASES = ("cpu", "sim", "opencl")
KEYS = {"name", "base", "why", "edits", "expect"}


class Stale(Exception):
    """A fault that does not fit the sources any more, or never did."""


class Fault:
    def __init__(self, group, entry):
        name = entry.get("name", "?")
        if set(entry) != KEYS:
            raise Stale(f"{group}.toml: {name}: has the keys {sorted(entry)}, should have {sorted(KEYS)}")
        if not re.fullmatch(r"[a-z0-9-]+", name) or entry["base"] not in BASES:
            raise Stale(f"{group}.toml: {name}: the name must be of [a-z0-9-], the base one of {', '.join(BASES)}")
        for edit in entry["edits"]:
            if set(edit) != {"file", "find", "replace"} or edit["find"] == edit["replace"]:
                raise Stale(f"{group}.toml: {name}: an edit is a file, what to find, and another text for it")
        if not entry["edits"] or not entry["expect"]:
            raise Stale(f"{group}.toml: {name}: edits and expect must not be empty")
        self.group, self.name, self.base = group, name, entry["base"]
        self.why, self.edits, self.expect = entry["why"], entry["edits"], entry["expect"]

    def apply(self, text_of):
        """The changed files: {file: text}; text_of(file) gives one of the base's as it is."""
        changed = {}
        for edit in self.edits:
            file = edit["file"]
            text = changed[file] if file in changed else text_of(file)
            n = text.count(edit["find"])
            if n != 1:
                raise Stale(f"{self.group}.toml: {self.name}: found {n} times in {file} of {self.base}, should "
                            f"be once; the source has changed, so the fault must:\n{edit['find']}")
            changed[file] = text.replace(edit["find"], edit["replace"])
        return changed


def load(folder=pathlib.Path(__file__).parent):
    """All faults, by group and name."""
    faults = {}
    for group in GROUPS:
        path = folder / f"{group}.toml"
        if not path.exists():
            continue
        for entry in tomllib.loads(path.read_text())["fault"]:
            fault = Fault(group, entry)
            if fault.name in faults:
                raise Stale(f"{group}.toml: there are two faults called {fault.name}")
            faults[fault.name] = fault
    return sorted(faults.values(), key=lambda f: (GROUPS.index(f.group), f.name))
