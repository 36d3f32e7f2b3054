#!/usr/bin/env python3
"""Operators from one element to past the caches, in f32 and bf16, on all threads and on one, beside PyTorch.

usage: sizes.py [--build FOLDER] [--rounds N] [--seconds S] [--threads N[,N...]] [--json FILE] [--markdown FILE]
                [--svg FILE] [--venv FOLDER] [--peer auto|present|wheel|debian] [--tiny] [OPERATION...]

Prints, for each operation and size, PyTorch's time over Tenon's (above 1: Tenon is faster), each the median of
rounds in turns, and for what is past the caches the share of what the machine can copy or multiply, measured in
the same run. With --json, the figures; with --svg, a picture of the ratios. All of it takes ten minutes; --tiny, for
trying the programs, leaves the larger sizes away.
"""

import html
import math
import os
import pathlib
import statistics
import sys
import time

import compare

# What an operation moves for each element, in elements; of others there is no share to tell.
MOVED = {"add": 3, "relu": 2, "exp": 2, "gelu": 2, "copy": 2, "transpose": 2, "gather": 2, "sum": 1, "sum_rows": 1,
         "sum_columns": 1, "argmax": 1, "cumsum": 2, "softmax": 2, "layer_norm": 2}
BYTES = {"F32": 4, "BF16": 2}
PAST_THE_CACHES = 25  # log2 of the elements
TINY = 14
CEILINGS = {"ceiling-copy": "GB/s", "ceiling-multiply": "GFLOP/s"}


def rows_of(program):
    names = [line.split()[0] for line in compare.run([program, "--list"]).stdout.splitlines() if line.strip()]
    return [name for name in names if name not in CEILINGS]


def size_of(row):
    """log2 of its elements."""
    operation, _, size = row.split("/")
    return 2 * math.log2(int(size)) if operation == "matmul" else int(size)


def measure(options, program, rows, n_threads):
    """{row: [(Tenon's, PyTorch's) of each round]} and the ceilings."""
    tenon = compare.Server(options.build / "bench" / "sizes", options, n_threads)
    other = compare.Server(program, options, n_threads)
    samples, ceilings, failed = {}, {}, {}
    for number in range(options.rounds):
        compare.say(f"{n_threads} threads: round {number + 1} of {options.rounds}")
        for name in CEILINGS:
            ceilings.setdefault(name, []).append(tenon.measure(name, options.seconds)["median"])
        for row in rows:
            sides = []
            for server in (tenon, other):
                sides.append(server.measure(row, options.seconds))
                time.sleep(0.005)  # threads that wait for work by spinning stop
            if any("error" in side for side in sides):
                failed[row] = next(side["error"] for side in sides if "error" in side)
            else:
                samples.setdefault(row, []).append([side["median"] for side in sides])
    heads = tenon.head["version"], other.head["version"]
    tenon.close()
    other.close()
    return samples, {name: max(values) for name, values in ceilings.items()}, failed, heads


def summary(row, pairs, ceilings, n_threads):
    operation, dtype, size = row.split("/")
    size = int(size)
    ours, theirs = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
    result = {"operation": operation, "dtype": dtype, "size": size, "threads": n_threads, "tenon_us": ours,
              "pytorch_us": theirs, "ratio": statistics.median(b / a for a, b in pairs)}
    if operation == "matmul" and dtype == "F32" and size >= 512:
        result["share"] = 2e-3 * size**3 / ours / ceilings["ceiling-multiply"]
    elif operation in MOVED and size == PAST_THE_CACHES:
        result["share"] = 1e-3 * MOVED[operation] * BYTES[dtype] * 2**size / ours / ceilings["ceiling-copy"]
    return result


# ---- telling ----------------------------------------------------------------------------------------


def size_name(operation, size):
    return f"{size}²" if operation == "matmul" else str(2**size) if size < 10 else \
        f"{2**(size - 10)} Ki" if size < 20 else f"{2**(size - 20)} Mi"


def lines_of(results):
    """(operation, dtype, threads): {size: result}, in the order of the results."""
    lines = {}
    for r in results:
        lines.setdefault((r["operation"], r["dtype"], r["threads"]), {})[r["size"]] = r
    order = list(dict.fromkeys(r["operation"] for r in results))
    return dict(sorted(lines.items(), key=lambda line: (order.index(line[0][0]), line[0][1] != "F32", -line[0][2])))


