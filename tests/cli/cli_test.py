#!/usr/bin/env python3
"""Tests the `tenon` command: what it prints, as table and as JSON, and its exit codes.

usage: cli_test.py TENON FOLDER, which has the plugins of evil.c
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TENON, EVIL = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*args, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TENON_") or k == "TENON_PLUGIN_PATH"}
    return subprocess.run([TENON, *args], capture_output=True, text=True, env=env | environment)


class Tables(unittest.TestCase):
    def test_devices_marks_the_default(self):
        result = run("devices")
        self.assertEqual(result.returncode, 0, result.stderr)
        line = next(l for l in result.stdout.splitlines() if "cpu:0" in l)
        self.assertTrue(line.startswith("*"), line)

    def test_columns_are_aligned(self):
        lines = run("env").stdout.splitlines()
        at = lines[0].index("VALUE")
        self.assertTrue(all(line[at - 1] == " " and line[at] != " "
                            for line in lines if line.startswith("TENON_")))

    def test_env_shows_what_is_set(self):
        lines = run("env", TENON_FALLBACK="warn").stdout.splitlines()
        line = next(l for l in lines if l.startswith("TENON_FALLBACK"))
        self.assertEqual(line.split()[1:3], ["warn", "set"])

    def test_ops_lists_schemas(self):
        self.assertIn("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                      run("ops").stdout)

    def test_an_operator_shows_who_answers_it(self):
        text = run("ops", "add.Tensor").stdout
        for word in ("Autograd", "Backend", "tenon core", "cpu:0"):
            self.assertIn(word, text)

    def test_a_base_name_shows_every_form(self):
        text = run("ops", "add").stdout
        for name in ("add.Tensor(", "add_.Tensor(", "add.Scalar("):
            self.assertIn(name, text)
        self.assertNotIn("addmm(", text)


class Json(unittest.TestCase):
    def parsed(self, *args, **environment):
        result = run(*args, "--json", **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_devices(self):
        cpu = next(d for d in self.parsed("devices") if d["device"] == "cpu:0")
        self.assertTrue(cpu["default"] and cpu["usable"])
        self.assertIn("f32", cpu["dtypes"].split())

    def test_plugins(self):
        cpu = next(p for p in self.parsed("plugins") if p["device_type"] == "cpu")
        self.assertEqual(cpu["state"], "ready")
        self.assertGreater(cpu["kernels"], 0)

    def test_ops(self):
        ops = {op["name"]: op for op in self.parsed("ops")}
        self.assertEqual(ops["add.Tensor"]["kernel"], "add")
        self.assertGreater(len(ops), 100)

    def test_ops_say_how_they_are_called(self):
        ops = {op["name"]: op for op in self.parsed("ops")}
        add = ops["add.Tensor"]
        self.assertEqual((add["function"], add["form"]), ("tn_add", "functional"))
        plain = {"optional": False, "keyword_only": False, "mutable": False}
        self.assertEqual(add["args"], [{"name": "self", "type": "Tensor", **plain},
                                       {"name": "other", "type": "Tensor", **plain},
                                       {"name": "alpha", "type": "Scalar", **plain, "keyword_only": True, "default": 1}])
        self.assertEqual(add["returns"], [{"name": "", "type": "Tensor", "argument": None, "mutable": False}])
        out = ops["add.out"]
        self.assertEqual((out["function"], out["form"], out["args"][-1]["mutable"]), ("tn_add_out", "out", True))
        self.assertEqual(out["returns"][0]["argument"], "out")
        self.assertEqual(ops["add_.Tensor"]["form"], "inplace")
        self.assertEqual(ops["fused_sgd_"]["returns"], [])
        defaults = {a["name"]: (a["type"], a.get("n"), a.get("default", "none")) for a in ops["max_pool2d"]["args"]}
        self.assertEqual(defaults, {"self": ("Tensor", None, "none"), "kernel_size": ("int[]", 2, "none"),
                                    "stride": ("int[]", 2, []), "padding": ("int[]", 2, [0, 0]),
                                    "dilation": ("int[]", 2, [1, 1]), "ceil_mode": ("bool", None, False)})
        full = {a["name"]: a for a in ops["full"]["args"]}
        self.assertTrue(full["dtype"]["optional"])
        self.assertIsNone(full["dtype"]["default"])
        self.assertEqual(ops["split"]["returns"][0]["argument"], "self")
        self.assertEqual([r["name"] for r in ops["max.dim"]["returns"]], ["values", "indices"])

    def test_dtypes(self):
        dtypes = {d["name"]: (d["number"], d["bytes"], d["kind"]) for d in self.parsed("dtypes")}
        self.assertEqual(dtypes["bf16"], (3, 2, "float"))
        self.assertEqual(dtypes["u8"], (8, 1, "unsigned"))
        self.assertEqual(dtypes["c64"], (14, 8, "complex"))
        self.assertEqual(len(dtypes), 15)

    def test_one_op(self):
        (op,) = self.parsed("ops", "add.Tensor")
        self.assertTrue(any(h["key"] == "Autograd" for h in op["handlers"]))
        self.assertTrue(any(k["device"] == "cpu:0" for k in op["kernels"]))

    def test_an_op_tells_which_devices_have_no_kernel(self):
        (op,) = self.parsed("ops", "abs.out")
        devices = {d["device"] for d in self.parsed("devices") if d["usable"]}
        self.assertEqual(set(op["without"]), devices - {k["device"] for k in op["kernels"]})
        self.assertEqual(self.parsed("ops", "permute")[0]["without"], [])

    def test_env(self):
        names = [entry["name"] for entry in self.parsed("env")]
        self.assertIn("TENON_DEVICE", names)


class Hostile(unittest.TestCase):
    """What a plugin, here its path, has in it is data: for JSON and for the terminal."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name.encode(), b"\xff\x1b[31m\xc2\x9b\n")
        os.mkdir(self.path)
        with open(os.path.join(self.path, b"libtenon_evil.so"), "wb") as file:
            file.write(b"no object")

    def tearDown(self):
        self.folder.cleanup()

    def output(self, *args):
        env = os.environb | {b"TENON_PLUGIN_PATH": self.path}
        return subprocess.run([TENON, *args], capture_output=True, env=env)

    def test_json_is_json(self):
        (evil,) = [p for p in json.loads(self.output("plugins", "--json").stdout) if p["path"].endswith("evil.so")]
        self.assertEqual(evil["path"].encode(),
                         os.path.join(self.path, b"libtenon_evil.so").replace(b"\xff", "\ufffd".encode()))

    def test_no_control_character_reaches_the_terminal(self):
        for command in ("plugins", "devices"):
            result = self.output(command)
            for byte in (b"\x1b", b"\xc2\x9b"):
                self.assertNotIn(byte, result.stdout + result.stderr)
        self.assertIn(b"?[31m", self.output("plugins").stdout)


class Evil(unittest.TestCase):
    """No plugin keeps the commands from telling of the others."""

    def ask(self, hows, *args, good_code=0, **environment):
        """The rows, by id or file name, and what was said besides."""
        with tempfile.TemporaryDirectory() as folder:
            for how in hows:
                shutil.copy(EVIL / f"libtenon_evil_{how}.so", folder)
            path = os.pathsep.join(filter(None, [folder, os.environ.get("TENON_PLUGIN_PATH")]))
            result = run(*args, "--json", TENON_PLUGIN_PATH=path, **environment)
        self.assertEqual(result.returncode, good_code, result.stderr)
        rows = json.loads(result.stdout)
        return {pathlib.Path(row.get("path", row.get("device"))).name: row for row in rows}, result.stderr

    def test_one_that_ends_the_process_is_listed_with_how(self):
        for how, words in {"abort": "ended by signal 6 (Aborted); printed last: evil: ?[31mnothing works",
                           "exit": "it was loaded and started, it ended the process, with exit code 0",
                           "init": "it ended the process, with exit code 3"}.items():
            rows, _ = self.ask([how], "plugins")
            evil = rows[f"libtenon_evil_{how}.so"]
            self.assertEqual(evil["state"], "failed")
            self.assertIn(words, evil["reason"])
            self.assertEqual(rows["libtenon_cpu.so"]["state"], "ready")

    def test_one_that_does_not_come_back_is_stopped(self):
        rows, _ = self.ask(["hang"], "plugins", "--timeout", "2")
        self.assertIn("it did not come back within 2 s, and was stopped; --timeout gives it longer",
                      rows["libtenon_evil_hang.so"]["reason"])
        self.assertEqual(rows["libtenon_cpu.so"]["state"], "ready")

    def test_a_device_that_ends_the_process_does_not_hide_the_others(self):
        rows, said = self.ask(["open", "abort", "exit"], "devices")
        self.assertTrue(rows["cpu:0"]["usable"])
        self.assertNotIn("evil:0", rows)
        rows, _ = self.ask(["open"], "plugins")
        self.assertEqual(rows["libtenon_evil_open.so"]["state"], "ready")
        _, said = self.ask(["open"], "devices", TENON_DEVICE="evil:0")
        self.assertIn("as its devices were opened, it was ended by signal 9 (Killed)", said)

    def test_operators_are_told_beside_one(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(EVIL / "libtenon_evil_exit.so", folder)
            path = os.pathsep.join(filter(None, [folder, os.environ.get("TENON_PLUGIN_PATH")]))
            self.assertIn("cpu:0", run("ops", "add.Tensor", TENON_PLUGIN_PATH=path).stdout)

    def test_an_end_that_goes_wrong_is_told(self):
        rows, said = self.ask(["last"], "plugins", good_code=1)
        self.assertEqual(rows["libtenon_evil_last.so"]["state"], "ready")
        self.assertIn("do not come to an end in one process: it was ended by signal 6", said)

    def test_texts_of_plugins_are_data(self):
        rows, said = self.ask(["text"], "plugins", TENON_LOG="plugin=warn")
        evil = rows["libtenon_evil_text.so"]
        self.assertIn("init failed: ?[2J? is gone", evil["reason"])
        self.assertIn("one?]0;title?\n    tenon error loader: forged ?\n", said)
        for byte in "\x1b\x07":
            self.assertNotIn(byte, said)

    def test_seconds_are_a_number(self):
        for wrong in ("0", "x", "-1", "1s"):
            result = run("plugins", "--timeout", wrong)
            self.assertEqual(result.returncode, 2)
            self.assertIn("a number of seconds, from 1 to 9999, must follow '--timeout'", result.stderr)


class Settings(unittest.TestCase):
    """What is wrong in the environment is said once, with what is right, and does not hold."""

    def said(self, *args, **environment):
        result = run(*(args or ("devices",)), **environment)
        lines = [line for line in result.stderr.splitlines() if line.startswith("tenon warn env: ")]
        self.assertEqual(len(lines), len(set(lines)), "something is said twice")
        return "\n".join(lines)

    def test_nothing_is_said_of_what_is_right(self):
        self.assertEqual(self.said(TENON_VALIDATE="1", TENON_LOG="warn,loader=info,dispatch", TENON_SEED="-3",
                                   TENON_FALLBACK="cpu", TENON_NUM_THREADS="2", TENON_SCOPE_DEBUG="1",
                                   TENON_CPU_THREADS="1", TENON_ALLOC_CONF="limit_mb:100,magazines:off",
                                   TENON_DEVICE="cpu:0", TENON_ACME_THREADS="9"), "")

    def test_values_that_are_not_allowed(self):
        for name, value, words in [
                ("VALIDATE", "on", "TENON_VALIDATE=on is ignored, and 0 used: it must be 0, 1 or 2"),
                ("VALIDATE", "9", "it must be 0, 1 or 2"),
                ("VALIDATE", "or", "it must be 0, 1 or 2"),
                ("FALLBACK", "gpu", "it must be error, warn or cpu"),
                ("SCOPE_DEBUG", "yes", "it must be 0 or 1"),
                ("NUM_THREADS", "-1", "it must be a number from 0"),
                ("SEED", "1x", "it must be a whole number"),
                ("LOG", "verbose", "'verbose' is ignored: it must be off, error"),
                ("LOG", "warn,loder=info", "'loder=info' is ignored"),
                ("LOG", "loader=much", "'loader=much' is ignored"),
                ("ALLOC_CONF", "limit_mb:x", "limit_mb is 'x'; it must be a number of MiB"),
                ("ALLOC_CONF", "limt_mb:1", "'limt_mb' is no setting; there are"),
                ("PLUGIN_PATH", "plugins", "TENON_PLUGIN_PATH: 'plugins': a relative path is refused"),
                ("PLUGIN_PATH", "/no/such", "'/no/such': no such directory"),
                ("PLUGINS", "/no/such.so", "TENON_PLUGINS: /no/such.so: no such file")]:
            with self.subTest(name=name, value=value):
                self.assertIn(words, self.said(**{"TENON_" + name: value}))

    def test_names_that_are_nearly_right(self):
        for name, near in [("DEVCE", "DEVICE"), ("DEVICES", "DEVICE"), ("PLUGINPATH", "PLUGIN_PATH"),
                           ("LOGS", "LOG"), ("LOG_LEVEL", "LOG"), ("VALIDATES", "VALIDATE")]:
            with self.subTest(name=name):
                self.assertIn(f"TENON_{name} is set, but nothing reads it; did you mean TENON_{near}?",
                              self.said(**{"TENON_" + name: "1"}))

    def test_options_that_a_plugin_does_not_have(self):
        said = self.said(TENON_CPU_THRAEDS="2", TENON_CPU_BOGUS="1")
        self.assertIn("TENON_CPU_THRAEDS is set, but org.tenon.cpu has no such option; did you mean threads; it has:",
                      said)
        self.assertIn("TENON_CPU_BOGUS is set, but org.tenon.cpu has no such option; it has: ", said)

    def test_it_can_be_switched_off(self):
        self.assertEqual(self.said(TENON_LOG="off", TENON_VALIDATE="on", TENON_DEVCE="cpu:0"), "")

    def test_env_shows_what_holds(self):
        rows = {row["name"]: row for row in json.loads(run("env", "--json", TENON_VALIDATE="yes", TENON_FALLBACK="cpu",
                                                           TENON_DEVCE="x", TENON_CPU_THREADS="3",
                                                           TENON_NOWHERE_X="1").stdout)}
        self.assertEqual((rows["TENON_VALIDATE"]["value"], rows["TENON_VALIDATE"]["from"]), ("0", "ignored"))
        self.assertIn("'yes' is ignored: it must be 0, 1 or 2", rows["TENON_VALIDATE"]["note"])
        self.assertEqual((rows["TENON_FALLBACK"]["value"], rows["TENON_FALLBACK"]["from"]), ("cpu", "set"))
        self.assertIn("did you mean TENON_DEVICE?", rows["TENON_DEVCE"]["note"])
        self.assertEqual((rows["TENON_CPU_THREADS"]["value"], rows["TENON_CPU_THREADS"]["from"]), ("3", "set"))
        self.assertIn("no plugin of that type was found", rows["TENON_NOWHERE_X"]["note"])
        self.assertEqual({row["note"] for name, row in rows.items() if name in ("TENON_LOG", "TENON_FALLBACK", "TENON_SEED")}, {""})

    def test_env_shows_what_of_a_list_does_not_hold(self):
        for name, value, words in [
                ("LOG", "bogus", "'bogus' is ignored: it must be off, error"),
                ("LOG", "warn,loder=info", "'loder=info' is ignored"),
                ("ALLOC_CONF", "bogus:1", "'bogus' is no setting; there are: "),
                ("ALLOC_CONF", "limit_mb:1,limit_mb:x", "limit_mb is 'x'; it must be a number of MiB"),
                ("PLUGIN_PATH", "/no/such", "'/no/such': no such directory"),
                ("PLUGINS", "/no/such.so", "/no/such.so: no such file")]:
            with self.subTest(name=name, value=value):
                listed = json.loads(run("env", "--json", **{"TENON_" + name: value}).stdout)
                row = next(row for row in listed if row["name"] == "TENON_" + name)
                self.assertEqual((row["value"], row["from"]), (value, "set"))
                self.assertIn(words, row["note"])


class Failures(unittest.TestCase):
    def test_unknown_operator_is_1_with_hints(self):
        result = run("ops", "softma")
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no operator 'softma'; there is softmax", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_unknown_command_is_2(self):
        result = run("device")
        self.assertEqual(result.returncode, 2)
        self.assertIn("there is no command 'device'; `tenon --help`", result.stderr)

    def test_unknown_option_is_2(self):
        self.assertEqual(run("devices", "--verbose").returncode, 2)

    def test_a_second_name_is_2(self):
        self.assertEqual(run("ops", "add", "mul").returncode, 2)

    def test_json_of_what_prints_none_is_2(self):
        self.assertEqual(run("new-plugin", "acme", "npu", "--json").returncode, 2)
        self.assertEqual(run("devices", "--dir", "x").returncode, 2)

    def test_nothing_to_do_is_2_and_prints_help(self):
        result = run()
        self.assertEqual(result.returncode, 2)
        self.assertIn("usage: tenon", result.stdout)

    def test_missing_default_device_is_told_and_devices_still_listed(self):
        result = run("devices", TENON_DEVICE="npu:0")
        self.assertEqual(result.returncode, 0)
        self.assertIn("npu", result.stderr)
        self.assertIn("cpu:0", result.stdout)

    def test_full_disk_is_1(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([TENON, "ops"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output", result.stderr)


class Help(unittest.TestCase):
    def test_help_names_every_command(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        for command in ("devices", "plugins", "ops", "env", "new-plugin"):
            self.assertIn(command, result.stdout)
            own = run(command, "--help")
            self.assertEqual(own.returncode, 0)
            self.assertIn(f"usage: tenon {command}", own.stdout)

    def test_version(self):
        self.assertRegex(run("--version").stdout, r"^tenon \d+\.\d+\.\d+(-rc\d+)?$")


unittest.main(argv=sys.argv[:1], verbosity=2)
