"""What users are told where a piece of CUDA is missing: reasons_test.py TENON HELLO PLUGINS DRIVER NVRTC
NOT_WHOLE OLD. `tenon plugins` and `tenon devices` give the reason, and so does a program that names the device.
"""

import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TENON, HELLO, PLUGINS, DRIVER, NVRTC, NOT_WHOLE, OLD = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:8])
WORKING = {"TENON_CUDA_DRIVER": DRIVER, "TENON_CUDA_NVRTC": NVRTC, "TENON_CUDA_CACHE": "off",
           "TENON_CUDA_CUBLASLT": "off", "TENON_CUDA_CUDNN": "off"}


def run(*words: str, **variables: str) -> str:
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "CUDA_"))}
    # NVRTC may be there; the double is not to be found by its name.
    keep["LD_LIBRARY_PATH"] = ":".join(folder for folder in keep.get("LD_LIBRARY_PATH", "").split(":")
                                       if folder and not (pathlib.Path(folder) / "libcuda.so.1").exists())
    path = ":".join(str(pathlib.Path(PLUGINS) / name) for name in ("cuda", "cpu"))
    result = subprocess.run(words, capture_output=True, text=True, timeout=120,
                            env=keep | {"TENON_PLUGIN_PATH": path} | WORKING | variables)
    return result.stdout + result.stderr


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def ask(**variables: str) -> dict:
    plugins = json.loads(run(TENON, "plugins", "--json", **variables))
    return next(p for p in plugins if p["device_type"] == "cuda")


class NoDevice(unittest.TestCase):
    """Nothing can be used: the same reason everywhere, the plugin's place, and how to put it right."""

    def check(self, state: str, words: list[str], **variables: str) -> None:
        plugin = ask(**variables)
        self.assertEqual(plugin["state"], state, plugin["reason"])
        self.assertEqual(plugin["devices"], 0)
        self.assertIn("libtenon_cuda.so (org.tenon.cuda)", plugin["reason"])
        places = {"plugins": run(TENON, "plugins", **variables),
                  "devices": run(TENON, "devices", TENON_DEVICE="cuda:0", **variables),
                  "a program": run(HELLO, TENON_DEVICE="cuda:0", **variables)}
        for word in words:
            self.assertIn(word, plugin["reason"])
            for place, text in places.items():
                self.assertIn(word, text, place)
        self.assertIn("TENON_DEVICE=cuda:0", places["a program"])
        self.assertIn("device cpu:0", run(HELLO, TENON_DEVICE="cpu:0", **variables))

    @unittest.skipIf(has_driver(), "this machine has a driver")
    def test_no_driver(self) -> None:
        self.check("ready", ["the NVIDIA driver cannot be used: libcuda.so.1: ", "No such file",
                             "installed apart from the CUDA Toolkit", "TENON_CUDA_DRIVER may name it"],
                   TENON_CUDA_DRIVER="")

    def test_a_driver_that_is_not_where_it_should_be(self) -> None:
        self.check("ready", ["TENON_CUDA_DRIVER names what cannot be opened: /nonexistent/libcuda.so.1"],
                   TENON_CUDA_DRIVER="/nonexistent/libcuda.so.1")

    def test_a_driver_that_is_switched_off(self) -> None:
        self.check("ready", ["the NVIDIA driver cannot be used: switched off (TENON_CUDA_DRIVER)"],
                   TENON_CUDA_DRIVER="off")

    def test_a_library_that_is_no_driver(self) -> None:
        self.check("failed", ["the CUDA driver has no cuInit", "install it again"], TENON_CUDA_DRIVER=NVRTC)

    def test_a_driver_that_is_too_old(self) -> None:
        self.check("failed", ["the CUDA driver is of version 11.8, and 12.0 (525.60) or later is needed; update it"],
                   TENON_TEST_CUDA="version=11080")

    def test_a_driver_that_is_too_old_and_lacks_functions(self) -> None:
        self.check("failed", ["the CUDA driver is of version 11.8, and 12.0 (525.60) or later is needed; update it"],
                   TENON_CUDA_DRIVER=OLD)

    def test_a_driver_that_is_not_whole(self) -> None:
        self.check("failed", ["the CUDA driver has no cuGetErrorName, as 12.0 (525.60) and later have; update it"],
                   TENON_CUDA_DRIVER=NOT_WHOLE)

    def test_a_driver_that_does_not_start(self) -> None:
        self.check("failed", ["the CUDA driver fails at cuInit: CUDA_ERROR_UNKNOWN (999): unknown error",
                              "`nvidia-smi` shows"], TENON_TEST_CUDA="fail=cuInit:1:999")

    def test_no_device(self) -> None:
        self.check("ready", ["the CUDA driver finds no GPU", "CUDA_VISIBLE_DEVICES", "`nvidia-smi -L`"],
                   TENON_TEST_CUDA="devices=0")

    def test_a_device_that_is_too_old(self) -> None:
        self.check("ready", ["Tenon driver double 0 has compute capability 7.0, and 7.5 or later is needed"],
                   TENON_TEST_CUDA="capability=7.0")

    def test_devices_that_do_not_answer(self) -> None:
        self.check("ready", ["GPU 0 does not answer: CUDA_ERROR_UNKNOWN (999); GPU 1 does not answer: "],
                   TENON_TEST_CUDA="devices=2;fail=cuDeviceGetName:1+:999")


