#!/usr/bin/env python3
"""Tenon and PyTorch side by side: the same work, the same threads, in turns, in one run.

usage: compare.py [--device DEVICE] [--build FOLDER] [--json FILE] [--markdown FILE] [--rounds N]
                  [--seconds S] [--threads N[,N...]] [--venv FOLDER]
                  [--peer auto|present|wheel|debian] [--tiny] [ROW...]

DEVICE is cpu:0 or cuda:0, each with its own rows; rows of the other's can be named, too. Takes the
PyTorch that `python3` has where its device is a GPU; else makes a virtual environment with the newest
of the package index (where none answers, takes Debian's libtorch-dev), and says which; builds the peer's program, bench/peer, against its headers and
libraries; then runs each row on one side and on the other, again and again, and prints the medians
over the rounds and their ratio. Both sides run with every thread variable set alike. --tiny is for
trying the programs: its figures mean nothing.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
THREAD_VARIABLES = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "MKL_NUM_THREADS",
                    "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"]

# row: (what, target). A target is ("at most", value in the row's unit) or ("times", factor by which
# PyTorch should be slower; 1 for "never slower"), or None. `Program` tells where the row lives.
PROGRAMS = {
    "overhead": {
        "add": ("add of two one-element f32 tensors", ("at most", 80), ("times", 8)),
        "add-in-place": ("add into the first of them", None, None),
        "add-recording": ("add, recording a gradient", ("at most", 130), ("times", 8)),
        "backward-node": ("one backward node", ("at most", 150), None),
        "backward-smallest": ("forward mul and the smallest whole backward()",
                              ("at most", 500), ("times", 15)),
        "view": ("view", ("at most", 40), ("times", 6)),
        "empty": ("empty tensor of one element", None, None),
        "start": ("process start to first result (PyTorch: import torch)", ("at most", 15), None),
        "start-resident": ("resident memory at that point", ("at most", 12), None),
        "start-cpp": ("the same against a C++ program on libtorch", None, None),
        "start-cpp-resident": ("its resident memory", None, None),
    },
    "internals": {
        "hop": ("dispatcher hop", ("at most", 8), None),
        "boxed": ("boxed kernel call through a plugin", ("at most", 10), None),
        "allocator": ("allocator hit, alloc and free (PyTorch: c10's CPU allocator)",
                      ("at most", 40), None),
    },
    "train": {
        "mlp": ("training step of the MLP, batch 64", None, ("times", 1.5)),
        "cnn": ("training step of the CNN, batch 64", None, ("times", 1.5)),
        "mlp-memory": ("peak memory of training the MLP", None, ("times", 1 / 1.1)),
        "cnn-memory": ("peak memory of training the CNN", None, ("times", 1 / 1.1)),
    },
    "kernels": {
        "matmul": ("matmul, 1024 x 1024 each", None, ("times", 1)),
        "conv-forward": ("conv2d, [64, 32, 26, 26] by [64, 32, 3, 3]", None, ("times", 1)),
        "conv-training": ("conv2d and its three gradients", None, ("times", 1)),
        "attention": ("causal attention, [1, 12, 1024, 64]", None, ("times", 1)),
        "attention-training": ("causal attention and its three gradients", None, ("times", 1)),
        "softmax": ("softmax, rows of [4096, 1024]", None, ("times", 1)),
        "layer-norm": ("layer_norm, rows of [4096, 1024]", None, ("times", 1)),
        "add-large": ("add of two [4096, 1024]", None, ("times", 1)),
        "sum-rows": ("sum, rows of [4096, 1024]", None, ("times", 1)),
        "copy": ("copy of [4096, 4096]", None, ("times", 1)),
        "copy-transposed": ("copy of [4096, 4096], transposed", None, ("times", 1)),
    },
}
GPU_PROGRAMS = {
    "overhead": {
        "start": ("process start to first result, caches warm (PyTorch: import torch)", ("at most", 500), None),
    },
    "device": {
        "launch-add": ("host time of an add of 256 elements", ("at most", 2.5), ("times", 4)),
        "launch-chain": ("host time of a chain of 8 adds", None, ("times", 4)),
        "launch-replay": ("host time of the chain from a graph (PyTorch: CUDA graph)", None, ("times", 1)),
        "launch-copy": ("host time of a copy of 256 elements", None, ("times", 4)),
        "launch-product": ("host time of a product, 16 cubed", None, ("times", 4)),
        "launch-recording": ("host time of an add, recording a gradient", None, ("times", 4)),
        "launch-backward": ("host time of a forward mul and the smallest backward()", None, ("times", 5)),
        "mlp-graph": ("training step of the MLP, batch 64, captured (PyTorch: CUDA graph)", None, ("times", 1)),
        **{f"memory-{name}": (f"{what}, 8192 x 8192 f32", None, ("times", 1)) for name, what in [
            ("add", "add"), ("relu", "relu"), ("copy", "copy"), ("transpose", "copy of a transpose"),
            ("sum", "sum of all"), ("sum_rows", "sum of rows"), ("softmax", "softmax of rows"),
            ("layer_norm", "layer_norm of rows"), ("adamw", "AdamW, fused")]},
        **{f"gemm-{dtype}-{size}": (f"product, {dtype}, {what}", None, ("times", 1))
           for dtype in ("f32", "f16", "bf16") for size, what in [
               ("1024", "1024 cubed"), ("4096", "4096 cubed"), ("skinny", "16 x 4096 by 4096 x 4096")]},
        **{f"conv-{name}": (f"convolution, {what}", None, ("times", 1)) for name, what in [
            ("f32-mnist", "f32, [64, 32, 26, 26] to 64"), ("f32-deep", "f32, [32, 128, 28, 28] to 128"),
            ("f16-deep", "f16, the same"), ("bf16-deep", "bf16, the same")]},
    },
    "kernels": {
        "conv-training": ("conv2d of MNIST and its three gradients, f32", None, ("times", 1)),
    },
    "train": {
        "mlp": ("training step of the MLP, batch 64, eager", None, ("times", 1.5)),
        "cnn": ("training step of the CNN, batch 64, eager", None, ("times", 1.5)),
    },
}
ONE_THREAD_IS_ENOUGH = {"overhead", "internals"}  # one element has nothing to share out
# Rows whose peer is a process of Python, and those where Tenon's own row has another name.
PYTHON_ROWS = {"start", "start-resident"}
TENON_ROWS = {"start-cpp": "start", "start-cpp-resident": "start-resident"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, **options):
    return subprocess.run(command, text=True, capture_output=True, **options)


# ---- the peer ---------------------------------------------------------------------------------------


class Peer:
    """Where a PyTorch is: what compiles against it, and the Python that imports it, if any."""

    def __init__(self, what, version, python, includes, libraries, standard):
        self.what, self.version, self.python = what, version, python
        self.includes, self.libraries, self.standard = includes, libraries, standard


def probe(python):
    """Version and folder of the PyTorch that a Python imports; None where it has none."""
    code = "import torch, json; print(json.dumps([torch.__version__, torch.__path__[0]]))"
    found = run([python, "-W", "ignore", "-c", code])
    return None if found.returncode else json.loads(found.stdout.strip().splitlines()[-1])


def peer_of(python, version, folder, what):
    folder = pathlib.Path(folder)
    return Peer(f"PyTorch {version}, {what}", version, python,
                [folder / "include", folder / "include/torch/csrc/api/include"], folder / "lib", "c++20")


def present():
    python = shutil.which("python3")
    found = python and probe(python)
    return peer_of(python, *found, "which python3 has") if found else None


def wheel(venv):
    python = venv / "bin" / "python"
    found = probe(python) if python.exists() else None
    if not found and os.environ.get("TENON_OFFLINE") == "1":
        say("TENON_OFFLINE=1: no PyTorch is installed")
        return None
    if not found:
        say(f"making a virtual environment with the newest PyTorch in {venv}; it is large")
        venv.parent.mkdir(parents=True, exist_ok=True)
        run([sys.executable, "-m", "venv", str(venv)])
        installed = run([python, "-m", "pip", "install", "--quiet", "--upgrade", "torch"])
        if installed.returncode:
            say("the package index gave no PyTorch: " + (installed.stderr.strip() or "no reason")[-300:])
            return None
        found = probe(python)
        if not found:
            say("the PyTorch that was installed cannot be imported")
            return None
    return peer_of(python, *found, "the newest of the package index")


def debian():
    header = pathlib.Path("/usr/include/torch/csrc/api/include/torch/version.h")
    if not header.exists() and shutil.which("apt-get") and os.geteuid() == 0 \
            and os.environ.get("TENON_OFFLINE") != "1":
        say("installing Debian's libtorch-dev")
        run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "libtorch-dev"])
    if not header.exists():
        return None
    line = next(x for x in header.read_text().splitlines() if x.startswith("#define TORCH_VERSION "))
    version = line.split('"')[1]
    python = pathlib.Path("/usr/bin/python3")
    if run([python, "-c", "import torch"]).returncode:
        python = None
    return Peer(f"libtorch {version} of Debian, the second-best peer", version, python,
                [pathlib.Path("/usr/include/torch/csrc/api/include")], None, "c++17")


def find_peer(options):
    peer = None
    if options.peer == "present" or (options.peer == "auto" and options.is_gpu):
        peer = present()
    if not peer and options.peer in ("auto", "wheel"):
        peer = wheel(options.venv)
    if not peer and options.peer in ("auto", "debian") and not options.is_gpu:
        peer = debian()
    if not peer:
        sys.exit("compare.py: no PyTorch that computes on " + options.device)
    say(f"peer: {peer.what}")
    return peer


def cuda_flags(peer):
    """What compiles and links against libtorch's CUDA; two empty lists where it has none."""
    if not peer.libraries or not (peer.libraries / "libtorch_cuda.so").exists():
        return [], []
    places = [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include",
              *peer.libraries.parent.parent.glob("nvidia/*/include")]
    headers = next((place for place in places if (place / "cuda_runtime_api.h").exists()), None)
    compiled = ["-DPEER_CUDA=1", "-isystem", str(headers)] if headers else []
    return compiled, ["-ltorch_cuda", "-lc10_cuda"]


