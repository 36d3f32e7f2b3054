"""tenon-conform run against a worker that misbehaves: runner_test.py TENON_CONFORM MOCK_WORKER."""

import html
import json
import os
import pathlib
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

CONFORM, MOCK = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])


WAIVER = "[ticket=HW-12 owner=jane until=2999-12-31]"


class Runner(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.dir = pathlib.Path(self.folder.name)
        self.plugin = self.dir / "plugin.so"
        self.plugin.write_text("not loaded by anyone")
        self.log = self.dir / "log"
        self.env = dict(os.environ, MOCK_DIR=str(self.dir), TERM="dumb",
                        TENON_CONFORM_CORE="/none")  # the cases of mock_worker alone

    def tearDown(self) -> None:
        self.folder.cleanup()

    def command(self, *words: object) -> list[str]:
        return [CONFORM, "run", str(self.plugin), "--worker", MOCK, "--timeout", "2", *map(str, words)]

    def run_it(self, *words: object, **options) -> subprocess.CompletedProcess:
        return subprocess.run(
            self.command(*words), env=self.env, capture_output=True, text=True, timeout=120, **options
        )

    def set_is(self, *lines: str) -> None:
        (self.dir / "set").write_text("".join(f"{line}\n" for line in lines))
        self.env["MOCK_LIST"] = str(self.dir / "set")

    def records(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def cases(self) -> dict[str, dict]:
        return {r["case"]: r for r in self.records() if r["record"] == "case"}

    def one(self, line: str, *words: object) -> dict:
        self.result = self.run_it("--log", self.log, *words, line)
        return self.cases()[line]

    # ---- what a case can do to its worker

    def test_what_passes_is_good(self) -> None:
        self.assertEqual(self.one("kernel/add")["status"], "pass")
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        self.assertEqual(self.result.stdout, "Mock <device>: 1 passed, 0 failed\n")

    def test_each_way_to_die_is_a_crash(self) -> None:
        for subject, words in {
            "segv": "signal 11",
            "abort": "signal 6",
            "exit0": "exit status 0",
            "exit3": "exit status 3",
            "orphan": "exit status 7",
            "closeall": "closed the descriptor",
        }.items():
            with self.subTest(subject):
                self.log.unlink(missing_ok=True)
                verdict = self.one(f"kernel/{subject}")
                self.assertEqual(verdict["status"], "crash")
                self.assertIn(words, verdict["message"])
                self.assertEqual(self.result.returncode, 1)

    def test_what_was_printed_is_in_the_message(self) -> None:
        self.assertIn("about to fall", self.one("kernel/segv")["message"])

    def test_a_line_to_paste_is_printed(self) -> None:
        self.one("kernel/fail T=f32")
        self.assertIn(f"tenon-conform run {self.plugin} 'kernel/fail T=f32'", self.result.stderr)

    def test_malloc_keeps_nothing_where_the_heap_is_counted(self) -> None:
        self.env["GLIBC_TUNABLES"] = "glibc.malloc.check=0"
        self.assertEqual(self.one("process/tunables")["message"],
                         "glibc.malloc.check=0:glibc.malloc.tcache_count=0")
        self.log.unlink()
        self.assertEqual(self.one("kernel/tunables")["message"], "glibc.malloc.check=0")
        self.log.unlink()
        del self.env["GLIBC_TUNABLES"]
        self.assertEqual(self.one("process/tunables")["message"], "glibc.malloc.tcache_count=0")

    def test_hang_is_killed_with_its_children(self) -> None:
        message = self.one("kernel/stubborn", "--timeout", "0.5", "--reruns", "0")["message"]
        child = int(message.split("grandchild ")[1].split()[0])
        for _ in range(100):
            stat = pathlib.Path(f"/proc/{child}/stat")
            if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
            time.sleep(0.05)
        self.fail(f"{child} lives on")

    def test_flood_costs_nothing(self) -> None:
        self.assertEqual(self.one("kernel/flood")["status"], "pass")
        self.log.unlink()
        message = self.one("kernel/floodfail")["message"]
        self.assertIn("the end of the flood", message)
        self.assertLess(self.log.stat().st_size, 8192)

    def test_binary_output_leaves_a_readable_log(self) -> None:
        self.assertEqual(self.one("kernel/binary")["status"], "fail")

    def test_nonsense_instead_of_a_verdict_is_an_error(self) -> None:
        for subject in ("garbage", "endless", "lie", "promotes"):
            with self.subTest(subject):
                self.log.unlink(missing_ok=True)
                self.assertEqual(self.one(f"kernel/{subject}")["status"], "error")

    def test_answering_twice_harms_nothing_silently(self) -> None:
        self.assertEqual(self.run_it("kernel/twice", "kernel/add").returncode, 1)

    def test_what_passes_when_run_again_is_flaky(self) -> None:
        for subject in ("flake", "flakecrash"):
            with self.subTest(subject):
                self.log.unlink(missing_ok=True)
                self.assertEqual(self.one(f"kernel/{subject}")["status"], "flaky")
                self.assertEqual(self.result.returncode, 1)

    def test_a_failing_combination_is_told(self) -> None:
        self.set_is("kernel/a", "kernel/poison", "kernel/b", "kernel/victim")
        self.run_it("--log", self.log)
        victim = self.cases()["kernel/victim"]
        self.assertEqual(victim["status"], "fail")
        self.assertIn("alone it passes", victim["message"])
        self.assertIn("kernel/poison", victim["message"])

    def test_a_worker_that_dies_at_its_end_is_noted(self) -> None:
        result = self.run_it("--log", self.log, "kernel/badend")
        self.assertIn("ended badly", result.stderr)
        self.assertEqual(result.returncode, 1)

    def test_a_plugin_that_cannot_say_what_it_is_is_run(self) -> None:
        self.env["MOCK_MUTE"] = "1"
        self.one("kernel/add")
        self.assertTrue(self.result.stdout.startswith("plugin.so: 1 passed"), self.result.stdout)

    def test_process_cases_have_a_process_each(self) -> None:
        result = self.run_it("--log", self.log, "-j2", "process/pid n=1", "process/pid n=2", "kernel/pid n=1")
        self.assertEqual(len({v["message"] for v in self.cases().values()}), 3, result.stderr)
        self.assertTrue(list(self.cases())[0].startswith("process/"))

    def test_causes_come_before_what_follows_from_them(self) -> None:
        order = ["process", "contract", "kernel", "same", "refuse", "operator", "gradient", "train", "perf"]
        lines = [f"{c}/when n={i}" for i in range(3) for c in reversed(order)]
        for jobs in ("-j1", "-j3"):
            self.log.unlink(missing_ok=True)
            self.run_it("--log", self.log, jobs, "--core-worker", MOCK, *lines)
            starts = {line: float(v["message"].split()[0]) for line, v in self.cases().items()}
            classes = [line.split("/")[0] for line in sorted(starts, key=starts.get)]
            if jobs == "-j1":
                self.assertEqual(classes, sorted(classes, key=order.index))
            else:  # handed out in order; which of two workers begins first is theirs
                self.assertEqual(classes[:3] + classes[-6:], ["process"] * 3 + ["train"] * 3 + ["perf"] * 3)
        result = self.run_it("--stop-after-failures", 1, "kernel/fail", "contract/fail", "process/fail", "train/fail")
        self.assertIn("process/fail", result.stderr)
        self.assertNotIn("kernel/fail", result.stderr)

    def test_nothing_runs_beside_a_process_case(self) -> None:
        lines = [f"{c}/when n={i}" for i in range(4) for c in ("process", "contract")]
        self.run_it("--log", self.log, "-j4", *lines)
        times = {line: tuple(map(float, v["message"].split()[:2])) for line, v in self.cases().items()}
        last = max(end for line, (_, end) in times.items() if line.startswith("process/"))
        self.assertTrue(all(start >= last for line, (start, _) in times.items() if line.startswith("contract/")))

    def test_perf_cases_run_last_and_alone(self) -> None:
        lines = [f"{c}/when n={i}" for i in range(6) for c in ("perf", "kernel", "train", "process")]
        self.run_it("--log", self.log, "-j4", "--core-worker", MOCK, *lines)
        times = {line: tuple(map(float, v["message"].split()[:2])) for line, v in self.cases().items()}
        self.assertEqual(len(times), 24)
        others = max(end for line, (_, end) in times.items() if not line.startswith("perf/"))
        before = others
        for start, end in sorted(time for line, time in times.items() if line.startswith("perf/")):
            self.assertGreaterEqual(start, before)
            before = end
        # Where cases may run beside each other, they do: that they do not is not by chance.
        kernels = sorted(time for line, time in times.items() if line.startswith("kernel/"))
        self.assertTrue(any(b[0] < a[1] for a, b in zip(kernels, kernels[1:])))

    def test_core_cases_without_core_are_errors_that_help(self) -> None:
        self.assertIn("--core-worker", self.one("operator/add")["message"])

    def test_core_cases_go_to_the_core_worker(self) -> None:
        self.assertEqual(self.one("operator/add", "--core-worker", MOCK)["status"], "pass")

    def test_killing_a_worker_from_outside_costs_one_case(self) -> None:
        process = subprocess.Popen(
            self.command("--log", self.log, "--timeout", "30", "--reruns", "0", "kernel/killed", "kernel/killed n=1"),
            env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        seen = set()
        while len(seen) < 2:
            time.sleep(0.05)
            file = self.dir / "pid"
            text = file.read_text() if file.exists() else ""
            if text.endswith("\n") and text not in seen:
                seen.add(text)
                os.kill(int(text), signal.SIGKILL)
        self.assertEqual(process.wait(30), 1)
        self.assertEqual({v["status"] for v in self.cases().values()}, {"crash"})

    def test_closed_standard_descriptors_do_not_matter(self) -> None:
        words = " ".join(f"'{w}'" for w in self.command("--log", self.log, "kernel/add", "kernel/segv"))
        subprocess.run(["sh", "-c", f"exec {words} <&- >&- 2>&-"], env=self.env, timeout=60)
        self.assertEqual([v["status"] for v in self.cases().values()], ["pass", "crash"])

    # ---- many failures, and what is known of one

    def test_equal_failures_are_told_once(self) -> None:
        self.set_is(*(f"kernel/fail n={i}" for i in range(40)), "kernel/inconclusive")
        result = self.run_it("--log", self.log, "--reruns", 0, "--html", self.dir / "x.html", "--markdown", self.dir / "x.md")
        self.assertEqual(result.stderr.count("fail: TNP-12: self[3]"), 3)
        self.assertIn("40 x fail TNP-12: self[3]: expected 1, got 2 <\"&'>\n    kernel/fail (40)\n", result.stderr)
        self.assertEqual(result.stderr.count("inconclusive: all outputs are zero"), 1)
        self.assertEqual(len(self.cases()), 41)
        self.assertIn("40 equal</b>: kernel/fail (40)", (self.dir / "x.html").read_text())
        self.assertIn("* 40 x fail TNP-12: self\\[3\\]: expected 1, got 2 &lt;\"&amp;'\\>", (self.dir / "x.md").read_text())

    def test_equal_crashes_are_given_up(self) -> None:
        self.set_is("process/load", *(f"kernel/segv n={i}" for i in range(100)), *(f"same/segv n={i}" for i in range(50)),
                    "refuse/add", *(f"contract/add n={i}" for i in range(30)), "kernel/copy")
        result = self.run_it("--log", self.log, "--reruns", 0, "-j2")
        classes = [line.split("/")[0] for line in self.cases()]
        self.assertTrue(20 <= classes.count("kernel") <= 22, classes)
        self.assertTrue(4 <= classes.count("same") <= 6 or classes.count("same") == 0, classes)
        self.assertEqual(classes.count("contract"), 30)
        self.assertRegex(result.stderr, r"kernel/ is given up, (79|80|81) cases will not run: 20 in a row: crash: the "
                         r"worker was lost: killed by signal 11")
        self.assertRegex(result.stderr, r"level Memory: failed: kernel/ was given up, \d+ cases did not run: 20 in a row: crash")
        self.assertIn(" given up\n", result.stdout)
        self.assertEqual(self.records()[-1]["given_up"][0]["class"], "kernel")
        self.log.unlink()
        self.run_it("--log", self.log, "--reruns", 0, "--give-up-after", 0)
        self.assertEqual(len(self.cases()), 183)

    def test_time_outs_and_devices_that_do_not_open_are_given_up(self) -> None:
        self.set_is(*(f"kernel/hang n={i}" for i in range(30)), *(f"same/closed n={i}" for i in range(60)),
                    *(f"refuse/segv n={i}" for i in range(10)), *(f"refuse/exit3 n={i}" for i in range(10)))
        self.run_it("--log", self.log, "--timeout", "0.2", "--reruns", 1)
        lines = list(self.cases())
        self.assertEqual(sum(line.startswith("kernel/") for line in lines), 5)
        self.assertEqual(sum(line.startswith("same/") for line in lines), 20)
        self.assertEqual(sum(line.startswith("refuse/") for line in lines), 20)  # not equal, or not so many

    def test_a_hang_shows_where_every_thread_is(self) -> None:
        message = self.one("kernel/hangthreads", "--timeout", "0.5", "--reruns", "0")["message"]
        self.assertRegex(message, r"it was in \S+( < \S+)+")
        self.assertIn("pause", message)
        self.assertIn(f"all of it is in {self.log}.output", message)
        output = pathlib.Path(f"{self.log}.output").read_text()
        self.assertIn("==== kernel/hangthreads\n", output)
        self.assertRegex(output, r"thread \d+ \(listens\):\n(.*\n){0,2}.*nanosleep")  # sanitizers have frames of their own
        self.assertRegex(output, r"thread \d+ \(deaf\): takes no signal; the kernel says it is in \S+\n")

    def test_head_and_end_of_what_was_printed_are_kept(self) -> None:
        message = self.one("kernel/longcrash", "--reruns", 0)["message"]
        self.assertIn("the first words | ", message)
        self.assertIn("the last words", message)
        self.assertIn(" ... ", message)
        output = pathlib.Path(f"{self.log}.output").read_text()
        self.assertTrue(output.startswith("==== kernel/longcrash\nthe first words\nline 0\nline 1\n"))
        self.assertTrue(output.endswith("line 4999\nthe last words\n"))
        named = self.dir / "named"
        self.run_it("--output", named, "--reruns", 0, "kernel/segv")
        self.assertEqual(named.read_text(), "==== kernel/segv\nabout to fall\n")

    def test_what_a_sanitizer_reports_fails_the_case(self) -> None:
        verdict = self.one("kernel/race", "--reruns", "0")
        self.assertEqual(verdict["status"], "fail")
        self.assertIn("WARNING: ThreadSanitizer: data race (pid=1) |   Write of size 4", verdict["message"])
        self.assertNotIn("chatter", verdict["message"].split("printed")[1].split("WARNING")[0])

    # ---- which cases

    def test_a_class_alone_and_groups_are_patterns(self) -> None:
        self.set_is("kernel/add T=f32", "kernel/add T=f16", "kernel/nokernel T=f32", "kernel/log1p T=f32", "contract/x")

        def found(*filters: str) -> list[str]:
            words = [w for f in filters for w in ("--filter", f)]
            return subprocess.run([CONFORM, "list", "--worker", MOCK, *words], env=self.env, text=True,
                                  capture_output=True).stdout.splitlines()

        self.assertEqual(found("contract"), ["contract/x"])
        self.assertEqual(found("contract/"), ["contract/x"])
        self.assertEqual(found("kernel T=f16"), ["kernel/add T=f16"])
        self.assertEqual(found("kernel/@small T=f32"), ["kernel/add T=f32"])
        self.assertEqual(found("kernel/@all T=f32"), ["kernel/add T=f32", "kernel/log1p T=f32"])
        self.assertEqual(self.run_it("--filter", "kernel/@large").returncode, 2)

    def test_what_finds_nothing_has_a_status_of_its_own(self) -> None:
        self.set_is("kernel/add", "kernel/sub n=1", "kernel/sub n=2", "contract/x")
        for program in ("run", "list"):
            plugin = [str(self.plugin)] if program == "run" else []
            result = subprocess.run([CONFORM, program, *plugin, "--worker", MOCK, "--filter", "kernels/*"], env=self.env,
                                    capture_output=True, text=True)
            self.assertEqual(result.returncode, 4, result.stderr)
            self.assertRegex(result.stderr, r"no case is found by `kernels/\*`; these classes have cases:\n"
                             r"    contract +1\n    kernel +3\n")
        result = self.run_it("--filter", "kernel/mul", "--filter", "contract")
        self.assertEqual(result.returncode, 0)
        self.assertIn("its class has these:\n    add sub\n", result.stderr)

    def test_every_command_has_help(self) -> None:
        for command in ("run", "list", "report", "diff", "fuzz", "shrink"):
            result = subprocess.run([CONFORM, command, "--help"], capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, command)
            self.assertIn("Exit status", result.stdout.replace("\n", " "))

    def test_list_alone_explains_itself(self) -> None:
        self.set_is("kernel/add", "contract/x")
        result = subprocess.run([CONFORM, "list", "--worker", MOCK], env=self.env, capture_output=True, text=True)
        self.assertIn("The standard set has 2 cases", result.stdout)
        self.assertNotIn("kernel/add\n", result.stdout)

    # ---- several devices, several machines

    def test_devices_share_the_cases(self) -> None:
        self.set_is(*(f"kernel/slow n={i}" for i in range(12)), "kernel/fail")
        self.env["MOCK_DEVICES"] = "3"
        for words in (("--device", "all"), ("--device", "2,0,1", "-j3")):
            self.log.unlink(missing_ok=True)
            result = self.run_it("--log", self.log, *words)
            self.assertEqual({v["device"] for v in self.cases().values()}, {0, 1, 2})
            self.assertEqual({d["index"]: d["firmware"] for d in self.records()[0]["devices"]},
                             {0: "fw 0", 1: "fw 1", 2: "fw 2"})
        failed = self.cases()["kernel/fail"]["device"]
        named = f"--device {failed} " if failed else ""
        self.assertIn(f"tenon-conform run {self.plugin} {named}'kernel/fail'", result.stderr)
        self.assertEqual(self.run_it("--resume", self.log, "--device", "0").returncode, 2)
        for wrong in ("", "x", "0,", "1,,2", "-1"):
            self.assertIn(self.run_it("--device", wrong, "kernel/add").returncode, (2,) if wrong not in ("0,", "1,,2") else (0,))

    def test_shards_are_one_run_again(self) -> None:
        self.set_is("process/load", "process/other", *(f"kernel/add n={i}" for i in range(20)), "contract/x", "kernel/copy")
        logs = []
        for i in range(1, 4):
            logs.append(self.dir / f"log{i}")
            result = self.run_it("--log", logs[-1], "--shard", f"{i}/3", "--level", "memory")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("level", result.stdout + result.stderr)
        seen = [r["case"] for log in logs for r in map(json.loads, log.read_text().splitlines()) if r["record"] == "case"]
        self.assertEqual((len(seen), len(set(seen))), (4, 4))

        def report(*words: object) -> subprocess.CompletedProcess:
            return subprocess.run([CONFORM, "report", "--worker", MOCK, *map(str, words)], env=self.env,
                                  capture_output=True, text=True, timeout=60)

        result = report(*logs, "--level", "memory")
        self.assertEqual((result.returncode, result.stdout),
                         (0, "Mock <device>: levels passed: Load, Memory; 4 passed, 0 failed\n"), result.stderr)
        result = report(*logs[:2], "--level", "memory")
        self.assertEqual(result.returncode, 1)
        self.assertIn("level Memory: not run", result.stderr)
        self.assertEqual(report(*logs, logs[0]).returncode, 3)
        self.assertIn("is there twice", report(*logs, logs[0]).stderr)
        self.plugin.write_text("another")
        self.run_it("--log", self.dir / "other", "--shard", "1/3")
        self.assertIn("another plugin", report(*logs, self.dir / "other").stderr)
        for wrong in ("0/3", "4/3", "1", "1/3x"):
            self.assertEqual(self.run_it("--shard", wrong).returncode, 2)

    def test_shards_of_which_one_gave_up_fail(self) -> None:
        self.set_is("process/load", *(f"contract/x n={i}" for i in range(60)), "kernel/copy")
        logs = [self.dir / "a", self.dir / "b"]
        self.run_it("--log", logs[0], "--shard", "1/2")
        (self.dir / "set").write_text("process/load\n" + "".join(f"contract/x n={i}\n" for i in range(60)) + "kernel/copy\n")
        self.env["MOCK_ALL_CRASH"] = "1"
        self.run_it("--log", logs[1], "--shard", "2/2", "--reruns", 0)
        del self.env["MOCK_ALL_CRASH"]
        result = subprocess.run([CONFORM, "report", "--worker", MOCK, *logs], env=self.env, capture_output=True, text=True)
        self.assertRegex(result.stderr, r"level Memory: failed: contract/ was given up, \d+ cases did not run")

    # ---- lists and levels

    def lists(self, text: str) -> subprocess.CompletedProcess:
        file = self.dir / "list"
        file.write_text(text)
        return self.run_it("--lists", file, "--log", self.log)

    def test_listed_failures_are_accepted(self) -> None:
        self.set_is("kernel/add", "kernel/fail n=1", "kernel/fail n=2", "kernel/hang")
        result = self.lists(
            f"xfail kernel/fail n=1 # known\nwaive kernel/fail n=2 {WAIVER} # accepted\nskip kernel/hang # long\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 xfail, 1 waived, 1 skipped", result.stdout)

    def test_xpass_and_unused_entries_fail(self) -> None:
        self.set_is("kernel/add")
        for entry in ("xfail kernel/add # once", f"waive kernel/add {WAIVER} # once", "skip kernel/gone # once"):
            with self.subTest(entry):
                self.log.unlink(missing_ok=True)
                self.assertEqual(self.lists(entry + "\n").returncode, 1)

    def test_entries_for_larger_sets_are_not_unused(self) -> None:
        self.assertNotIn("unused", self.lists(f"waive kernel/rare {WAIVER} # only there\n").stderr)

    def test_an_entry_without_reason_is_refused_by_line(self) -> None:
        result = self.lists("# fine\nskip kernel/add\n")
        self.assertEqual(result.returncode, 2)
        self.assertIn("list:2: no reason", result.stderr)

    def test_a_waived_failure_is_no_failure_of_a_level(self) -> None:
        self.set_is("process/load", "process/fail")
        self.assertIn("levels passed: none", self.lists("xfail process/fail # known\n").stdout)
        self.log.unlink()
        result = self.lists(f"waive process/fail {WAIVER} # the adder\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("levels passed: Load (1 waived);", result.stdout)
        self.assertEqual(self.cases()["process/fail"]["reason"],
                         "the adder (ticket=HW-12 owner=jane until=2999-12-31)")
        self.assertEqual(self.records()[-1]["levels"][0]["terms"], "1 waived")
        page = self.markdown()
        self.assertIn("| Load | passed: 1 waived |  |\n", page)
        self.assertIn("## Waived\n\n* `process/fail`  \n  the adder (ticket=HW-12 owner=jane until=2999-12-31)", page)

    def markdown(self) -> str:
        return subprocess.run([CONFORM, "report", str(self.log), "--markdown", "-"], capture_output=True,
                              text=True).stdout.replace("\\", "")

    def test_an_expired_waiver_counts_no_more(self) -> None:
        self.set_is("kernel/fail")
        result = self.lists("waive kernel/fail [ticket=HW-12 owner=jane until=2020-02-29] # the adder\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("expired on 2020-02-29 and counts no more: the adder (ticket=HW-12", result.stderr)
        self.assertIn("0 passed, 1 failed\n", result.stdout)
        self.assertEqual(self.cases()["kernel/fail"]["status"], "fail")
        self.assertNotIn("unused", result.stderr)

    def test_a_waiver_counts_where_its_conditions_hold(self) -> None:
        self.set_is("kernel/fail")
        for condition, status in {"version=1.*": "waived", "version=2.*": "fail", "device=Mock*": "waived",
                                  "version=2.* version=1.2": "waived", "version=1.2 id=other": "fail",
                                  "firmware=*.7": "fail"}.items():
            with self.subTest(condition):
                self.log.unlink(missing_ok=True)
                waiver = WAIVER.replace("]", f" {condition}]")
                result = self.lists(f"waive kernel/fail {waiver} # the adder\n")
                self.assertEqual(self.cases()["kernel/fail"]["status"], status)
                self.assertNotIn("unused", result.stderr)

    def test_a_waiver_must_say_all_that_a_reader_asks(self) -> None:
        for terms, words in {"": "which ticket", "[ticket=HW-12 until=2999-12-31]": "whose",
                             "[ticket=HW-12 owner=jane]": "until when",
                             "[ticket=HW-12 owner=jane until=soon]": "until=soon",
                             "[ticket=HW-12 owner=jane until=2999-13-01]": "until=2999-13-01",
                             "[ticket=HW-12 owner=jane until=2999-12-31 colour=red]": "colour=red",
                             "[ticket= owner=jane until=2999-12-31]": "ticket="}.items():
            with self.subTest(terms):
                result = self.lists(f"# fine\nwaive kernel/fail {terms} # the adder\n")
                self.assertEqual(result.returncode, 2)
                self.assertIn("list:2: ", result.stderr)
                self.assertIn(words, result.stderr)

    # ---- what a level needs

    def core_is(self, *lines: str) -> None:
        self.set_is("process/load", "contract/x", "kernel/copy", *lines)

    def needs(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [CONFORM, "needs", str(self.plugin), "--worker", MOCK, "--core-worker", MOCK, "--timeout", "2", *words],
            env=self.env, capture_output=True, text=True, timeout=120)

    LACKING = ("operator/lacks.a T=f32 items=amax.bool", "operator/lacks.a T=i64 items=amax.bool",
               "operator/lacks.b T=f32 items=amax.bool:copy.f32.i64", "operator/ok T=f32",
               "operator/lacks.c T=bool items=dtype.bool", "operator/unsupported T=f16",
               "operator/unsupported T=f32 how=decomposed", "operator/unsupported T=f32 invalid=size")

    def test_core_asks_every_operator_of_each_dtype(self) -> None:
        self.core_is("operator/ok T=f32", "operator/ok T=i64", "operator/other T=bool", "operator/ok T=f16",
                     "operator/ok T=bf16", "operator/unsupported T=bf16")
        result = self.run_it("--level", "core", "--core-worker", MOCK)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("levels passed: Load, Memory, Core (f32 i64 bool; also f16);", result.stdout)
        for line in ("operator/unsupported T=f32", "operator/unsupported T=i64", "operator/unsupported T=bool layout=x"):
            with self.subTest(line):
                self.core_is("operator/ok T=f32", line)
                result = self.run_it("--level", "core", "--core-worker", MOCK)
                self.assertEqual(result.returncode, 1)
                self.assertIn("level Core: failed: 1 of operators and dtypes do not run: unsupported", result.stderr)

    def test_a_level_that_fails_lists_all_that_is_missing(self) -> None:
        self.core_is(*self.LACKING)
        result = self.run_it("--level", "core", "--core-worker", MOCK, "--log", self.log)
        self.assertEqual(result.returncode, 1)
        self.assertIn("level Core: failed: 4 of operators and dtypes do not run; they lack amax bool, "
                      "tensors of bool, copy f32 -> i64", result.stderr)
        self.assertIn(self.LIST, result.stderr)
        self.assertEqual(self.records()[-1]["needs"], [
            {"item": "amax bool", "frees": ["lacks.a (f32 i64)"], "with_others": ["lacks.b (f32)"]},
            {"item": "tensors of bool", "frees": ["lacks.c (bool)"], "with_others": []},
            {"item": "copy f32 -> i64", "frees": [], "with_others": ["lacks.b (f32)"]}])
        self.assertIn("* **amax bool**: frees lacks.a (f32 i64); with others lacks.b (f32)\n", self.markdown())

    LIST = ("amax bool\n    frees lacks.a (f32 i64)\n    with others lacks.b (f32)\n"
            "tensors of bool\n    frees lacks.c (bool)\ncopy f32 -> i64\n    with others lacks.b (f32)\n")

    def test_needs_prints_the_same_list(self) -> None:
        self.core_is(*self.LACKING)
        result = self.needs()
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertTrue(result.stdout.startswith(
            "for level Core 3 kernels, pairs of copy or dtypes are missing; without them 4 of"), result.stdout)
        self.assertTrue(result.stdout.endswith("\n\n" + self.LIST), result.stdout)
        self.assertEqual([item["item"] for item in json.loads(self.needs("--json").stdout)],
                         ["amax bool", "tensors of bool", "copy f32 -> i64"])
        self.assertIn("nothing is missing", self.needs("--filter", "operator/ok").stdout)
        self.assertEqual(self.needs("--filter", "operator/ok").returncode, 0)

    def test_needs_tells_what_it_cannot_explain(self) -> None:
        self.core_is("operator/fail T=f32", "operator/segv T=i64")
        result = self.needs()
        self.assertEqual(result.returncode, 1)
        self.assertIn("for another reason, which `tenon-conform run` tells\n    fail (f32), segv (i64)\n", result.stdout)

    def test_needs_without_core_cannot_work(self) -> None:
        result = subprocess.run([CONFORM, "needs", str(self.plugin)], env=self.env, capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--core-worker", result.stderr)

    def test_levels(self) -> None:
        self.set_is("process/load", "process/other")
        self.assertEqual(self.run_it("--level", "load").returncode, 0)
        self.assertIn("levels passed: Load;", self.run_it().stdout)
        filtered = self.run_it("--filter", "process/load")
        self.assertEqual((filtered.stdout, filtered.stderr), ("Mock <device>: 1 passed, 0 failed\n", ""))
        asked = self.run_it("--filter", "process/load", "--level", "memory")
        self.assertIn("level Memory: not run", asked.stderr)
        self.assertNotIn("level Perf", asked.stderr)
        self.assertEqual(self.run_it("--level", "memory").returncode, 1)
        self.set_is("process/load", "process/segv")
        self.assertIn("levels passed: none", self.run_it().stdout)

    def test_a_level_runs_what_it_asks(self) -> None:
        self.set_is("process/load", "contract/x", "kernel/copy", "kernel/add", "perf/add")

        def ran(*words: str) -> list[str]:
            self.log.unlink(missing_ok=True)
            self.run_it("--log", self.log, *words)
            return list(self.cases())

        self.assertEqual(ran("--level", "load"), ["process/load"])
        self.assertEqual(self.records()[0]["set"], "smoke")
        self.assertEqual(ran("--level", "memory"), ["process/load", "contract/x", "kernel/copy"])
        self.assertEqual(self.records()[0]["set"], "standard")
        self.assertEqual(ran("--level", "load", "--level", "perf", "--filter", "p*"), ["process/load", "perf/add"])
        self.assertEqual(self.records()[0]["set"], "standard+perf")
        self.assertEqual(ran("--level", "load", "kernel/add"), ["kernel/add"])
        self.assertEqual(self.run_it("--level", "load", "--level", "memory").returncode, 0)
        self.assertEqual(self.run_it("--level", "load", "--level", "core").returncode, 1)

    # ---- the log

    def test_interrupted_run_goes_on(self) -> None:
        self.set_is(*(f"kernel/slow n={i}" for i in range(100)))
        process = subprocess.Popen(self.command("--log", self.log), env=self.env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.log.exists() or self.log.read_text().count("\n") < 10:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), 130)
        n = len(self.cases())
        self.assertTrue(5 < n < 100)
        self.assertTrue(self.records()[-1]["interrupted"])
        self.assertEqual(self.run_it("--resume", self.log).returncode, 0)
        lines = [r["case"] for r in self.records() if r["record"] == "case"]
        self.assertEqual((len(lines), len(set(lines))), (100, 100))

    def test_ignored_signals_stay_ignored(self) -> None:
        self.set_is(*(f"kernel/slow n={i}" for i in range(40)))

        def ignore() -> None:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)

        process = subprocess.Popen(self.command("--log", self.log), env=self.env, preexec_fn=ignore,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.log.exists() or self.log.read_text().count("\n") < 10:
            time.sleep(0.02)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(30), 0)

    def test_log_cut_at_any_byte_is_read_and_resumed(self) -> None:
        self.set_is("kernel/add", "kernel/fail", "kernel/unsupported")
        self.run_it("--log", self.log, "--reruns", "0")
        whole = self.log.read_bytes()
        head = whole.index(b"\n") + 1
        cut = self.dir / "cut"
        for n in range(len(whole)):
            cut.write_bytes(whole[:n])
            result = subprocess.run([CONFORM, "report", cut], capture_output=True, text=True, timeout=20)
            self.assertEqual(result.returncode, 0 if n >= head else 3, (n, result.stderr))
            if n > head:
                self.assertEqual("end was cut" in result.stderr, whole[n - 1 : n] != b"\n")
        for n in range(head, len(whole), 97):
            cut.write_bytes(whole[:n])
            self.assertEqual(self.run_it("--resume", cut, "--reruns", "0").returncode, 1)
            self.log.write_bytes(cut.read_bytes())
            self.assertEqual(sorted(self.cases()), ["kernel/add", "kernel/fail", "kernel/unsupported"])

    def test_resume_refuses_another_plugin_or_set(self) -> None:
        self.run_it("--log", self.log, "kernel/add")
        self.assertEqual(self.run_it("--resume", self.log, "--set", "smoke").returncode, 2)
        self.plugin.write_text("another")
        result = self.run_it("--resume", self.log)
        self.assertEqual(result.returncode, 2)
        self.assertIn("another file", result.stderr)

    def test_an_existing_log_is_not_overwritten(self) -> None:
        self.log.write_text("precious\n")
        self.assertEqual(self.run_it("--log", self.log, "kernel/add").returncode, 2)
        self.assertEqual(self.log.read_text(), "precious\n")

    def test_full_disk_stops_the_run(self) -> None:
        result = self.run_it("--log", "/dev/full", "kernel/add")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("No space left", result.stderr)

    def test_a_disk_that_fills_leaves_a_whole_log(self) -> None:
        self.set_is(*(f"kernel/add n={i}" for i in range(200)))

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

        result = self.run_it("--log", self.log, preexec_fn=limit)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("File too large", result.stderr)
        self.assertGreater(len(self.cases()), 5)

    # ---- what is made of it

    def test_reports_are_well_formed(self) -> None:
        self.set_is("kernel/add T=f32", "kernel/fail T=f32", "kernel/binary", "kernel/unsupported T=f16")
        self.run_it("--log", self.log, "--junit", self.dir / "x.xml", "--tap", self.dir / "x.tap",
                    "--html", self.dir / "x.html", "--markdown", self.dir / "x.md")
        root = xml.etree.ElementTree.parse(self.dir / "x.xml").getroot()
        self.assertEqual(len(root.findall(".//testcase")), 4)
        self.assertEqual(len(root.findall(".//failure")), 2)
        tap = (self.dir / "x.tap").read_text()
        self.assertIn("1..4\n", tap)
        self.assertIn("not ok 2 - kernel/fail T=f32\n", tap)
        self.assertIn("# SKIP unsupported: not offered\n", tap)
        self.assertIn("| 1 | not offered | kernel/unsupported T=f16 \\(1\\) |", (self.dir / "x.md").read_text())
        claimed = subprocess.run([CONFORM, "report", self.log, "--without-unsupported", "--tap", "-", "--junit",
                                  self.dir / "y.xml"], capture_output=True, text=True)
        self.assertEqual([l[:7] for l in claimed.stdout.splitlines() if l.startswith(("ok", "not"))],
                         ["ok 1 - ", "not ok ", "not ok "])
        self.assertIn("1..3\n", claimed.stdout)
        self.assertEqual(len(xml.etree.ElementTree.parse(self.dir / "y.xml").getroot().findall(".//testcase")), 3)
        page = (self.dir / "x.html").read_text()
        self.assertIn("Mock &lt;device&gt;", page)
        self.assertNotIn("<device>", page)
        self.assertNotIn("http", page)
        self.assertIn("<td>1</td><td>not offered</td><td class=mono>kernel/unsupported T=f16 (1)</td>", page)
        self.assertIn("| fail | **0/1** |  |", (self.dir / "x.md").read_text())

    def report(self, *records: bytes) -> subprocess.CompletedProcess:
        head = b'{"record":"head","plugin":{"path":"/p/x.so","device":"Mock"}}'
        self.log.write_bytes(b"".join(record + b"\n" for record in (head, *records)))
        return subprocess.run([CONFORM, "report", self.log, "--markdown", "-"], capture_output=True, timeout=60)

    def test_a_level_of_a_log_is_text_in_markdown(self) -> None:
        result = self.report(b'{"record":"end","levels":[{"name":"[a](b)|","state":"<b>`","why":"*"}]}')
        self.assertIn(b"| \\[a\\]\\(b\\)\\| | &lt;b>\\` | \\* |".replace(b">", b"\\>"), result.stdout)

    def test_what_a_log_says_is_text_in_markdown(self) -> None:
        case = b'{"record":"case","case":"perf/a`b|c <i>","status":"%s","figures":{"ns":5},"message":"[x](y)"}'
        for status in (b"pass", b"fail", b"unsupported"):
            out = self.report(case % status).stdout
            self.assertNotIn(b"<i>", out)
            self.assertNotIn(b"[x](y)", out)
            self.assertNotRegex(out, rb"[^\\]`")

    def test_a_malformed_record_ends_its_log(self) -> None:
        good = b'{"record":"case","case":"a/b","status":"fail"}'
        self.assertIn(b"2 failed", self.report(good, good).stdout)
        for value in (b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\u0000"', b"1e999", b"9" * 400, b"[" * 100000,
                      b'{"a":' * 100000, b'"' + b"x" * 1000000, b"\0", b'1,"x":2', b"1}{"):
            with self.subTest(value[:16]):
                result = self.report(good, good[:-1] + b',"x":' + value + b"}", good)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(b"end was cut", result.stderr)
                self.assertIn(b"1 failed", result.stdout)

    def test_values_of_any_kind_are_read(self) -> None:
        for value in (b"null", b"[]", b"{}", b"3", b"-1e300", b'"nan"', b'"x"', b"true", b"9" * 18):
            members = b"".join(b',"%s":%s' % (name, value) for name in (
                b"requirement", b"share", b"bias", b"worst", b"ms", b"figures", b"message", b"found", b"reason"))
            levels = b'{"record":"end","levels":%s,"summary":%s}' % (value, value)
            result = self.report(b'{"record":"case","case":"a/b","status":"fail"%s}' % members, levels)
            self.assertEqual((result.returncode, b"1 failed" in result.stdout), (0, True), result.stderr)

    def test_the_command_that_runs_a_case_again_is_quoted(self) -> None:
        folder = self.dir / "it's; touch x"
        folder.mkdir()
        self.plugin = self.plugin.rename(folder / "plugin.so")
        self.one("kernel/fail T=f32", "--html", self.dir / "x.html")
        line = next(l for l in self.result.stderr.splitlines() if l.startswith("    tenon-conform run "))
        self.assertEqual(shlex.split(line), ["tenon-conform", "run", str(self.plugin), "kernel/fail T=f32"])
        self.assertIn(html.escape(line.strip(), quote=True).replace("&#x27;", "&#39;"), (self.dir / "x.html").read_text())

    def test_diff_shows_changes(self) -> None:
        other = self.dir / "other"
        self.run_it("--log", self.log, "kernel/flake", "kernel/add")
        self.run_it("--log", other, "kernel/flake", "kernel/fail")
        result = subprocess.run([CONFORM, "diff", self.log, other], capture_output=True, text=True)
        self.assertIn("flaky -> pass              kernel/flake\n", result.stdout)
        self.assertIn("(none) -> fail             kernel/fail\n", result.stdout)
        self.assertIn("3 changed, 1 of them for the worse", result.stdout)
        self.assertEqual(result.returncode, 1)

    def test_asked_wrongly(self) -> None:
        for words in (["no case"], ["--set", "huge"], ["--set", "perf+"], ["--filter", "/(/"], ["--level", "sky"], ["-j", "0"]):
            with self.subTest(words):
                self.assertEqual(self.run_it(*words).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
