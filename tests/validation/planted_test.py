#!/usr/bin/env python3
"""What TENON_VALIDATE finds of bugs that vendors have: planted_test.py BUILD

Each is planted in one of the project's own plugins, and the program planted.c runs on it as users' programs do."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/conformance/faults"))
import build  # noqa: E402
import catalogue  # noqa: E402

# Of the catalogue: the fault, the level that finds it, and the requirement that is named.
KNOWN = [
    ("copy-assumes-dense-rows", 2, 77),
    ("index-select-ignores-stride-of-index", 2, 77),
    ("wait-ignored-across-streams", 2, 63),
    ("write-not-consumed-before-return", 2, 43),
    ("vector-loop-writes-past-the-end", 2, 71),
    ("stream-error-is-sticky", 2, 57),
]
# And others: the name, the file of plugins/sim, what takes the place of what in it.
PLANTED = [
    ("call-read-after-return", "launch.c", "        .sizes = copy_ints(rest, view->sizes, (uint64_t)view->rank),",
     "        .sizes = view->sizes,", 2, 115),
    ("stream-is-never-busy", "stream.c", "    if (status == TN_OK && stream->done < stream->queued)",
     "    if (status == TN_OK && stream->done > stream->queued)", 2, 55),
    ("synchronize-does-not-wait", "stream.c", "    wait_for(stream, stream->queued);\n    if ((status", "    if ((status",
     2, 56),
    ("fails-without-a-message", "stream.c",
     "stream->device->self->host->fail(stream->device->self->host, error, message)", "error", 1, 16),
    ("staging-leaks", "transfer.c", "        memcpy(t->payload, src, bytes);",
     "        memcpy(t->payload, src, bytes), sim_host_alloc(device->self, 64, \"a stage\");", 1, 14),
]


def fault(name: str, file: str, find: str, replace: str) -> catalogue.Fault:
    edits = [{"file": file, "find": find, "replace": replace}]
    return catalogue.Fault("planted", {"name": name, "base": "sim", "why": "see the name", "edits": edits, "expect": ["*"]})


def findings(program: pathlib.Path, plugin: pathlib.Path, base: str, level: int, folder: pathlib.Path) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
    files = [str(plugin)] + ([str(folder / "plugins/cpu/libtenon_cpu.so")] if base != "cpu" else [])
    # With a delay before each command what is read late is read after the call, also where this program is kept waiting.
    env |= {"TENON_PLUGINS": ":".join(files), "TENON_VALIDATE": str(level), "TENON_LOG": "off", "TENON_SIM_DELAY": "500"}
    done = subprocess.run([program, f"{base}:0"], env=env, capture_output=True, text=True, timeout=120)
    if done.returncode:
        return f"the program ended with {done.returncode}: {done.stderr[-500:]}\n{done.stdout}"
    return done.stdout


def main(folder: pathlib.Path) -> None:
    program, wrong = folder / "tests/validation/planted", []
    for base in ("cpu", "sim"):
        for level in (1, 2):
            said = findings(program, folder / f"plugins/{base}/libtenon_{base}.so", base, level, folder)
            if said:
                wrong.append(f"{base} as it is, at level {level}:\n{said}")
    catalogued = {f.name: f for f in catalogue.load()}
    planted = [(catalogued[name], level, number) for name, level, number in KNOWN]
    planted += [(fault(*entry), level, number) for *entry, level, number in PLANTED]
    paths = build.build_all(folder, [f for f, _, _ in planted], 2)
    for f, level, number in planted:
        said = findings(program, paths[f.name], f.base, level, folder)
        found = [line for line in said.splitlines() if line.startswith(f"TNP-{number} ")]
        print(f"{f.name}: {found[0] if found else 'not found'}")
        if not found:
            wrong.append(f"{f.name}: no TNP-{number} at level {level}, but:\n{said}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
