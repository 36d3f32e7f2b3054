"""A virtual environment that has nothing but the wheels that a test puts into it, by pip and without an index."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "samples/mnist/data"


def arguments(*more):
    """Of a test's command line: BUILD TENON and `more`, those with dashes optional."""
    parser = argparse.ArgumentParser()
    for word in ("build", "tenon"):
        parser.add_argument(word, type=lambda path: pathlib.Path(path).resolve())
    for word in (*more, "--auditwheel"):
        parser.add_argument(word)
    return parser.parse_args()


class Home:
    def __init__(self, build, auditwheel=None, python=sys.executable):
        self.holder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.holder.name).resolve()
        self.build, self.auditwheel = pathlib.Path(build).resolve(), auditwheel
        self.away, self.python = self.folder / "away", self.folder / "venv/bin/python"
        self.away.mkdir()
        self.must(python, "-m", "venv", self.folder / "venv")
        self.site = pathlib.Path(self.must(self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())

    def close(self):
        self.holder.cleanup()

    def run(self, *words, cwd=None, **env):
        """Away from everything, with no variable of ours, the linker's or Python's."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "LD_", "PYTHON"))}
        return subprocess.run([str(word) for word in words], cwd=cwd or self.away, capture_output=True, text=True, env={**clean, **env},
                              timeout=300)

    def must(self, *words, **more):
        done = self.run(*words, **more)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def say(self, code, **env):
        """What that Python program prints, in lines."""
        return self.must(self.python, "-c", code, **env).splitlines()

    def pack(self, *words, repaired=True):
        """By tools/wheel.py; `words` without the folder. Returns the wheel."""
        repair = ["--auditwheel", os.path.relpath(self.auditwheel, self.away)] if self.auditwheel and repaired else []
        told = self.must(sys.executable, ROOT / "tools/wheel.py", *repair, *words, self.folder / "dist")
        return pathlib.Path(re.search(r"^(\S+\.whl) \([0-9.]+ MB\)$", told, re.M)[1])

    def install(self, *wheels):
        self.must(self.python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", *wheels)

    def remove(self, name):
        self.must(self.python, "-m", "pip", "uninstall", "-q", "-y", name)

    def new_plugin(self, tenon, *words):
        """The project that `tenon new-plugin acme npu` writes, and the environment that it is built in."""
        project = self.folder / "npu"
        self.must(tenon, "new-plugin", "acme", "npu", "--dir", project, *words)
        folders = " ".join(f"-I{folder}/plugin-sdk/include" for folder in (ROOT, self.build))
        (self.folder / "tenon-plugin.pc").write_text(f"plugindir=/nowhere\nName: tenon-plugin\nDescription: of a build\nVersion: 1\nCflags: {folders}\n")
        return project, {"PKG_CONFIG_LIBDIR": str(self.folder)}


def mapped(pattern):
    """A program that prints which files of that kind the process has mapped, for the end of another."""
    return f"\nimport re; print(*sorted({{l.split()[-1] for l in open('/proc/self/maps') if re.search(r'{pattern}', l)}}), sep='\\n')"
