"""A program with raised privileges runs no code that its caller's environment names:
raised_test.py NAME OPENER PLUGIN INTRUDER."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

NAME = sys.argv[1]
OPENER, PLUGIN, INTRUDER = (pathlib.Path(p).resolve() for p in sys.argv[2:5])
SKIPPED = 77
SOMEBODY = 65534
INTRUDED = "the caller's code runs as user 0"


class Place:
    """Where anybody may go, unlike a build folder: the set-uid opener, its plugin, and drivers."""

    def __init__(self, folder: str):
        self.folder = pathlib.Path(folder)
        self.folder.chmod(0o755)
        self.opener, self.plugin, intruder = (
            pathlib.Path(shutil.copy(file, self.folder)) for file in (OPENER, PLUGIN, INTRUDER))
        self.opener.chmod(0o4755)
        vendors = self.folder / "vendors"
        vendors.mkdir()
        (vendors / "a.icd").write_text(f"{intruder}\n")
        self.attacks = [{variable: str(value)} for variable, value in {
            "opencl": [("OCL_ICD_VENDORS", vendors), ("OPENCL_VENDOR_PATH", vendors), ("OPENCL_LAYERS", intruder)],
            "cuda": [("CUDA_INJECTION64_PATH", intruder)],
            "cpu": [("OMP_TOOL_LIBRARIES", intruder), ("OPENBLAS_CORETYPE", intruder)]}[NAME]]

    def open(self, user: int, variables: dict[str, str]) -> tuple[int, str]:
        keep = {k: v for k, v in os.environ.items()
                if not k.startswith(("TENON_", "OCL_ICD_", "OPENCL_", "POCL_", "CUDA_", "OMP_", "OPENBLAS_"))}
        result = subprocess.run([self.opener, self.plugin], env=keep | variables, user=user, cwd="/",
                                capture_output=True, text=True, timeout=60)
        return result.returncode, result.stdout + result.stderr


class Raised(unittest.TestCase):
    def test_the_callers_code_does_not_run(self) -> None:
        working = [a for a in place.attacks if INTRUDED in place.open(0, a)[1]]
        if not working:
            self.skipTest("its libraries take no code from the environment at all")
        for variables in working:
            self.assertNotIn("the caller's code runs", place.open(SOMEBODY, variables)[1], variables)

    def test_there_is_no_device_and_a_reason_or_it_works(self) -> None:
        for variables in [{}, *place.attacks]:
            status, said = place.open(SOMEBODY, variables)
            self.assertEqual(status, 0 if NAME == "cpu" else 1, said)
            self.assertIn("open" if NAME == "cpu" else "the program runs with raised privileges", said)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: only root can make a set-uid program of root's")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="tenon-raised-") as folder:
        place = Place(folder)
        if "secure: 1" not in place.open(SOMEBODY, {})[1]:
            print(f"skipped: {folder} lies where set-uid programs have no privileges")
            sys.exit(SKIPPED)
        result = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(not result.wasSuccessful())