class SomeDevices(unittest.TestCase):
    def test_the_next_one_takes_the_place_of_one_that_does_not_answer(self) -> None:
        words = "devices=2;fail=cuDeviceGetName:1:999"
        self.assertEqual(ask(TENON_TEST_CUDA=words)["devices"], 1)
        listed = run(TENON, "devices", TENON_TEST_CUDA=words, TENON_LOG="info")
        self.assertRegex(listed, r"cuda:0 +Tenon driver double 1")
        self.assertIn("GPU 0 is not used: it does not answer: CUDA_ERROR_UNKNOWN (999)", listed)

    def test_a_device_that_there_is_not(self) -> None:
        text = run(HELLO, TENON_DEVICE="cuda:1", TENON_TEST_CUDA="devices=1")
        self.assertIn("TENON_DEVICE=cuda:1", text)
        self.assertIn("there is 1 device of type cuda", text)


class NoKernels(unittest.TestCase):
    """The device is there, and what it needs to compute is not: a call says so."""

    def check(self, *words: str, **variables: str) -> None:
        self.assertEqual(ask(**variables)["devices"], 1)
        text = run(HELLO, TENON_DEVICE="cuda:0", **variables)
        for word in ("cuda:0: tn_", "kernels are compiled by NVRTC, which cannot be used: ", "CUDA Toolkit",
                     "nvidia-cuda-nvrtc", *words):
            self.assertIn(word, text)

    def test_no_nvrtc(self) -> None:
        self.check("TENON_CUDA_NVRTC names what cannot be opened: /nonexistent/libnvrtc.so",
                   TENON_CUDA_NVRTC="/nonexistent/libnvrtc.so")

    def test_an_nvrtc_that_is_switched_off(self) -> None:
        self.check("switched off (TENON_CUDA_NVRTC)", TENON_CUDA_NVRTC="off")

    def test_a_library_that_is_no_nvrtc(self) -> None:
        self.check("it has no nvrtcVersion; version 12 or later is needed", TENON_CUDA_NVRTC=NOT_WHOLE)

    def test_kernels_of_an_earlier_run_need_no_nvrtc(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            first = run(HELLO, TENON_DEVICE="cuda:0", TENON_CUDA_CACHE=folder)
            self.assertIn("device='cuda:0'", first)
            self.assertEqual(run(HELLO, TENON_DEVICE="cuda:0", TENON_CUDA_CACHE=folder, TENON_CUDA_NVRTC="off"),
                             first)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
