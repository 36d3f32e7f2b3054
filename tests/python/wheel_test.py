#!/usr/bin/env python3
"""Wheels, as somebody has them who has nothing else: wheel_test.py BUILD TENON [--auditwheel PROGRAM] [--driver CUDA-DOUBLE]

Each is packed from the build, repaired where auditwheel is there, and installed by pip into a virtual environment that has nothing
else: the sample trains with it, and plugins are found, ours and that of a vendor who has run `tenon new-plugin --wheel`.
"""

import importlib.util
import json
import pathlib
import re
import shutil
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from wheel_home import DATA, ROOT, Home, arguments, mapped  # noqa: E402

PRINT_SUM = "import tenon; x = tenon.ones(2, device='{0}:0'); print((x + x).tolist())"


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = Home(GIVEN.build, GIVEN.auditwheel)
        cls.wheel = cls.home.pack("tenon", GIVEN.build)
        cls.home.install(cls.wheel)

    @classmethod
    def tearDownClass(cls):
        cls.home.close()

    def with_wheel(self, wheel):
        self.home.install(wheel)
        self.addCleanup(self.home.remove, wheel.name.split("-")[0])

    def has_plugin(self, name):
        if not (GIVEN.build / f"plugins/{name}/libtenon_{name}.so").exists():
            self.skipTest("it is not built")

    def is_tagged(self, wheel, start):
        platform = r"manylinux_2_\d+_\w+" if GIVEN.auditwheel else r"linux_\w+"
        self.assertRegex(wheel.name, rf"^{start}-{platform}\.whl$")

    def test_the_record_is_right(self):
        with zipfile.ZipFile(self.wheel) as archive:
            names = set(archive.namelist())
            record = archive.read(next(n for n in names if n.endswith("RECORD"))).decode().splitlines()
        self.assertEqual({line.rsplit(",", 2)[0] for line in record}, names)
        self.is_tagged(self.wheel, r"tenon-[0-9.rc]+-cp311-abi3")

    def test_the_sample_trains(self):
        for device in ("cpu:0", "sim:0"):
            done = self.home.run(self.home.python, ROOT / "samples/python/mnist.py", "--data", DATA, "--epochs", 1, "--images", 6000,
                                 TENON_DEVICE=device)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(device, done.stdout)
            self.assertGreater(float(re.search(r"accuracy ([0-9.]+)", done.stdout)[1]), 0.8)

    def test_what_is_not_on_every_linux_is_in_the_wheel_once(self):
        use = ("import tenon; x = tenon.ones(64, 64); (x @ x).sum().item(); tenon.save({'x': x}, 'x.safetensors'); "
               "print(tenon.load('x.safetensors')['x'].shape)")
        libraries = self.home.say(use + mapped(r"/lib(tenon|openblas|gomp|jansson)[^/]*\.so"))[1:]
        names = [re.split(r"-[0-9a-f]{8}|p?-r0|\.so", pathlib.Path(path).name)[0] for path in libraries]
        self.assertEqual(sorted(set(names)), sorted(names), libraries)
        self.assertIn("libtenon-nn", names)
        outside = [path for path in libraries if not path.startswith(f"{self.home.site}/")]
        if GIVEN.auditwheel:
            self.assertEqual(outside, [])
            for name in ("libopenblas", "libgomp", "libjansson"):
                self.assertIn(name, names)

    def test_what_was_put_in_has_its_licence(self):
        if not GIVEN.auditwheel:
            self.skipTest("auditwheel is not here")
        with zipfile.ZipFile(self.wheel) as archive:
            texts = {n.split("/licenses/")[1]: archive.read(n).decode() for n in archive.namelist() if "/licenses/" in n}
            metadata = archive.read(next(n for n in archive.namelist() if n.endswith("METADATA"))).decode()
        self.assertIn("The University of Texas at Austin", next(text for name, text in texts.items() if "openblas" in name))
        self.assertEqual(sorted(re.findall(r"^License-File: (.*)$", metadata, re.M)), sorted(texts))

    def test_a_library_of_which_no_licence_is_found_is_not_put_in(self):
        sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "plugin-sdk/template/wheel")]
        sys.dont_write_bytecode = True
        from repair_wheel import licences_of

        odd = json.dumps({"components": [{"name": "wheel"}, {"name": "no-such-package"}]}).encode()
        bill, unknown = "x-1.dist-info/sboms/auditwheel.cdx.json", {"x-1.dist-info/WHEEL": b""}
        self.assertEqual(licences_of(unknown, []), {})
        self.assertIsNone(licences_of(unknown, ["libodd.so"]))
        self.assertIsNone(licences_of(unknown | {bill: odd}, ["libodd.so"]))

    def test_versions_of_symbols_and_sonames_stay(self):
        own, check = self.home.site / "tenon/lib", ROOT / "tools/check_exports.py"
        self.assertEqual([p.name for p in sorted(own.glob("libtenon*"))], ["libtenon-nn.so.0", "libtenon.so.1"])
        for ours, built in {"libtenon.so.1": "core", "libtenon-nn.so.0": "nn"}.items():
            told = [self.home.must(sys.executable, check, "list", folder / ours) for folder in (own, GIVEN.build / built)]
            self.assertEqual(*told)
        self.home.must(sys.executable, check, "plugin", *own.glob("tenon/plugins/*.so"))

    def test_without_auditwheel_the_wheel_says_what_it_needs(self):
        wheel = self.home.pack("tenon", GIVEN.build, repaired=False)
        self.assertRegex(wheel.name, r"-linux_\w+\.whl$")
        false = shutil.which("false")
        done = self.home.run(sys.executable, ROOT / "tools/wheel.py", "--auditwheel", false, "tenon", GIVEN.build, self.home.folder / "other")
        self.assertEqual(done.returncode, 0)
        self.assertIn("is not repaired, and so runs where the libraries of this machine are", done.stderr)

    def test_a_vendors_plugin_is_found(self):
        wheel = self.home.pack("plugin", "tenon-quartz", "0.1", GIVEN.build / "plugins/sim/libtenon_sim.so")
        self.is_tagged(wheel, r"tenon_quartz-0\.1-py3-none")
        self.with_wheel(wheel)
        own = self.home.site / "tenon/lib/tenon/plugins/libtenon_sim.so"
        own.rename(self.home.away / "gone.so")
        try:
            told = self.home.say(PRINT_SUM.format("sim") + "; import os; print(os.environ['TENON_PLUGIN_PATH'])")
        finally:
            (self.home.away / "gone.so").rename(own)
        self.assertEqual(told, ["[2.0, 2.0]", f"{self.home.site}/tenon_plugins/tenon-quartz"])
        bad = self.home.run(sys.executable, ROOT / "tools/wheel.py", "plugin", "x", "1", "/tmp/x.so", self.home.away)
        self.assertIn("libtenon_TYPE.so", bad.stderr)
        self.assertEqual(bad.returncode, 1)

    def test_what_new_plugin_writes_becomes_a_wheel(self):
        project, env = self.home.new_plugin(GIVEN.tenon, "--wheel")
        self.home.must(self.home.python, "-m", "pip", "wheel", "-q", "--no-index", "--no-deps", "-w", self.home.away, project, **env)
        wheel, = self.home.away.glob("tenon_npu-*.whl")
        self.assertRegex(wheel.name, r"^tenon_npu-0\.1\.0-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        self.assertEqual([n for n in names if ".dist-info/" not in n], ["tenon_plugins/tenon-npu/libtenon_npu.so"])
        self.with_wheel(wheel)
        told = self.home.say("import tenon, sys; x = tenon.tensor([1.0, 2.0]).to('npu:0')\n"
                             "print(x.cpu().tolist(), x.device)\n"
                             "print([m for m in sys.modules if 'plugin' in m])")
        self.assertEqual(told, ["[1.0, 2.0] npu:0", "['tenon._plugins']"])

    def test_opencl_needs_a_driver_alone(self):
        self.has_plugin("opencl")
        wheel = self.home.pack("opencl", GIVEN.build)
        self.is_tagged(wheel, "tenon_opencl-[0-9.rc]+-py3-none")
        self.with_wheel(wheel)
        if self.home.say("import tenon; print(tenon.device_count('opencl'))") == ["0"]:
            self.skipTest("there is no driver of OpenCL")
        told = self.home.say(PRINT_SUM.format("opencl") + mapped(r"/libOpenCL[^/]*\.so"))
        self.assertEqual(told[0], "[2.0, 2.0]")
        if GIVEN.auditwheel:
            self.assertRegex(told[1], rf"^{self.home.site}/tenon_opencl\.libs/libOpenCL-")
            self.assertEqual(len(told), 2)

    def test_cuda_finds_what_nvidias_wheels_bring(self):
        self.has_plugin("cuda")
        if not GIVEN.driver:
            self.skipTest("there is no double of the driver")
        wheel = self.home.pack("cuda", GIVEN.build)
        self.is_tagged(wheel, "tenon_cuda13-[0-9.rc]+-py3-none")
        self.with_wheel(wheel)
        with zipfile.ZipFile(wheel) as archive:
            metadata = archive.read(next(n for n in archive.namelist() if n.endswith("METADATA"))).decode()
        self.assertIn('Requires-Dist: nvidia-cuda-nvrtc >=13,<14; extra == "nvrtc"', metadata)
        nvrtc = self.home.site / "nvidia/cu13/lib/libnvrtc.so.13"
        nvrtc.parent.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.home.site / "nvidia")
        shutil.copy(GIVEN.build / "plugins/sim/libtenon_sim.so", nvrtc)  # a library, and no NVRTC
        done = self.home.run(self.home.python, "-c", PRINT_SUM.format("cuda"), TENON_CUDA_DRIVER=GIVEN.driver, TENON_CUDA_CACHE="off",
                             TENON_TEST_CUDA="devices=1")
        self.assertIn("it has no nvrtc", done.stderr)

    def test_a_broken_plugin_does_not_keep_the_package_from_starting(self):
        folder = self.home.site / "tenon_plugins/broken"
        folder.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, folder)
        (folder / "libtenon_broken.so").write_bytes(b"no ELF file")
        done = self.home.run(self.home.python, "-c", "import tenon; print(tenon.ones(1).item())")
        self.assertEqual((done.returncode, done.stdout), (0, "1.0\n"))


if __name__ == "__main__":
    if not importlib.util.find_spec("ensurepip"):
        print("skipped: this Python makes no virtual environments (Debian: python3-venv)")
        sys.exit(77)
    GIVEN = arguments("--driver")
    unittest.main(argv=sys.argv[:1])
