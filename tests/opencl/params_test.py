#!/usr/bin/env python3
"""Parameters lie alike where the host writes them and where device code reads them: device/*.params.h.

usage: params_test.py LANGUAGE HOST_COMPILER...      LANGUAGE: opencl (needs clang) or cuda (needs nvcc)

The host's compiler says where each member lies; the other one is given that to check, for each form of the
variants (STRIDED: what a variant lacks must stand behind all that it has).
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICE = ROOT / "plugins/shared/gpu/device"
FORMS = (0, 1, 2)  # of STRIDED


def members(header: pathlib.Path, compiler: list[str], strided: int | None) -> dict[str, list[str]]:
    """{struct: its members}, as the host has them (None) or as a variant."""
    macros = [] if strided is None else ["-DDEVICE=", f"-DSTRIDED={strided}"]
    text = subprocess.run([*compiler, "-E", "-P", f"-iquote{ROOT}", *macros, header], check=True,
                          capture_output=True, text=True).stdout
    found = {}
    for name, body in re.findall(r"typedef struct (\w+_params\w*) \{(.*?)\} \1;", text, re.DOTALL):
        found[name] = []
        plain = re.sub(r"struct \{[^{}]*\}", "i64", body)  # a LOOP
        for declaration in filter(None, map(str.strip, plain.split(";"))):
            if not declaration.startswith("i64 "):
                sys.exit(f"params_test: struct {name}: cannot read '{declaration}'")
            found[name] += [re.match(r"\w+", m.strip())[0] for m in declaration[4:].split(",")]
    return found


def host_layout(header: pathlib.Path, compiler: list[str], folder: pathlib.Path) -> dict[str, dict[str, int]]:
    """{struct: {member: where it ends}}; a struct begins at 0 and has no gaps."""
    structs = members(header, compiler, None)
    if not structs:
        sys.exit(f"params_test: {header.name} has no struct")
    calls = "".join(f'    printf("{s} {m} %zu %zu\\n", offsetof({s}, {m}), sizeof((({s} *)0)->{m}));\n'
                    for s, names in structs.items() for m in names)
    calls += "".join(f'    printf("{s} - %zu 0\\n", sizeof({s}));\n' for s in structs)
    source, program = folder / "host.c", folder / "host"
    source.write_text(f'#include "{header.relative_to(ROOT)}"\n#include <stddef.h>\n#include <stdio.h>\n'
                      f"int main(void) {{\n{calls}    return 0;\n}}\n")
    subprocess.run([*compiler, "-std=gnu11", f"-iquote{ROOT}", source, "-o", program], check=True)
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    ends: dict[str, dict[str, int]] = {s: {} for s in structs}
    for line in said.splitlines():
        struct, member, offset, size = line.split()
        before = max(ends[struct].values(), default=0)
        if before != int(offset):
            sys.exit(f"params_test: a gap in {struct} before {member}")
        ends[struct][member] = int(offset) + int(size)
    return ends


def checks(header: pathlib.Path, compiler: list[str], ends: dict[str, dict[str, int]], strided: int) -> str:
    """Code that compiles if device code sees in this form what the host writes."""
    text, n = f'#include "{header.relative_to(ROOT)}"\n', 0
    for struct, there in members(header, compiler, strided).items():
        whole = [m for m in ends[struct] if m != "-"]
        if there != whole[:len(there)]:
            sys.exit(f"params_test: {struct} with STRIDED={strided} has not the first members of the host's")
        begin = 0
        facts = []
        for member in there:
            facts.append((f"__builtin_offsetof({struct}, {member})", begin))
            begin = ends[struct][member]
        for expression, value in [*facts, (f"sizeof({struct})", begin)]:
            text += f"typedef char check_{n}[({expression}) == {value} ? 1 : -1];\n"
            n += 1
    return text


def main(language: str, *compiler: str) -> None:
    name = {"opencl": "clang", "cuda": "nvcc"}[language]
    found = shutil.which(name) or shutil.which(f"/usr/local/cuda/bin/{name}")
    if not found:
        print(f"skipped: there is no {name}")
        sys.exit(SKIPPED)
    command = {
        "opencl": [found, "-x", "cl", "-cl-std=CL1.2", "-target", "spir64-unknown-unknown", "-fsyntax-only",
                   "-Xclang", "-finclude-default-header", "-D__OPENCL_VERSION__=120", "-Wno-builtin-macro-redefined",
                   "-Wno-macro-redefined"],
        "cuda": [found, "-x", "cu", "-cubin", "-arch=sm_80"],
    }[language]
    headers = sorted(DEVICE.glob("*.params.h"))
    n = 0
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        layouts = {h: host_layout(h, list(compiler), folder) for h in headers}
        for strided in FORMS:
            source = folder / ("check.cu" if language == "cuda" else "check.cl")
            body = "".join(checks(h, list(compiler), layouts[h], strided) for h in headers)
            body = re.sub(r"check_\d+", lambda _, i=iter(range(10**6)): f"check_{next(i)}", body)
            n += body.count("check_")
            source.write_text(f"#define IS_CPU 0\n#define HAS_F64 1\n#define STRIDED {strided}\n"
                              '#include "plugins/shared/gpu/device/dialect.h"\n' + body)
            done = subprocess.run([*command, "-I", str(ROOT), source, "-o", folder / "out"], capture_output=True,
                                  text=True)
            if done.returncode:
                sys.exit(f"params_test: {language} sees other places than C, STRIDED={strided}:\n{done.stderr[:4000]}")
    print(f"{language}: {len(headers)} files, {n} places are as in C")


if __name__ == "__main__":
    main(*sys.argv[1:])