def tables(results):
    out = []
    for group in (False, True):
        some = [r for r in results if (r["operation"] == "matmul") == group]
        if not some:
            continue
        sizes = sorted({r["size"] for r in some})
        out += ["| operation | dtype | threads | " + " | ".join(size_name(some[0]["operation"], s) for s in sizes)
                + " | of the ceiling |", "| --- " * (len(sizes) + 4) + "|"]
        for (operation, dtype, threads), line in lines_of(some).items():
            cells = [f"{line[s]['ratio']:.2f}" if s in line else "" for s in sizes]
            share = next((f"{r['share']:.2f}" for r in reversed(line.values()) if "share" in r), "")
            out.append(f"| {operation} | {dtype.lower()} | {threads} | " + " | ".join(cells) + f" | {share} |")
        out.append("")
    return "\n".join(out)


def colour(ratio):
    """White at 1, green where Tenon is faster and red where PyTorch is, full at four times."""
    depth = max(-1.0, min(1.0, math.log2(ratio) / 2))
    to = (34, 139, 84) if depth > 0 else (200, 55, 45)
    return "#" + "".join(f"{round(255 + (c - 255) * abs(depth)):02x}" for c in to)


def picture(report):
    lines = lines_of(report["results"])
    width, height, left, top = 62, 20, 210, 64
    most = max(len(line) for line in lines.values())
    out, y, before = [], top, None
    for (operation, dtype, threads), line in lines.items():
        if operation != before:
            y += 4
            if before is None or (operation == "matmul"):
                for i, size in enumerate(sorted(line)):
                    out.append(f'<text x="{left + (i + 0.5) * width}" y="{y + 14}" text-anchor="middle" class="head">'
                               f"{html.escape(size_name(operation, size))}</text>")
                y += height
            before = operation
        out.append(f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{operation}, {dtype.lower()}, '
                   f'{threads} thread{"s" if threads > 1 else ""}</text>')
        for i, size in enumerate(sorted(line)):
            ratio = line[size]["ratio"]
            out.append(f'<rect x="{left + i * width}" y="{y}" width="{width - 2}" height="{height - 2}" rx="2" '
                       f'fill="{colour(ratio)}"/><text x="{left + (i + 0.5) * width - 1}" y="{y + 14}" '
                       f'text-anchor="middle">{ratio:.2f}</text>')
        y += height
    head = [f'<text x="12" y="24" class="title">PyTorch\'s time over Tenon\'s, by elements</text>',
            f'<text x="12" y="46" class="head">above 1, green: Tenon is faster. {html.escape(report["machine"]["cpu"])}</text>']
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + most * width + 16}" height="{y + 16}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        "<style>.title { font-size: 16px; font-weight: bold } .head { fill: #555 }</style>",
        '<rect width="100%" height="100%" fill="#fff"/>', *head, *out, "</svg>"]) + "\n"


def text_of(report):
    ceilings = [f"{n} thread{'s' if int(n) > 1 else ''}: "
                + ", ".join(f"{of[name]:.0f} {unit}" for name, unit in CEILINGS.items())
                for n, of in report["ceilings"].items()]
    ratios = [r["ratio"] for r in report["results"]]
    return "\n".join([
        *compare.head_of(report), "at most, copying and multiplying: " + "; ".join(ceilings), "",
        tables(report["results"]),
        f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)} are slower than PyTorch's; the median is "
        f"{statistics.median(ratios or [0]):.2f}.",
        *(f"failed: {row}: {why}" for row, why in report["failed"].items())])


def arguments():
    parser = compare.parser_of(__doc__, rounds=5, seconds=0.05)
    parser.set_defaults(device="cpu:0")
    parser.add_argument("--svg", type=pathlib.Path)
    parser.add_argument("operations", nargs="*")
    options = compare.parse(parser)
    options.threads = options.threads or sorted({os.cpu_count(), 1}, reverse=True)
    rows = rows_of(options.build / "bench" / "sizes")
    known = sorted({row.split("/")[0] for row in rows})
    for operation in options.operations:
        if operation not in known:
            parser.error(f"there is no operation '{operation}'; there are: {', '.join(known)}")
    options.rows = [row for row in rows if row.split("/")[0] in (options.operations or known)
                    and not (options.tiny and size_of(row) > TINY)]
    return options


def main():
    options = arguments()
    peer = compare.find_peer(options)
    program = compare.build_peer(peer, options.build / "bench-peer")
    report = compare.start_report(options, peer) | {"ceilings": {}, "failed": {}}
    for n_threads in options.threads:
        samples, report["ceilings"][str(n_threads)], failed, heads = measure(options, program, options.rows, n_threads)
        report["tenon"], report["peer"] = heads
        report["failed"].update(failed)
        report["results"] += [summary(row, pairs, report["ceilings"][str(n_threads)], n_threads)
                              for row, pairs in samples.items() if row not in failed]
    report["load_after"] = os.getloadavg()[0]
    compare.tell(options, report, text_of(report))
    if options.svg:
        options.svg.write_text(picture(report))
    return 1 if report["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
