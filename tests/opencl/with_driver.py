"""Runs a program with the OpenCL drivers of one folder alone, and skips where it has none: with_driver.py FOLDER PROGRAM...

FOLDER has .icd files, as /etc/OpenCL/vendors has; `./dev test` makes the one of Intel's driver."""

import os
import pathlib
import sys

SKIPPED = 77

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    if not list(folder.glob("*.icd")):
        print(f"skipped: there is no OpenCL driver in {folder.parent.name}/{folder.name}; ./dev test fetches it from the "
              "package index")
        sys.exit(SKIPPED)
    os.environ["OCL_ICD_VENDORS"] = str(folder.resolve())
    command = [sys.executable, *sys.argv[2:]] if sys.argv[2].endswith(".py") else sys.argv[2:]
    os.execv(command[0], command)
