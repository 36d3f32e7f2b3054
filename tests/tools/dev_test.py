#!/usr/bin/env python3
"""`./dev` looks again for what came since it configured, and `./dev test` demands it: in a small
project with ./dev as it is, and an apt-get that installs one package.

usage: dev_test.py SOURCE-ROOT
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])

MESON_BUILD = """
project('planted', 'c', meson_version: '>=1.0.0')
add_test_setup('plain', is_default: true)
test('always', find_program('true'))
if dependency('tenon-planted', required: get_option('tests')).found()
  test('with the package', find_program('true'))
endif
"""
OPTIONS = """
option('python', type: 'string')
option('tests', type: 'feature', value: 'auto')
"""
PACKAGE = "Name: tenon-planted\nDescription: what a test needs\nVersion: 1\n"


class Tree(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)
        for name in ("dev", "tools/test_summary.py"):
            (self.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.put("meson.build", MESON_BUILD)
        self.put("meson_options.txt", OPTIONS)
        self.put("tools/packages-debian.txt",
                 f"build meson meson\ntest libplanted-dev file:{self.root}/installed/*\n")
        self.put("planted.pc", PACKAGE)
        for fetched in ("build-intel/vendors/intel.icd", "build-cuda/nvidia/cu13/lib/libnvrtc.so.13",
                        "build-wheel/venv/bin/auditwheel"):
            self.put(fetched, "")  # else ./dev fetches hundreds of megabytes
        (self.root / "build-wheel/venv/bin/auditwheel").chmod(0o755)
        self.put_program("sudo", 'exec "$@"')
        self.put_apt_get("tenon-planted.pc")

    def put(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def put_program(self, name, text):
        self.put(f"bin/{name}", f"#!/bin/bash\n{text}\n")
        (self.root / "bin" / name).chmod(0o755)

    def put_apt_get(self, name):
        """An apt-get that installs the package's file by this name."""
        self.put_program("apt-get", f'[[ "$*" != *libplanted-dev* ]] || '
                         f'{{ mkdir {self.root}/installed; cp {self.root}/planted.pc {self.root}/installed/{name}; }}')

    def dev(self, *words):
        keep = {k: v for k, v in os.environ.items() if k not in ("CI", "MESON_TESTTHREADS", "TENON_OFFLINE")}
        env = keep | {"PATH": f"{self.root}/bin:{os.environ['PATH']}",
                      "PKG_CONFIG_PATH": f"{self.root}/installed", "TENON_TORCH_PYTHON": "none"}
        result = subprocess.run([self.root / "dev", *words], env=env, capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def succeed(self, *words):
        code, text = self.dev(*words)
        self.assertEqual(code, 0, text)
        return text

    def test_tests_run_whose_package_came_after_the_first_build(self):
        self.succeed("build")
        text = self.succeed("test", "--quick")
        self.assertIn("with the package", text)
        self.assertIn("2 passed, 0 failed, 0 skipped", text)
        self.assertIn("asan, tsan, fuzzing: not asked for", text)
        # The next build takes nothing away, and configures nothing.
        before = (self.root / "build/build.ninja").stat().st_mtime_ns
        self.succeed("build")
        self.assertEqual((self.root / "build/build.ninja").stat().st_mtime_ns, before)

    def test_a_package_that_meson_does_not_find_fails_the_tests(self):
        self.put_apt_get("by-another-name.pc")
        self.succeed("build")
        code, text = self.dev("test", "--quick")
        self.assertEqual(code, 1, text)
        self.assertIn("tenon-planted", text)
        self.assertIn("Meson could not set build up", text)

    def test_what_came_by_other_ways_is_looked_for_and_nothing_built_is_lost(self):
        self.succeed("build")
        self.put("build/kept", "")
        self.put("installed/tenon-planted.pc", PACKAGE)
        self.succeed("build")
        self.assertIn("with the package", (self.root / "build/meson-info/intro-tests.json").read_text())
        self.assertTrue((self.root / "build/kept").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
