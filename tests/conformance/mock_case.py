"""What the tests of tenon-conform share: a run with mock_worker, its log and what it printed."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CONFORM, MOCK = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])


class MockCase(unittest.TestCase):
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
