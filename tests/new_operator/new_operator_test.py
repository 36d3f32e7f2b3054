#!/usr/bin/env python3
"""Adds an operator to a copy of the tree as CONTRIBUTING says, builds it and calls it.

usage: new_operator_test.py SOURCE RECIPE

RECIPE holds the edits. They touch no more files than CONTRIBUTING lists, all of which it names. The copy
is what git tracks; in it only the programs that the calls below need are built. The operator then runs
forward and backward on the cpu, which has a kernel for it, and on the simulated chip, which has none;
its derivative is compared with differences, the suite checks its kernel, and clang its device code.
"""

import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

MOST_FILES = 9
PROGRAMS = {"reduce": "tests/core/test_ops_reduce", "gradcheck": "tests/ops/test_gradcheck_ops",
            "conform": "plugin-sdk/conformance/runner/tenon-conform"}
PLUGINS = [f"plugins/{name}/libtenon_{name}.so" for name in ("cpu", "sim")]
OPTIONAL = "plugins/opencl/libtenon_opencl.so"  # where the headers of OpenCL are


def run(*command, cwd, env=None):
    """Says what it ran, and what that said where it failed."""
    print("+", *command, flush=True)
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout[-20000:]}\nexit status {done.returncode}")


def copy(source, into):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=source, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        if (source / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, into / name)


def apply(edit, tree):
    """Puts the text before one place, in the place of another, or at the end."""
    path = tree / edit["file"]
    if "text" not in edit:
        return
    old = path.read_text()
    place = edit.get("before", edit.get("find", ""))
    if place and old.count(place) != 1:
        sys.exit(f"{edit['file']} has {old.count(place)} times what an edit of the recipe looks for:\n{place}")
    if "before" in edit:
        new = old.replace(place, edit["text"] + place)
    else:
        new = old.replace(place, edit["text"]) if place else old + edit["text"]
    path.write_text(new)


def check_contributing(tree, files):
    """The section's numbered list names every file, by family, and no more than it may."""
    text = (tree / "CONTRIBUTING.md").read_text()
    section = re.search(r"\*\*A kernel operator\*\*.*?(?=\n\*\*A )", text, re.DOTALL)[0]
    listed = re.findall(r"^\d+\. `([^`]*)`", section, re.MULTILINE)
    for file in files:
        if not any(fnmatch.fnmatch(file, name.replace("FAMILY", "*").replace("SECTION", "*")) for name in listed):
            sys.exit(f"CONTRIBUTING.md does not name {file} under 'A kernel operator'")
    if max(len(files), len(listed)) > MOST_FILES:
        sys.exit(f"a kernel operator takes {len(files)} files, and {len(listed)} are listed; {MOST_FILES} are enough")


def check_device_code(tree):
    if shutil.which("clang"):
        run(sys.executable, "tests/opencl/compile_test.py", "tests/opencl/variants.list", cwd=tree)


def build(tree):
    folder = tree / "build"
    run("meson", "setup", "-Dbuildtype=debug", f"-Dpython={sys.executable}", folder, cwd=tree)
    known = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], capture_output=True, text=True, check=True)
    targets = [*PROGRAMS.values(), *PLUGINS]
    targets += [OPTIONAL] if f"\n{OPTIONAL}:" in known.stdout else []
    run("ninja", "-C", folder, *targets, cwd=tree)
    return folder


def main(source, recipe):
    edits = tomllib.loads(recipe.read_text())["edit"]
    files = list(dict.fromkeys(edit["file"] for edit in edits))
    if not (source / ".git").exists():
        print("no checkout of git, which says what the tree is")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as temporary:
        tree = pathlib.Path(temporary)
        copy(source, tree)
        check_contributing(tree, files)
        for edit in edits:
            apply(edit, tree)
        generate = [sys.executable, "core/ops/generate/generate.py"]
        tables = ["core/ops/operators.toml", "plugin-sdk/kernels.toml"]
        run(*generate, *tables, "docs/operators.md", cwd=tree)
        check_device_code(tree)
        folder = build(tree)
        here = {"TENON_PLUGIN_PATH": ":".join(str((folder / name).parent) for name in PLUGINS), "PATH": "/usr/bin:/bin"}
        run(folder / PROGRAMS["reduce"], cwd=tree, env=here)
        for device in ("cpu:0", "sim:0"):
            run(folder / PROGRAMS["gradcheck"], device, "running_product", cwd=tree, env=here)
        run(folder / PROGRAMS["conform"], "run", folder / PLUGINS[0], "--set", "smoke", "--filter", "kernel/running_product*",
            "--filter", "same/running_product*", cwd=tree, env=here)
    print(f"running_product took {len(files)} files: {', '.join(files)}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
