#!/usr/bin/env python3
"""The bridge's wheel beside tenon's in a virtual environment that sees PyTorch and nothing else: the sample trains, and what
`tenon new-plugin` writes is a device of PyTorch's before its author has written a line.

usage: wheel_test.py BUILD TENON PYTHON [--auditwheel PROGRAM]; PYTHON has PyTorch
"""

import importlib.util
import pathlib
import re
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from wheel_home import DATA, ROOT, Home, arguments, mapped  # noqa: E402


class Bridge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = Home(GIVEN.build, GIVEN.auditwheel, GIVEN.python)
        cls.wheel = cls.home.pack("torch", GIVEN.build)
        cls.home.install(cls.home.pack("tenon", GIVEN.build), cls.wheel)
        packages = cls.home.must(GIVEN.python, "-c", "import pathlib, torch; print(pathlib.Path(torch.__path__[0]).parent)")
        (cls.home.site / "pytorch.pth").write_text(packages)

    @classmethod
    def tearDownClass(cls):
        cls.home.close()

    def test_the_sample_trains(self):
        told = self.home.must(self.home.python, ROOT / "samples/torch/mnist.py", "--data", DATA, "--images", 6000, TENON_DEVICE="cpu:0")
        self.assertIn("tenon:0 (cpu:0)", told)
        self.assertGreater(float(re.search(r"accuracy ([0-9.]+)", told)[1]), 0.8)

    def test_pytorch_and_tenon_are_each_there_once(self):
        platform = r"manylinux_2_\d+_\w+" if GIVEN.auditwheel else r"linux_\w+"
        self.assertRegex(self.wheel.name, rf"^tenon_torch-[0-9.rc]+\+torch[0-9.]+-(cp3\d+)-\1-{platform}\.whl$")
        with zipfile.ZipFile(self.wheel) as archive:
            libraries = [pathlib.Path(n).name for n in archive.namelist() if ".so" in n]
        self.assertEqual(len(libraries), 1, libraries)
        self.assertRegex(libraries[0], r"^_C\.cpython")
        told = self.home.say("import torch, tenon, tenon_torch; torch.ones(2, device='tenon:0').sum().item()"
                             + mapped(r"/lib(tenon|c10|torch_cpu)\.so"))
        homes = {pathlib.Path(path).name: path for path in told}
        self.assertEqual(sorted(homes), ["libc10.so", "libtenon.so.1", "libtorch_cpu.so"], told)
        self.assertEqual(len(told), len(homes), told)
        self.assertTrue(homes["libtenon.so.1"].startswith(str(self.home.site)), told)

    def test_a_plugin_of_new_plugin_is_a_device_as_it_stands(self):
        project, env = self.home.new_plugin(GIVEN.tenon)
        self.home.must("meson", "setup", "build", cwd=project, **env)
        self.home.must("meson", "compile", "-C", "build", cwd=project)
        told = self.home.say("""
import torch, tenon_torch
print(tenon_torch.devices())
x = torch.empty(3, device="tenon:0")
x.copy_(torch.tensor([1.0, 2.0, 3.0]))
print(x.shape, x.device, x.cpu().tolist(), torch.arange(4).to("tenon:0").cpu().tolist())
try:
    x + x
except NotImplementedError as error:
    print(str(error).splitlines()[0])
""", TENON_PLUGIN_PATH=str(project / "build"), TENON_TORCH_DEVICES="npu:0")
        self.assertEqual(told[:2], ["['npu:0']", "torch.Size([3]) tenon:0 [1.0, 2.0, 3.0] [0, 1, 2, 3]"])
        self.assertRegex(told[2], r"add.*npu:0")


if __name__ == "__main__":
    if not importlib.util.find_spec("ensurepip"):
        print("skipped: this Python makes no virtual environments (Debian: python3-venv)")
        sys.exit(77)
    GIVEN = arguments("python")
    unittest.main(argv=sys.argv[:1])
