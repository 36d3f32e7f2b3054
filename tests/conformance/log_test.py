"""The log of a run and what is made of it, with a worker that misbehaves: log_test.py TENON_CONFORM MOCK_WORKER."""

import html
import json
import resource
import shlex
import signal
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

from mock_case import CONFORM, MockCase


class Log(MockCase):
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
        ends = [n for n, byte in enumerate(whole) if byte == ord("\n")]
        near = {n + k for n in ends for k in range(-9, 10) if 0 <= n + k < len(whole)}
        for n in sorted(near | set(range(0, len(whole), 7))):
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

    def test_what_passed_and_is_no_more_tried_is_worse(self) -> None:
        after = self.dir / "after"
        self.run_it("--log", self.log, "kernel/add")
        after.write_text(self.log.read_text().replace('"status":"pass"', '"status":"unsupported"'))
        for logs, worse in (((self.log, after), 1), ((after, self.log), 0)):
            result = subprocess.run([CONFORM, "diff", *logs], capture_output=True, text=True)
            self.assertIn(f"1 changed, {worse} of them for the worse", result.stdout)

    def trend(self, *words: object) -> str:
        result = subprocess.run([CONFORM, "trend", *map(str, words)], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_trend_shows_runs_beside_each_other(self) -> None:
        def head(version: int) -> dict:
            return {"record": "head", "log": 1, "suite": "1.0", "device": 0,
                    "plugin": {"path": "/x.so", "name": "A|<b>", "version": f"1.{version}"}}

        levels = [{"name": name, "state": state, "terms": terms, "why": ""}
                  for name, state, terms in (("Core", "passed", "f32"), ("Train", "failed", ""))]
        cases = [{"record": "case", "case": line, "status": status} for line, status in (
            ("kernel/add T=f32 self=[2]", "pass"), ("kernel/add T=f16 self=[2]", "fail"),
            ("kernel/exp T=f32 self=[2]", "pass"), ("kernel/sin T=f32 self=[2]", "pass"))]
        repaired = [*cases[:1], {**cases[1], "status": "pass"}, cases[2]]  # and sin was not tried
        logs = []
        for i, records in enumerate(([*cases, {"record": "end", "levels": levels[:1]}],
                                     [*repaired, {"record": "end", "levels": levels[1:]}], [])):
            records = [head(i), *records]
            logs.append(self.dir / f"{i}.jsonl")
            logs[-1].write_text("".join(json.dumps(r) + "\n" for r in records))
        text = self.trend(*logs)
        self.assertIn("| Core | passed: f32 | not run | not run |\n| Train | not run | **failed** | not run |\n", text)
        self.assertIn("| level | 1: 1.0 | 2: 1.1 | 3: 1.2 |\n", text)
        self.assertIn("| level | 1 | 2 |\n", self.trend(logs[0], logs[0]))
        self.assertIn("| add | f32 **f16** | f32 f16 |  |\n", text)
        for same in ("| exp ", "| sin ", "A|<b>"):
            self.assertNotIn(same, text)
        self.assertIn("| cases | 3 passed, 1 failed | 3 passed, 0 failed | 0 passed, 0 failed **did not come to its end** |\n", text)
        page = self.trend("--html", *logs)
        self.assertIn("<td>f32 <b class=bad>f16</b></td><td>f32 f16</td><td></td>", page)
        self.assertIn("A|&lt;b&gt;", page)

    def test_trend_wants_logs_that_can_be_read(self) -> None:
        for words, status in (([], 2), ([self.log], 2), ([self.log, self.log], 3)):
            with self.subTest(words):
                result = subprocess.run([CONFORM, "trend", *words], capture_output=True, text=True)
                self.assertEqual((result.returncode, result.stdout), (status, ""))

    def test_asked_wrongly(self) -> None:
        for words in (["no case"], ["--set", "huge"], ["--set", "perf+"], ["--filter", "/(/"], ["--level", "sky"], ["-j", "0"]):
            with self.subTest(words):
                self.assertEqual(self.run_it(*words).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
