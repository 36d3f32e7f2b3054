#!/usr/bin/env python3
"""Runs the conformance suite against deliberately faulty devices and writes which case classes caught which defect.

usage: matrix.py [--build BUILD] [--full] [--fresh] [--only PATTERN] [NAME...]

Each defect first meets the cases that its catalogue entry expects to catch it, and stops after five kills; if it
survives, it meets the whole standard set. --full runs every case on every defect. A kill is a case that is not good on
the faulty device and passes on the device as it is. The devices as they are run too: what is not good there is a false
alarm. What was found is kept in BUILD/conform/self, by what the defect is made from and the suite; --fresh forgets it.
All defects together write docs/reports/kill-matrix.md; with names nothing is written. --only takes these cases for the standard
set, and keeps nothing.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import pathlib
import subprocess
import sys

import build
import catalogue

CLASSES = ("kernel", "same", "refuse", "contract", "process", "operator", "gradient", "train")
KILLS = {"fail", "crash", "timeout", "flaky", "inconclusive"}
GOOD = {"pass", "unsupported"}
ENOUGH = 5
TIMEOUT = 30
JOBS = 2
NOTHING_SELECTED = 4  # an exit status of tenon-conform
LONGEST = 3600  # seconds of one run of the suite


def sha256(*paths):
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Suite:
    def __init__(self, folder, only):
        self.cases = ["--set", "standard"]
        for pattern in only:
            self.cases += ["--filter", pattern]
        self.program = folder / "plugin-sdk/conformance/runner/tenon-conform"
        self.core = folder / "plugin-sdk/conformance/worker/core/tenon-conform-core"
        self.logs = folder / "conform" / ("only" if only else "self")
        self.logs.mkdir(parents=True, exist_ok=True)
        parts = [self.program, self.core] + [p for p in [folder / "core/libtenon.so"] if p.is_file()]
        self.digest = sha256(*parts)

    def run(self, name, plugin, options):
        """The cases of one run that were not good, how many passed, and what went wrong with the run itself."""
        log = self.logs / f"{name}.jsonl"
        log.unlink(missing_ok=True)
        command = [self.program, "run", plugin, *self.cases, "--quiet", "-j1", "--reruns", "0", "--timeout", str(TIMEOUT),
                   "--log", log, *options]
        with open(self.logs / f"{name}.txt", "wb") as out:
            try:
                done = subprocess.run(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, timeout=LONGEST)
                code = done.returncode
            except subprocess.TimeoutExpired:
                code = 3
        bad, passed, ended = {}, 0, False
        if log.exists():
            for line in log.read_text(errors="replace").splitlines():
                record = json.loads(line)
                ended |= record["record"] == "end"
                if record["record"] == "case":
                    passed += record["status"] == "pass"
                    if record["status"] not in GOOD:
                        bad[record["case"]] = record["status"]
                elif record["record"] == "note":
                    bad.setdefault("note", "note")
        return bad, passed, code if code == NOTHING_SELECTED or (code in (0, 1) and ended) else f"exit {code}, see {self.logs / name}.txt"


class State:
    """What earlier runs found, kept as soon as it is known."""

    def __init__(self, path, fresh):
        self.path = path
        self.found = json.loads(path.read_text()) if path.exists() and not fresh else {}

    def get(self, key):
        return self.found.get(key)

    def put(self, key, value):
        self.found[key] = value
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.found, indent=0))
        part.replace(self.path)


def kills_of(bad, baseline):
    return {case: status for case, status in bad.items() if status in KILLS and case not in baseline}


def try_fault(suite, fault, plugin, baseline, full):
    """{case: status} of the kills; in brief mode at most about ENOUGH."""
    if not full and len(suite.cases) == 2:
        options = ["--stop-after-failures", str(ENOUGH)]
        for pattern in fault.expect:
            options += ["--filter", pattern]
        bad, _, trouble = suite.run(fault.name, plugin, options)
        kills = kills_of(bad, baseline)
        if kills:
            return kills, True
        if trouble == NOTHING_SELECTED:
            return {}, f"the suite has no case of {', '.join(fault.expect)}"
    options = [] if full else ["--stop-after-failures", str(ENOUGH)]
    bad, _, trouble = suite.run(fault.name, plugin, options)
    return kills_of(bad, baseline), False if trouble in (0, 1) else trouble


def count_classes(kills):
    return collections.Counter(case.split("/")[0] for case in kills)


def write_page(path, faults, results, alarms, passed, full):
    n_killed = sum(bool(results[f.name]) for f in faults)
    lines = ["# The kill matrix", "", "    ./dev conform --self" + (" --full" if full else ""), "",
             "writes this page anew; nobody else does. [Who checks the suite?](../conformance.md#who-checks-the-suite) "
             "says what it is.", "",
             f"{n_killed} of {len(faults)} deliberate defects are killed by the standard set; on the devices as they "
             f"are {passed} cases pass and {len(alarms)} raise a false alarm.", ""]
    if not full:
        lines += [f"A defect stops after {ENOUGH} kills, among the cases that are expected to catch it, so the "
                  "numbers say who caught it first, not how often. Below each is a case that catches it.", ""]
    total = collections.Counter()
    for group in catalogue.GROUPS:
        members = [f for f in faults if f.group == group]
        if not members:
            continue
        lines += [f"## {group.capitalize()}", ""]
        for fault in members:
            kills = results[fault.name]
            counts = count_classes(kills)
            total.update({c: 1 for c in counts})
            caught = ", ".join(f"{c} {counts[c]}" for c in CLASSES if counts[c]) or "**survives**"
            lines.append(f"* **{fault.name}** ({fault.base}): {fault.why}. {caught}")
            if kills:
                lines.append(f"  `{min(kills, key=lambda c: (len(c), c))}`")
        lines.append("")
    lines += ["## Classes", "", "| class | defects it caught |", "| --- | --- |"]
    lines += [f"| {c} | {total[c]} |" for c in CLASSES if total[c]]
    path.write_text("\n".join(lines) + "\n")


def baselines(suite, state, bases, names):
    """{base: {case: status}} of the devices as they are, and the cases that passed."""
    found, passed, waiting = {}, 0, {}
    with concurrent.futures.ThreadPoolExecutor(JOBS) as threads:
        for name in names:
            plugin = bases[name].build / bases[name].library
            key = f"as-it-is {name} {sha256(plugin)} {suite.digest}"
            if not state.get(key):
                waiting[threads.submit(suite.run, f"as-it-is-{name}", plugin, [])] = key
        for done in concurrent.futures.as_completed(waiting):
            bad, n, trouble = done.result()
            if trouble not in (0, 1):
                raise catalogue.Stale(f"{waiting[done]}: the suite could not run: {trouble}")
            state.put(waiting[done], [bad, n])
    for name in names:
        bad, n = state.get(f"as-it-is {name} {sha256(bases[name].build / bases[name].library)} {suite.digest}")
        found[name] = bad
        passed += n
        print(f"as it is, {name}: {n} passed, {len(bad)} not good")
        for case, status in list(bad.items())[:20]:
            print(f"    {status}: {case}")
    return found, passed


def run(options):
    folder = options.build.resolve()
    faults = catalogue.load()
    unknown = set(options.names) - {f.name for f in faults}
    if unknown:
        raise catalogue.Stale(f"there is no fault {', '.join(sorted(unknown))}")
    if options.names:
        faults = [f for f in faults if f.name in options.names]
    suite = Suite(folder, options.only)
    state = State(suite.logs / "state.json", options.fresh or options.only)
    names = sorted({f.base for f in faults})
    bases = {name: build.Base(folder, name) for name in names}
    paths = build.build_all(folder, faults, JOBS)
    baseline, passed = baselines(suite, state, bases, names)

    results, waiting = {}, {}
    with concurrent.futures.ThreadPoolExecutor(JOBS) as threads:
        for fault in faults:
            key = f"{fault.name} {(paths[fault.name].parent / 'key').read_text()} {suite.digest} {options.full}"
            kept = state.get(key)
            if kept:
                results[fault.name] = kept
                continue
            job = threads.submit(try_fault, suite, fault, paths[fault.name], baseline[fault.base], options.full)
            waiting[job] = fault, key
        for done in concurrent.futures.as_completed(waiting):
            fault, key = waiting[done]
            kills, how = done.result()
            results[fault.name] = kills
            if kills:
                state.put(key, kills)
            where = ", ".join(f"{n} {c}" for c, n in sorted(count_classes(kills).items()))
            note = "" if how is True else " (not by what was expected)" if not options.full and kills else ""
            note += f" ({how})" if isinstance(how, str) else ""
            print(f"{'killed' if kills else 'SURVIVES'}: {fault.name}: {where or fault.why}{note}", flush=True)

    alarms = [case for bad in baseline.values() for case in bad]
    if not options.names and not options.only:
        write_page(options.page, faults, results, alarms, passed, options.full)
    n_killed = sum(bool(kills) for kills in results.values())
    print(f"kill matrix: {n_killed} of {len(faults)} defects killed, {len(alarms)} false alarms")
    return 0 if n_killed == len(faults) and not alarms else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=build.ROOT / "build")
    parser.add_argument("--page", type=pathlib.Path, default=build.ROOT / "docs" / "reports" / "kill-matrix.md")
    parser.add_argument("--full", action="store_true", help="every case on every defect")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="these cases and no others")
    parser.add_argument("names", nargs="*", metavar="NAME")
    try:
        return run(parser.parse_args())
    except catalogue.Stale as error:
        print(f"matrix.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
