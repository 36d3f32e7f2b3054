"""`tenon plugins` says why there is no OpenCL device: reasons_test.py TENON PLUGIN LAYER."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TENON, PLUGIN, LAYER = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:4])
SKIPPED = 77


def run(*words: str, **variables: str) -> str:
    keep = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
    env = keep | {"TENON_PLUGINS": PLUGIN, "OPENCL_LAYERS": LAYER} | variables
    result = subprocess.run([TENON, *words], capture_output=True, text=True, env=env, timeout=60)
    return result.stdout + result.stderr


def ask(**variables: str) -> dict:
    return json.loads(run("plugins", "--json", **variables))[0]


class Reasons(unittest.TestCase):
    def check(self, state: str, *words: str, **variables: str) -> None:
        plugin = ask(**variables)
        self.assertEqual(plugin["state"], state, plugin["reason"])
        self.assertEqual(plugin["devices"], 0)
        for word in (PLUGIN, *words):
            self.assertIn(word, plugin["reason"])
        self.assertIn(words[0], run("plugins", **variables))
        self.assertIn(words[0], run("devices", TENON_DEVICE="opencl:0", **variables))

    def test_no_driver(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.check("ready", "no OpenCL driver is installed", folder, OCL_ICD_VENDORS=folder)

    def test_a_driver_that_cannot_be_loaded(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.icd").write_text("/nonexistent/libdriver.so\n")
            self.check("ready", "none can be loaded", folder, OCL_ICD_VENDORS=folder)

    def test_a_platform_without_a_device(self) -> None:
        self.check("ready", " has no device", TENON_TEST_CL="hide=devices")

    def test_a_driver_that_fails(self) -> None:
        self.check("failed", "fails to list its devices", "CL_OUT_OF_HOST_MEMORY (-6)",
                   TENON_TEST_CL="fail=clGetDeviceIDs:-6")

    def test_a_device_that_is_too_small(self) -> None:
        self.check("ready", "is too small: 1 MiB of memory", TENON_TEST_CL="small=memory:1048576")

    def test_a_device_whose_alignment_cannot_be(self) -> None:
        self.check("ready", "aligned to 24 bits", TENON_TEST_CL="lie=alignment:24")

    def test_a_platform_that_nobody_has(self) -> None:
        self.check("failed", "'Nobody' in its name (TENON_OPENCL_PLATFORM)",
                   " is not what TENON_OPENCL_PLATFORM names", TENON_OPENCL_PLATFORM="Nobody")


if __name__ == "__main__":
    if ask()["devices"] == 0:
        print("skipped: no OpenCL device;", ask()["reason"])
        sys.exit(SKIPPED)
    if ask(TENON_TEST_CL="hide=devices")["devices"]:
        print("skipped: the OpenCL loader takes no layers (OPENCL_LAYERS)")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
