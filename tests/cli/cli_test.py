#!/usr/bin/env python3
"""Tests the `tenon` command: what it prints, as table and as JSON, and its exit codes.

usage: cli_test.py TENON
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

TENON = sys.argv[1]


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
        self.assertEqual(len(dtypes), 10)

    def test_one_op(self):
        (op,) = self.parsed("ops", "add.Tensor")
        self.assertTrue(any(h["key"] == "Autograd" for h in op["handlers"]))
        self.assertTrue(any(k["device"] == "cpu:0" for k in op["kernels"]))

    def test_an_op_tells_which_devices_have_no_kernel(self):
        (op,) = self.parsed("ops", "abs.out")
        devices = {d["name"] for d in self.parsed("devices")}
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
        self.assertRegex(run("--version").stdout, r"^tenon \d+\.\d+\.\d+$")


unittest.main(argv=sys.argv[:1], verbosity=2)
