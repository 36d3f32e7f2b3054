"""What the checks know of the tree: which files it has, and which of them a reader copies out of it."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
C_SUFFIXES = {".c", ".h", ".cl", ".inc", ".def", ".cpp", ".hpp"}
# Projects of their own: their includes and conventions are those of a program outside.
PROJECTS = [pathlib.Path(p) for p in ("samples", "plugin-sdk/template", "docs/vendor/code")]


def files_of(root, suffixes):
    """Paths from `root` of the files with these suffixes: what git knows or would add; else all."""
    result = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    if result.returncode == 0:
        paths = {pathlib.Path(name) for name in result.stdout.split("\0") if name}
    else:
        paths = {path.relative_to(root) for path in root.rglob("*")}
    return sorted(path for path in paths if path.suffix in suffixes and (root / path).is_file()
                  and not path.parts[0].startswith("build"))


def is_project(path):
    return any(path.is_relative_to(folder) for folder in PROJECTS)
