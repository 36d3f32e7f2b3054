"""Requirements and the cases that check them name each other rightly.

usage: requirements_test.py TENON_CONFORM REQUIREMENTS.toml SOURCES_OF_THE_SUITE SOURCES_OF_VALIDATION
"""

import functools
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

CONFORM, TABLE, SOURCES = sys.argv[1], pathlib.Path(sys.argv[2]), [pathlib.Path(arg) for arg in sys.argv[3:]]

# A requirement passed as a bare number where sources name it.
BARE = re.compile(r"\b(?:TC_BROKEN|tc_must|tc_must_fail|tni_finding)\([^,;]*,\s*\d|\bmisuse\(\d|\bTC_FAIL, \d")

def requirements():
    return [entry for group in tomllib.loads(TABLE.read_text())["group"] for entry in group["requirement"]]


def glob(form):
    return re.compile("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in form), re.S)


def named_by(pattern, lines):
    """Does the pattern name a line, as those of `tenon-conform list --filter` do? `lines` are split into words."""
    subject, *params = map(glob, pattern.split())
    return any(subject.fullmatch(words[0]) and all(any(p.fullmatch(w) for w in words[1:]) for p in params)
               for words in lines)


def sources():
    return sorted(path for folder in SOURCES for path in folder.rglob("*.[ch]"))


@functools.cache
def listed(name):
    run = subprocess.run([CONFORM, "list", "--set", name], capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(run.stderr)
    return run.stdout.splitlines()


class Requirements(unittest.TestCase):
    def test_larger_sets_contain_the_smaller_ones(self):
        smoke, standard, exhaustive = (set(listed(name)) for name in ("smoke", "standard", "exhaustive"))
        self.assertEqual(sorted(smoke - standard)[:10], [])
        self.assertEqual(sorted(standard - exhaustive)[:10], [])
        self.assertTrue(len(smoke) < len(standard) < len(exhaustive))

    def test_each_operator_has_lines_that_are_drawn_and_takes_turns(self):
        lines = listed("standard")
        by = {way: {line.split()[0].split("/")[1] for line in lines if re.search(word, line)}
              for way, word in (("all", "kernel/"), ("drawn", r" drawn=\d"), ("idle", " drawn=idle"), ("turns", " how=turns"))}
        self.assertEqual(by["all"] - by["drawn"], set())
        self.assertEqual(by["all"] - by["turns"], set())

    def test_every_pattern_names_a_case_of_the_standard_set(self):
        lines = [line.split() for line in listed("standard")]
        known = {}
        for entry in requirements():
            for pattern in entry.get("cases", []):
                if pattern not in known:
                    known[pattern] = named_by(pattern, lines)
                self.assertTrue(known[pattern], f"TNP-{entry['id']}: no case is named {pattern}")

    def test_sources_name_requirements(self):
        """That the names are declared, the compiler sees."""
        for path in sources():
            self.assertIsNone(BARE.search(path.read_text()), f"{path.name} passes a bare number; pass TNP_<name>")

    def test_every_requirement_with_cases_is_named_by_the_suite(self):
        named = set(re.findall(r"\bTNP_(\w+)", "".join(path.read_text() for path in SOURCES[0].rglob("*.c"))))
        # What breaks these shows as a crash, or as wrong bytes of a transfer or a kernel.
        indirect = {"ARGUMENTS_NOT_KEPT", "TRANSFER_ORDER", "NO_STREAMS_SYNCHRONOUS", "EVENT_DESTROY", "KERNEL_OFFSET",
                    "NOT_READY_QUERIES_ONLY", "NO_PROCESS_EXIT"}
        for entry in requirements():
            if entry.get("cases") and entry["name"] not in indirect:
                self.assertIn(entry["name"], named, "no case fails with it")


unittest.main(argv=sys.argv[:1], verbosity=2)
