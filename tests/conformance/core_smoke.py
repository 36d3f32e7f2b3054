#!/usr/bin/env python3
"""Runs the smoke set of tenon-conform-core on a plugin, without the runner: every verdict must be a pass.

usage: core_smoke.py TENON_CONFORM_CORE PLUGIN
"""

import json
import os
import subprocess
import sys


def main(program, plugin):
    lines = subprocess.run([program, "list", "--set", "smoke"], check=True, capture_output=True).stdout
    lines += b"operator/softmax_forward T=f32 how=decomposed\noperator/gelu sample=1 T=i32\n"
    lines += b"operator/sigmoid T=u8\noperator/rsub.Scalar T=u8\n"
    reader, writer = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(reader)
        os.dup2(writer, 3)
        sys.exit(subprocess.run([program, "work", "--plugin", plugin], input=lines, pass_fds=[3]).returncode)
    os.close(writer)
    with os.fdopen(reader) as verdicts:
        verdicts = [json.loads(line) for line in verdicts]
    status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    wrong = [v for v in verdicts if v["status"] != "pass"]
    for v in wrong:
        print(f"{v['case']}: {v['status']}: {v.get('message', '')}")
    n_lines = len(lines.splitlines())
    print(f"{len(verdicts)} of {n_lines} cases answered, {len(wrong)} wrong; the worker exits with {status}")
    return 1 if wrong or status or len(verdicts) != n_lines else 0


sys.exit(main(*sys.argv[1:]))
