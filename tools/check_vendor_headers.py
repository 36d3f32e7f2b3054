#!/usr/bin/env python3
"""Checks that what vendors build against compiles as they compile it: tenon/plugin.h, tenon/kernels.h and
tenon/ext/*.h under every promised standard and the warnings of strict code bases, after <tgmath.h>, with
macros of other people in force and handles renamed, and with short enums.

usage: check_vendor_headers.py -I FOLDER [-I FOLDER ...]
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wcast-qual", "-Wcast-align",
            "-Wundef", "-Wshadow", "-Werror", "-Wno-unused-const-variable"]
C = (["c99", "c11", "c17", "c2x"], ["-Wstrict-prototypes"])
CXX = (["c++11", "c++14", "c++17", "c++20", "c++2b"], ["-Wold-style-cast", "-Wzero-as-null-pointer-constant"])
COMPILERS = {
    "gcc": ("c", *C),
    "clang": ("c", *C),
    "g++": ("c++", CXX[0], CXX[1] + ["-Wuseless-cast"]),
    "clang++": ("c++", *CXX),
}

# What other headers define before ours: names that members and functions of ours must not need.
MACROS = ["free(p)", "read", "write", "open", "close", "wait", "shutdown", "alloc", "copy", "min", "max"]

USES = """
#define ENTRY(name, hash, small, kind, schema) + hash
extern const uint64_t all_hashes, all_masks;
const uint64_t all_hashes = 0 TN_KERNEL_TABLE(ENTRY);
const uint64_t all_masks = TN_DTYPES_ALL | TN_KERNEL_STRIDED | TN_KERNEL_BROADCAST | TN_KERNEL_IN_PLACE |
                           TN_KERNEL_INDEX64 | TN_KERNEL_SCALARS | TN_KERNEL_DETERMINISTIC;
static const int32_t types[] = TN_KERNEL_ARG_TYPES_gather;
static const uint64_t dtypes[] = TN_KERNEL_DTYPES_gather;
int has(const tn_host *host, const tn_plugin *plugin);
int has(const tn_host *host, const tn_plugin *plugin) {
    return TN_HAS(host, tn_host, extension) && TN_HAS(plugin, tn_plugin, extension) && types[0] == 0 &&
           dtypes[0] != 0 && TN_ABI_TARGET <= TN_ABI_VERSION && TN_KERNEL_FIXED(TN_I64) < 0 &&
           TN_KERNEL_SCALAR != TN_KERNEL_NO_TENSOR;
}
"""


def source(headers):
    lines = ["#include <tgmath.h>", "#undef log", "#define log log_of_another"]
    lines += [f"#define {m} {m.partition('(')[0]}_of_another" for m in MACROS]
    lines += ["#define tn_device_impl acme_device", "#define tn_stream_impl acme_stream"]
    lines += [f"#include <{header}>" for header in headers]
    return "\n".join(lines) + USES


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-I", dest="folders", action="append", type=pathlib.Path, required=True)
    folders = parser.parse_args().folders
    headers = ["tenon/plugin.h", "tenon/kernels.h"]
    headers += sorted({str(p.relative_to(f)) for f in folders for p in f.glob("tenon/ext/*.h")})
    includes = [flag for f in folders for flag in ("-I", str(f))]
    text = source(headers)
    n_runs = n_failed = 0
    for compiler, (language, standards, warnings) in COMPILERS.items():
        if not shutil.which(compiler):
            print(f"vendor headers: no {compiler}")
            continue
        for standard in standards:
            for enums in ("-fno-short-enums", "-fshort-enums"):
                command = [compiler, "-x", language, f"-std={standard}", enums, *WARNINGS, *warnings, *includes,
                           "-fsyntax-only", "-"]
                run = subprocess.run(command, input=text, capture_output=True, text=True)
                n_runs += 1
                if run.returncode:
                    n_failed += 1
                    print(f"{compiler} -std={standard} {enums}:\n{run.stderr}")
    print(f"vendor headers: {len(headers)} headers, {n_runs} compilations, {n_failed} failed")
    return 1 if n_failed or not n_runs else 0


sys.exit(main())
