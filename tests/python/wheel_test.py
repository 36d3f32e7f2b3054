#!/usr/bin/env python3
"""Wheels, as somebody has them who has nothing else: wheel_test.py WHEEL.PY BUILD DATA

The package is packed from the build and unpacked into an empty folder; the sample trains with it. A vendor's plugin is
packed as a wheel of its own, and found.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

TOOL, BUILD, DATA = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
SAMPLE = DATA.parents[1] / "python" / "mnist.py"


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        cls.dist, cls.site, cls.away = root / "dist", root / "site", root / "away"
        cls.away.mkdir()
        cls.pack("tenon", BUILD, cls.dist)
        cls.install()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def pack(cls, *words):
        subprocess.run([sys.executable, TOOL, *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def install(cls):
        for wheel in cls.dist.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(cls.site)

    def run_python(self, *words, **env):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "LD_", "PYTHON"))}
        return subprocess.run([sys.executable, *map(str, words)], cwd=self.away, capture_output=True, text=True,
                              env={**environment, "PYTHONPATH": str(self.site), **env}, timeout=300)

    def test_the_record_is_right(self):
        wheel = next(self.dist.glob("tenon-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            record = archive.read(next(n for n in names if n.endswith("RECORD"))).decode().splitlines()
        self.assertEqual({line.rsplit(",", 2)[0] for line in record}, names)
        self.assertRegex(wheel.name, r"^tenon-[0-9.rc]+-cp311-abi3-linux_\w+\.whl$")

    def test_the_sample_trains(self):
        for device in ("cpu:0", "sim:0"):
            done = self.run_python(SAMPLE, "--data", DATA, "--epochs", 1, "--images", 6000, TENON_DEVICE=device)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(device, done.stdout)
            self.assertGreater(float(re.search(r"accuracy ([0-9.]+)", done.stdout)[1]), 0.8)

    def test_a_vendors_plugin_is_found(self):
        self.pack("plugin", "tenon-quartz", "0.1", BUILD / "plugins/sim/libtenon_sim.so", self.dist)
        wheel = next(self.dist.glob("tenon_quartz-*.whl"))
        self.assertRegex(wheel.name, r"^tenon_quartz-0\.1-py3-none-linux_\w+\.whl$")
        self.install()
        own = self.site / "tenon/lib/tenon/plugins/libtenon_sim.so"
        own.rename(self.away / "gone.so")
        try:
            done = self.run_python("-c", "import tenon, os; print(tenon.ones(2, device='sim:0').tolist(), "
                                         "os.environ['TENON_PLUGIN_PATH'])")
        finally:
            (self.away / "gone.so").rename(own)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.strip(), f"[1.0, 1.0] {self.site}/tenon_plugins/tenon-quartz")
        bad = subprocess.run([sys.executable, TOOL, "plugin", "x", "1", "/tmp/x.so", self.dist], capture_output=True, text=True)
        self.assertIn("libtenon_TYPE.so", bad.stderr)
        self.assertEqual(bad.returncode, 1)

    def test_a_broken_plugin_does_not_keep_the_package_from_starting(self):
        folder = self.site / "tenon_plugins/broken"
        folder.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, folder)
        (folder / "libtenon_broken.so").write_bytes(b"no ELF file")
        done = self.run_python("-c", "import tenon; print(tenon.ones(1).item())")
        self.assertEqual((done.returncode, done.stdout), (0, "1.0\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
