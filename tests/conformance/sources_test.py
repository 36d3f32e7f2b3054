"""The suite knows operators by their records alone: no name of one stands in its code.

usage: sources_test.py SOURCES_OF_THE_SUITE
"""

import pathlib
import re
import sys
import unittest

SOURCES = pathlib.Path(sys.argv[1])
# An operator's name compared with a literal, or with a name of tenon/kernels.h.
NAMED = re.compile(r"\bstr(?:n?cmp|n?casecmp|str)\(\s*(?:\w+(?:->|\.))*op(?:->name)?\s*,\s*(?:\"|TN_KERNEL_)")


class Sources(unittest.TestCase):
    def test_no_operator_is_treated_by_name(self):
        for path in sorted(SOURCES.rglob("*.[ch]")):
            text = path.read_text()
            for found in NAMED.finditer(text):
                line = text.count("\n", 0, found.start()) + 1
                self.fail(f"{path}:{line} asks for an operator by name; say what it is about in its `check`, "
                          "in kernels.toml or operators.toml")

    def test_the_pattern_finds_what_it_is_for(self):
        for code in ('strcmp(op, "sum") == 0', 'strncmp(op->name, "copy_", 5)', 'strcmp(call->record->op, "fill")',
                     'strstr(op->name, "backward")', "strcmp(kernel->op, TN_KERNEL_add)"):
            self.assertTrue(NAMED.search(code), code)
        for code in ("strcmp(a->op, b->op)", 'strcmp(arg->name, "self")', "strcmp(tc_records[i].op, op)"):
            self.assertFalse(NAMED.search(code), code)


unittest.main(argv=sys.argv[:1], verbosity=2)
