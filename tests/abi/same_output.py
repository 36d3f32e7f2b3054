#!/usr/bin/env python3
"""usage: same_output.py PROGRAM PROGRAM   fails unless both succeed and print the same, which is something"""

import subprocess
import sys

outputs = [subprocess.run([program], check=True, capture_output=True, text=True).stdout for program in sys.argv[1:3]]
if not outputs[0] or outputs[0] != outputs[1]:
    sys.exit("\n".join(f"{program}:\n{output}" for program, output in zip(sys.argv[1:3], outputs)))
