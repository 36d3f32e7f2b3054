"""What `tenon-conform needs` says of devices that lack kernels is what they lack, no less and no more:
needs_test.py TENON_CONFORM LESSER_PLUGIN WHOLE_PLUGIN KERNELS_TOML TUTORIAL.md, or with --write to write the
`core` of the table and the tutorial's list anew."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

WRITE = "--write" in sys.argv
CONFORM, LESSER, WHOLE, TABLE, TUTORIAL = (str(pathlib.Path(p).resolve()) for p in [w for w in sys.argv[1:] if w != "--write"])


def call(command: str, variant: str, *words: str, also: list[str] = ()) -> subprocess.CompletedProcess:
    env = dict(os.environ, LESSER_OF=WHOLE, LESSER=variant, LESSER_ALSO="\n".join(also))
    return subprocess.run([CONFORM, command, LESSER, *words], env=env, capture_output=True, text=True)


def needs(variant: str, *words: str, also: list[str] = ()) -> list[dict]:
    result = call("needs", variant, "--json", *words, also=also)
    assert result.returncode in (0, 1), result.stderr
    return json.loads(result.stdout)


def items(variant: str, *words: str, also: list[str] = ()) -> list[str]:
    return [need["item"] for need in needs(variant, *words, also=also)]


def as_core(items: list[str]) -> dict[str, str]:
    """What the table's `core` says of each kernel: dtypes, for copy pairs."""
    core: dict[str, list[str]] = {}
    for item in items:
        name, _, dtypes = item.partition(" ")
        core.setdefault(name, []).append(dtypes.replace(" -> ", ">"))
    order = ["f32", "i64", "bool"]
    rank = {d: i for i, d in enumerate(order)}
    key = lambda dtype: [rank.get(d, len(order)) for d in dtype.split(">")] + [dtype]
    return {name: " ".join(sorted(dtypes, key=key)) for name, dtypes in core.items()}


def as_list(core: dict[str, str]) -> str:
    """The same for a reader: which kernels in which dtypes, then the pairs of copy."""
    groups: dict[str, list[str]] = {}
    for name, dtypes in sorted(core.items()):
        if name != "copy":
            groups.setdefault(dtypes, []).append(f"`{name}`")
    rows = [f"| {dtypes} | {', '.join(names)} |"
            for dtypes, names in sorted(groups.items(), key=lambda group: (-len(group[0].split()), group[0]))]
    pairs: dict[str, list[str]] = {}
    for pair in core["copy"].split():
        pairs.setdefault(pair.split(">")[0], []).append(pair.split(">")[1])
    copies = "; ".join(f"{of} to {', '.join(to)}" for of, to in pairs.items())
    return "\n".join(["| in | kernels |", "| --- | --- |", *rows, f"| from, to | `copy`: {copies} |", ""])


def write(core: dict[str, str]) -> None:
    """The `core` of each entry, in the line behind `small`, and the list."""
    tutorial = pathlib.Path(TUTORIAL)
    text = re.sub(r"^\| in \| kernels \|\n(\|.*\n)*", lambda _: as_list(core), tutorial.read_text(), flags=re.M)
    tutorial.write_text(text)
    text = re.sub(r"^core = .*\n", "", pathlib.Path(TABLE).read_text(), flags=re.M)
    for name, dtypes in core.items():
        start = text.index(f'schema = "{name}(')
        at = text.index("small = true\n", start) + len("small = true\n")
        assert "[[kernel]]" not in text[start:at], name
        text = f'{text[:at]}core = "{dtypes}"\n{text[at:]}'
    pathlib.Path(TABLE).write_text(text)


def table() -> dict[str, str]:
    with open(TABLE, "rb") as f:
        return {e["schema"].partition("(")[0]: e["core"] for e in tomllib.load(f)["kernel"] if "core" in e}


class Needs(unittest.TestCase):
    def test_the_table_says_what_core_asks_of_the_small_set(self) -> None:
        core = as_core(items("none"))
        self.assertEqual(core, table())
        self.assertIn(f"\n{as_list(core)}\n", pathlib.Path(TUTORIAL).read_text())

    def test_a_chip_with_its_own_dtypes_alone_holds_memory(self) -> None:
        result = call("run", "native", "--level", "memory", "--quiet")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("levels passed: Load, Memory;", result.stdout)

    def test_a_chip_with_its_own_dtypes_alone_lacks_just_what_is_listed(self) -> None:
        result = call("run", "native", "--level", "core", "--filter", "/^operator.* T=(f32|i64|bool)/")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "level Core: failed: [1-9][0-9]* of operators and dtypes do not run; "
                                        "they lack bitwise_or bool, ")
        self.assertIn(" 0 failed", result.stdout)
        listed = needs("native")
        lacks = [need["item"] for need in listed]
        self.assertEqual(set(lacks), {f"{name} {dtype}" for name, dtypes in table().items() if name != "copy"
                                      for dtype in dtypes.split() if dtype in ("i64", "bool")})
        for need in listed:  # the list that `run` ends with is the same
            self.assertIn(f"\n{need['item']}\n", result.stderr)
        # With all of it every operator runs; without any one item just that is missing.
        self.assertEqual(items("native", also=lacks), [])
        for item in (lacks[0], "bitwise_or bool", lacks[-1]):
            with self.subTest(item):
                rest = [other for other in lacks if other != item]
                self.assertEqual(items("native", also=rest), [item])

    def test_copies_that_are_not_offered_go_over_the_host_and_are_told(self) -> None:
        result = call("run", "f32", "--filter", "operator/eq.Tensor T=f32", "--filter", "operator/add.Tensor T=i32")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(" 0 failed", result.stdout)
        listed = items("f32", "--filter", "operator/to.dtype T=f32")
        self.assertEqual(sorted(listed), ["copy bool -> bool", "copy f32 -> bool", "copy f32 -> i32", "copy i32 -> i32"])


if WRITE:
    write(as_core(items("none")))
else:
    unittest.main(argv=sys.argv[:1], verbosity=2)