def build_peer(peer, folder):
    """Compiles bench/peer; what is newer than its sources and of the same version is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    program, stamp = folder / "peer", folder / "version"
    sources = [HERE / "common.c", *sorted((HERE / "peer").glob("*.cpp"))]
    headers = [HERE / "common.h", HERE / "device.h", HERE / "sizes.h", *(HERE / "peer").glob("*.h")]
    newest = max(p.stat().st_mtime for p in [*sources, *headers])
    if program.exists() and program.stat().st_mtime > newest and stamp.exists() \
            and stamp.read_text() == peer.what:
        return program
    say("building the peer's program, a minute or two")
    cuda_compiled, cuda_linked = cuda_flags(peer)
    include = [f"-iquote{HERE.parent}", *(f"-I{path}" for path in peer.includes), *cuda_compiled]

    def compile_one(source):
        out = folder / (source.name + ".o")
        compiler = ["cc", "-std=gnu11"] if source.suffix == ".c" else ["g++", f"-std={peer.standard}"]
        done = run([*compiler, "-O2", *include, "-c", str(source), "-o", str(out)])
        if done.returncode:
            sys.exit(f"compare.py: {source.name} does not compile:\n{done.stderr[-3000:]}")
        return str(out)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources))
    where = [f"-L{peer.libraries}", f"-Wl,-rpath,{peer.libraries}", "-Wl,--disable-new-dtags",
             "-Wl,--allow-shlib-undefined"] if peer.libraries else []
    done = run(["g++", "-o", str(program), *objects, "-Wl,--no-as-needed", *where, "-ltorch_cpu", "-lc10",
                *cuda_linked, "-pthread"])
    if done.returncode:
        sys.exit(f"compare.py: the peer's program does not link:\n{done.stderr[-3000:]}")
    stamp.write_text(peer.what)
    return program


# ---- measuring --------------------------------------------------------------------------------------


def environment(options, n_threads):
    return {**os.environ, "TENON_DEVICE": options.device,
            **{name: str(n_threads) for name in THREAD_VARIABLES}}


class Server:
    """A benchmark program that measures a row whenever it is asked to."""

    def __init__(self, program, options, n_threads):
        self.process = subprocess.Popen(
            [str(program), "--serve", "--threads", str(n_threads), *(["--tiny"] if options.tiny else [])],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(options, n_threads))
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"compare.py: {program} did not start")
        self.head = json.loads(line)

    def measure(self, row, seconds):
        if self.process.poll() is None:
            self.process.stdin.write(f"{row} {seconds}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            if line:
                return json.loads(line)
        return {"row": row, "error": f"the program ended with {self.process.wait()}"}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure_python(python, row, options, n_threads):
    if not python:
        return {"row": row, "error": "no Python with PyTorch"}
    before = time.monotonic()
    process = subprocess.Popen([str(python), "-W", "ignore", str(HERE / "peer" / "start.py")], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=environment(options, n_threads))
    line = process.stdout.readline()
    took = time.monotonic() - before
    process.wait()
    if not line:
        return {"row": row, "error": "import torch failed"}
    value = took * 1e3 if row == "start" else float(line)
    return {"row": row, "median": value, "min": value, "unit": "ms" if row == "start" else "MiB"}


def compare(options, peer, program, n_threads):
    """Rounds over all rows: one side, then the other. Returns a list of results."""
    wanted = {name: [r for r in rows if not options.rows or r in options.rows]
              for name, rows in options.programs.items()
              if n_threads == options.threads[0] or name not in ONE_THREAD_IS_ENOUGH}
    other = Server(program, options, n_threads)
    tenon = {name: Server(options.build / "bench" / name, options, n_threads) for name, rows in wanted.items() if rows}
    samples, heads = {}, {"tenon": next(iter(tenon.values())).head, "peer": other.head}
    for number in range(options.rounds):
        say(f"{n_threads} threads: round {number + 1} of {options.rounds}")
        for name, rows in wanted.items():
            for row in rows:
                sides = samples.setdefault(row, {"tenon": [], "peer": []})
                sides["tenon"].append(tenon[name].measure(TENON_ROWS.get(row, row), options.seconds))
                time.sleep(0.02)  # threads that wait for work by spinning stop
                sides["peer"].append(measure_python(peer.python, row, options, n_threads) if row in PYTHON_ROWS
                                     else other.measure(row, options.seconds))
                time.sleep(0.02)
    for server in [other, *tenon.values()]:
        server.close()
    return [summary(options.programs, name, row, n_threads, samples[row])
            for name, rows in wanted.items() for row in rows], heads


def summary(programs, program, row, n_threads, sides):
    what, limit, factor = programs[program][row]
    out = {"program": program, "row": row, "what": what, "threads": n_threads, "unit": None,
           "limit": limit and limit[1], "factor": factor and factor[1]}
    for side, results in sides.items():
        good = [r for r in results if "error" not in r]
        if len(good) < len(results):
            out[side] = {"error": next(r["error"] for r in results if "error" in r)}
            continue
        out["unit"] = out["unit"] or good[0]["unit"]
        out[side] = {"median": statistics.median(r["median"] for r in good),
                     "min": min(r["min"] for r in good), "rounds": [r["median"] for r in good]}
    if "median" in out["tenon"] and "median" in out["peer"]:
        out["ratio"] = out["peer"]["median"] / max(out["tenon"]["median"], 1e-12)
        out["ratio_of_minima"] = out["peer"]["min"] / max(out["tenon"]["min"], 1e-12)
    out["met"] = verdict(out)
    return out


def verdict(r):
    if "median" not in r["tenon"] or (r["limit"] is None and r["factor"] is None):
        return None
    met = r["limit"] is None or r["tenon"]["median"] <= r["limit"]
    if r["factor"] is not None:
        if "ratio" not in r:
            return None
        met = met and r["ratio"] >= r["factor"]
    return met


# ---- telling ----------------------------------------------------------------------------------------


def first_match(text, key):
    return next((line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(key)), "?")


def machine():
    cpu = first_match(pathlib.Path("/proc/cpuinfo").read_text().replace("\t", ""), "model name")
    memory = int(first_match(pathlib.Path("/proc/meminfo").read_text(), "MemTotal").split()[0]) / 2**20
    release = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    compiler = run(["cc", "--version"]).stdout.splitlines()[0]
    return {"cpu": cpu, "cores": os.cpu_count(), "memory": f"{memory:.0f} GiB", "system": release,
            "kernel": platform.release(), "compiler": compiler}


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def cell(r, side):
    return f"{number(r[side]['median'])} {r['unit']}" if "median" in r[side] else "failed"


def target(r):
    parts = []
    if r["limit"] is not None:
        parts.append(f"≤ {r['limit']:g} {r['unit']}")
    if r["factor"] is not None:
        parts.append("≤ 1.1 × PyTorch" if r["factor"] < 1
                     else "not slower" if r["factor"] == 1 else f"{r['factor']:g} × faster")
    return ", ".join(parts)


def table(results):
    head = ["what", "threads", "target", "Tenon", "PyTorch", "PyTorch / Tenon", "of minima", ""]
    lines = [[r["what"], str(r["threads"]), target(r), cell(r, "tenon"), cell(r, "peer"),
              f"{r['ratio']:.2f}" if "ratio" in r else "", f"{r['ratio_of_minima']:.2f}" if "ratio" in r else "",
              {True: "met", False: "missed", None: ""}[r["met"]]] for r in results]
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    rule = ["-" * w for w in widths]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(line, widths)) + " |"
                     for line in [head, rule, *lines])


def head_of(report):
    """Where and how it was measured, and what: lines."""
    m = report["machine"]
    return [f"{m['cpu']}, {m['cores']} cores, {m['memory']}; {m['system']}, Linux {m['kernel']}; {m['compiler']}",
            f"Tenon: {report['tenon']}", f"PyTorch: {report['peer']} ({report['peer_source']})",
            f"{report['rounds']} rounds of {report['seconds']:g} s a row and side, in turns; load average "
            f"{report['load_before']:.1f} before, {report['load_after']:.1f} after (both sides run alone: 1-2)"]


def text_of(report):
    return "\n".join([
        *head_of(report), "set to the number of threads: " + ", ".join(THREAD_VARIABLES)
        + ", tn_set_num_threads, at::set_num_threads", "", table(report["results"])])


def parser_of(usage, rounds, seconds):
    """What every comparison with PyTorch takes."""
    parser = argparse.ArgumentParser(usage=usage)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--venv", type=pathlib.Path)
    parser.add_argument("--peer", choices=["auto", "present", "wheel", "debian"], default="auto")
    return parser


def parse(parser):
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.venv = options.venv or options.build / "bench-peer" / "venv"
    options.is_gpu = not options.device.startswith("cpu")
    return options


def arguments():
    parser = parser_of(__doc__, rounds=7, seconds=0.3)
    parser.add_argument("--device", default="cpu:0")
    parser.add_argument("rows", nargs="*")
    options = parse(parser)
    options.programs, others = (GPU_PROGRAMS, PROGRAMS) if options.is_gpu else (PROGRAMS, GPU_PROGRAMS)
    own = {row for rows in options.programs.values() for row in rows}
    if set(options.rows) - own:
        options.programs = {name: {**{row: it for row, it in others.get(name, {}).items() if row not in own},
                                   **options.programs.get(name, {})} for name in {**others, **options.programs}}
    options.threads = options.threads or ([os.cpu_count()] if options.is_gpu
                                          else sorted({os.cpu_count(), 1}, reverse=True))
    known = {row for rows in options.programs.values() for row in rows}
    for row in options.rows:
        if row not in known:
            parser.error(f"there is no row '{row}'; there are: {', '.join(sorted(known))}")
    return options


def start_report(options, peer):
    return {"machine": machine(), "peer_source": peer.what, "rounds": options.rounds,
            "seconds": options.seconds, "load_before": os.getloadavg()[0], "results": []}


def tell(options, report, text):
    """Prints the text, and writes what was asked for."""
    text += "\n\nTiny work: these figures mean nothing." if options.tiny else ""
    print(text)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    if options.markdown:
        options.markdown.write_text(text + "\n")


def main():
    options = arguments()
    peer = find_peer(options)
    program = build_peer(peer, options.build / "bench-peer")
    report = start_report(options, peer)
    for n_threads in options.threads:
        results, heads = compare(options, peer, program, n_threads)
        report["results"] += results
        report.update({side: head["version"] for side, head in heads.items()})
        report["environment"] = heads["peer"]["environment"]
    report["load_after"] = os.getloadavg()[0]
    tell(options, report, text_of(report))


if __name__ == "__main__":
    main()
