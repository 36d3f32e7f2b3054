"""tenon-conform run against a worker that misbehaves: runner_test.py TENON_CONFORM MOCK_WORKER."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from mock_case import CONFORM, MOCK, MockCase


class Runner(MockCase):
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

    def test_threads_of_workers_that_share_the_processors_do_not_spin(self) -> None:
        self.env.pop("OMP_WAIT_POLICY", None)
        for jobs, line, expected in ("-j2", "kernel/waits", "passive"), ("-j1", "kernel/waits", "none"), ("-j2", "perf/waits", "none"):
            self.assertEqual(self.one(line, jobs)["message"], expected, (jobs, line))
            self.log.unlink()
        self.env["OMP_WAIT_POLICY"] = "active"
        self.assertEqual(self.one("kernel/waits", "-j2")["message"], "active")

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

    def test_failures_of_a_kind_that_is_known_are_not_run_again(self) -> None:
        def runs(*lines: str) -> int:
            self.log.unlink(missing_ok=True)
            (self.dir / "runs").unlink(missing_ok=True)
            self.run_it("--log", self.log, *lines)
            return (self.dir / "runs").stat().st_size

        lines = [f"kernel/counted n={i}" for i in range(6)]
        self.assertEqual(runs(*lines), 3 * 3 + 3)
        self.assertEqual({v["status"] for v in self.cases().values()}, {"fail"})
        # One of them that was flaky, also behind the case before it: none is known before three more.
        self.assertEqual(runs(*lines[:2], "kernel/counted once=2", *lines[2:]), 2 * 3 + (3 + 2) + 3 * 3 + 1)
        self.assertEqual(self.cases()["kernel/counted once=2"]["status"], "flaky")
        # Another class knows nothing of it.
        self.assertEqual(runs(*lines, "same/counted"), 3 * 3 + 3 + 3)

    def test_combinations_of_a_kind_that_is_known_are_not_searched(self) -> None:
        victims = [f"kernel/victim n={i}" for i in range(5)]
        self.set_is("kernel/poison", *victims)
        self.run_it("--log", self.log)
        told = [self.cases()[v]["message"] for v in victims]
        self.assertEqual(["alone it passes" in m for m in told], [True] * 3 + [False] * 2, told)
        self.assertEqual({self.cases()[v]["status"] for v in victims}, {"fail"})

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

    def test_nothing_runs_beside_a_case_that_looks_at_free_memory(self) -> None:
        lines = [f"{c} n={i}" for i in range(4) for c in ("process/memory-when", "process/when", "contract/when")]
        self.run_it("--log", self.log, "-j4", *lines)
        times = {line: tuple(map(float, v["message"].split()[:2])) for line, v in self.cases().items()}
        self.assertEqual(len(times), 12)
        for line, (start, end) in times.items():
            if line.startswith("process/memory"):
                beside = [other for other, (s, e) in times.items() if other != line and s < end and start < e]
                self.assertEqual(beside, [], line)
        # The others may have company, and do: that those have none is not by chance.
        others = sorted(time for line, time in times.items() if not line.startswith("process/memory"))
        self.assertTrue(any(b[0] < a[1] for a, b in zip(others, others[1:])))

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
        result = self.run_it("--filter", "kernel/sub n=3")
        self.assertEqual(result.returncode, 4)
        self.assertIn("of kernel/sub there are 2, as:\n    kernel/sub n=1\n    kernel/sub n=2\n", result.stderr)

    def test_every_command_has_help(self) -> None:
        for command in ("run", "list", "needs", "report", "diff", "trend", "fuzz", "shrink"):
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


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
