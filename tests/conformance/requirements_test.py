"""Requirements and the cases that check them name each other rightly.

usage: requirements_test.py TENON_CONFORM REQUIREMENTS.toml SOURCES_OF_THE_SUITE
"""

import functools
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

CONFORM, TABLE, SOURCES = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])

# Functions that are handed a requirement, and which argument it is.
NUMBERED = {"TC_BROKEN": 1, "tc_must": 1, "tc_must_fail": 1, "must": 1, "tc_verdict_set": 2, "tc_buffer_check": 3,
            "tc_drive_open": 3, "tc_drive_probe": 3, "tc_drive_balanced": 1, "live": 2, "misuse": 0, "WRONG": 0,
            "set_up_failed": 1, "check_same": 7}
CALL = re.compile(rf"\b({'|'.join(NUMBERED)})\(")


def requirements():
    return [entry for group in tomllib.loads(TABLE.read_text())["group"] for entry in group["requirement"]]


def glob(form):
    return re.compile("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in form), re.S)


def named_by(pattern, lines):
    """Does the pattern name a line, as those of `tenon-conform list --filter` do? `lines` are split into words."""
    subject, *params = map(glob, pattern.split())
    return any(subject.fullmatch(words[0]) and all(any(p.fullmatch(w) for w in words[1:]) for p in params)
               for words in lines)


def arguments(text, start):
    """The arguments of the call whose bracket was opened before `start`, without what is in strings."""
    out, depth, word = [], 0, ""
    for token in re.finditer(r'"(?:\\.|[^"\\])*"|.', text[start:], re.S):
        c = token[0]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        if depth < 0:
            break
        if c == "," and depth == 0:
            out.append(word)
            word = ""
        elif c[0] != '"':
            word += c
    return out + [word]


def numbers_in(text):
    """The requirements that a source names, each with its line."""
    for call in CALL.finditer(text):
        words = arguments(text, call.end())
        at = NUMBERED[call[1]]
        line = text.count("\n", 0, call.start()) + 1
        for number in re.findall(r"(?<![\w.])\d+\b", words[at] if at < len(words) else ""):
            yield int(number), line
    for choice in re.finditer(r"\brequirement = [^;]*?[?:][^;]*;|\bTNP-\d+", text):
        for number in re.findall(r"\b\d{2,}\b", choice[0]):
            yield int(number), text.count("\n", 0, choice.start()) + 1


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

    def test_every_pattern_names_a_case_of_the_standard_set(self):
        lines = [line.split() for line in listed("standard")]
        known = {}
        for entry in requirements():
            for pattern in entry.get("cases", []):
                if pattern not in known:
                    known[pattern] = named_by(pattern, lines)
                self.assertTrue(known[pattern], f"TNP-{entry['id']}: no case is named {pattern}")

    def test_every_number_in_the_suite_is_a_requirement(self):
        ids = {entry["id"] for entry in requirements() if "withdrawn" not in entry} | {0}
        seen = set()
        for path in sorted(SOURCES.rglob("*.c")):
            for number, line in numbers_in(path.read_text()):
                seen.add(number)
                self.assertTrue(number in ids, f"{path.name}:{line} names TNP-{number}, which is no requirement")
        self.assertGreater(len(seen), 60)

    def test_every_requirement_with_cases_is_named_by_the_suite(self):
        seen = {number for path in SOURCES.rglob("*.c") for number, _ in numbers_in(path.read_text())}
        # What breaks these shows as a crash, or as wrong bytes of a transfer or a kernel.
        indirect = {20, 47, 51, 64, 70, 86, 87}
        for entry in requirements():
            if entry.get("cases") and entry["id"] not in indirect:
                self.assertTrue(entry["id"] in seen, f"no case fails with TNP-{entry['id']}")


unittest.main(argv=sys.argv[:1], verbosity=2)
