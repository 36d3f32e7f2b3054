#!/usr/bin/env python3
"""Tests the checks: each must find the mistake it is for, planted in a small tree.

usage: checks_test.py SOURCE-ROOT
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
TOOLS = ROOT / "tools"


def run(tool, *args):
    result = subprocess.run([sys.executable, TOOLS / tool, *map(str, args)],
                            capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


class Planted(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name).resolve()

    def put(self, path, text):
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
        return full


class Layers(Planted):
    def setUp(self):
        super().setUp()
        self.put("plugin-sdk/include/tenon/plugin.h", "")
        self.put("base/alloc.h", "")
        self.put("core/include/tenon/tensor.h", "#include <tenon/plugin.h>\n")
        self.put("core/tensor.h", '#include "base/alloc.h"\n#include <stdio.h>\n')

    def check(self):
        return run("check_layers.py", "--root", self.root)

    def test_a_clean_tree_passes(self):
        self.put("samples/s.c", "#include <tenon/tensor.h>\n")
        self.put("plugins/cpu/a.c", '#include "plugins/cpu/b.h"\n#include <tenon/plugin.h>\n')
        self.put("plugins/cpu/b.h", "")
        code, text = self.check()
        self.assertEqual(code, 0, text)

    def assert_found(self, path, include, reason):
        self.put(path, f"\n#include {include}\n")
        code, text = self.check()
        self.assertEqual(code, 1)
        self.assertIn(f"{path}:2: ", text)
        self.assertIn(reason, text)

    def test_a_lower_layer_must_not_look_up(self):
        self.assert_found("base/b.c", '"core/tensor.h"', "base is below core")

    def test_a_plugin_must_not_know_the_core(self):
        self.assert_found("plugins/cpu/p.c", "<tenon/tensor.h>", "plugin-sdk's headers")

    def test_a_plugin_must_not_know_another(self):
        self.put("plugins/cpu/b.h", "")
        self.assert_found("plugins/sim/p.c", '"../cpu/b.h"', "its own folder")

    def test_the_core_must_not_know_a_plugin(self):
        self.put("plugins/cpu/b.h", "")
        self.assert_found("core/c.c", '"plugins/cpu/b.h"', "must not know a plugin")

    def test_a_sample_must_not_know_internals(self):
        self.assert_found("samples/s.c", '"core/tensor.h"', "public headers only")

    def test_a_public_header_must_not_know_internals(self):
        self.assert_found("core/include/tenon/x.h", '"base/alloc.h"', "public headers only")

    def test_the_template_is_a_program_of_a_stranger(self):
        self.put("plugin-sdk/template/a.c", '#include "b.h"\n#include <tenon/tensor.h>\n')
        self.put("plugin-sdk/template/b.h", "#include <tenon/plugin.h>\n")
        code, text = self.check()
        self.assertEqual(code, 0, text)
        self.assert_found("plugin-sdk/template/c.c", '"base/alloc.h"', "public headers")

    def test_a_header_that_does_not_exist(self):
        self.assert_found("samples/s.c", "<tenon/tensr.h>", "there is no header")


SLOT = "typedef struct tn_x {{\n    /* {} */\n    void (*run)(int a);\n}} tn_x;\n"


class Slots(Planted):
    def check(self, comment):
        return run("check_slots.py", self.put("x.h", SLOT.format(comment)))

    def test_a_tagged_slot_passes(self):
        code, text = self.check("Runs the thing and returns. [any-thread] [loaded] [required]")
        self.assertEqual(code, 0, text)

    def test_a_missing_tag_is_named(self):
        code, text = self.check("Runs the thing and returns. [any-thread] [required]")
        self.assertEqual(code, 1)
        self.assertIn("x.h:3: tn_x.run", text)
        self.assertIn("[loaded]", text)

    def test_two_tags_of_a_kind(self):
        self.assertEqual(self.check("Runs the thing and returns. [any-thread] [one-thread] [loaded] "
                                    "[required]")[0], 1)

    def test_no_contract(self):
        self.assertEqual(self.check("[any-thread] [loaded] [required]")[0], 1)


class Exports(Planted):
    def build(self, source):
        path = self.put("x.c", source)
        library = self.root / "libx.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, path], check=True)
        return library

    def test_a_plugin_with_its_entry_alone_passes(self):
        code, text = run("check_exports.py", "plugin", self.build("int tenon_plugin_query_v1;"))
        self.assertEqual(code, 0, text)

    def test_a_second_symbol(self):
        code, text = run("check_exports.py", "plugin",
                         self.build("int tenon_plugin_query_v1, helper;"))
        self.assertEqual(code, 1)
        self.assertIn("exports helper", text)

    def test_no_entry(self):
        self.assertEqual(run("check_exports.py", "plugin", self.build("int helper;"))[0], 1)

    def test_a_plugin_that_needs_the_library(self):
        code, text = run("check_exports.py", "plugin", self.build(
            "void tn_add(void); void tenon_plugin_query_v1(void) { tn_add(); }"))
        self.assertEqual(code, 1)
        self.assertIn("needs tn_add", text)

    def test_the_library_exports_one_prefix(self):
        self.assertEqual(run("check_exports.py", "library", self.build("int tn_a;"))[0], 0)
        code, text = run("check_exports.py", "library", self.build("int tn_a, tni_b;"))
        self.assertEqual(code, 1)
        self.assertIn("exports tni_b", text)


class Headers(Planted):
    def check(self, text, name="tenon/x.h"):
        self.put(name, text)
        return run("check_headers.py", "-I", self.root)

    def test_a_header_that_stands_alone_passes(self):
        self.assertEqual(self.check("#pragma once\n#include <stdint.h>\nextern int32_t x;\n")[0], 0)

    def test_a_missing_include(self):
        code, text = self.check("extern int32_t x;\n")
        self.assertEqual(code, 1)
        self.assertIn("does not compile alone", text)

    def test_a_missing_guard(self):
        self.assertEqual(self.check("typedef struct x { int a; } x;\n")[0], 1)

    def test_c11_is_too_new_for_the_plugin_header(self):
        anonymous = "#ifndef X\n#define X\nstruct x { union { int a; float b; }; };\n#endif\n"
        self.assertEqual(self.check(anonymous, "tenon/ext/x.h")[0], 1)


class EnvironmentPage(Planted):
    def test_an_old_page_is_found(self):
        table = self.put("env.def", 'X(A, "flag", "0", 1, "help")\n')
        page = self.root / "page.md"
        self.assertEqual(run("generate_env_doc.py", table, page)[0], 0)
        self.assertEqual(run("generate_env_doc.py", "--check", table, page)[0], 0)
        table.write_text('X(A, "flag", "1", 1, "help")\n')
        self.assertEqual(run("generate_env_doc.py", "--check", table, page)[0], 1)


class RequirementsPage(Planted):
    ONE = '[[group]]\ntitle = "T"\nrequirement = [\n{ id = 1, name = "DOES", slots = [%s], text = "Does it."%s }, %s\n]\n'
    CASES = ', cases = ["contract/a-*"]'

    def check(self, slots='"tn_x.run", "tenon_plugin_query_v1"', more="", *options, cases=CASES):
        header = self.put("x.h", SLOT.format("Runs the thing."))
        table = self.put("r.toml", self.ONE % (slots, cases, more))
        return run("generate_requirements.py", *options, table, self.root / "page.md", header)

    def test_every_slot_answered_passes_and_makes_the_page(self):
        code, text = self.check()
        self.assertEqual(code, 0, text)
        self.assertIn("TNP-1<br>`DOES` | Does it.<br>Checked by: `contract/a-*` |", (self.root / "page.md").read_text())

    def test_a_requirement_that_no_case_checks_says_why(self):
        code, text = self.check(cases=', unchecked = "nobody can look"')
        self.assertEqual(code, 0, text)
        self.assertIn("Does it.<br>Not checked: nobody can look. |", (self.root / "page.md").read_text())

    def test_a_requirement_has_cases_or_a_reason_and_not_both(self):
        for cases in ("", ", cases = []", self.CASES + ', unchecked = "nobody can look"'):
            code, text = self.check(cases=cases)
            self.assertEqual(code, 1)
            self.assertIn("TNP-1: needs either the cases", text)

    def test_a_slot_without_requirement_is_named(self):
        code, text = self.check('"tenon_plugin_query_v1"')
        self.assertEqual(code, 1)
        self.assertIn("tn_x.run: no requirement binds it", text)

    def test_a_slot_that_is_not_there(self):
        code, text = self.check('"tn_x.run", "tenon_plugin_query_v1", "tn_x.walk"')
        self.assertEqual(code, 1)
        self.assertIn("TNP-1: there is no tn_x.walk", text)

    def test_a_number_used_twice(self):
        code, text = self.check(more='{ id = 1, name = "AGAIN", slots = ["tn_x.run"], text = "Again." }')
        self.assertEqual(code, 1)
        self.assertIn("TNP-1 stands twice", text)

    def test_a_number_that_was_dropped(self):
        code, text = self.check(more='{ id = 3, name = "THIRD", slots = ["tn_x.run"], text = "Third." }')
        self.assertEqual(code, 1)
        self.assertIn("TNP-2 is gone", text)

    def test_a_name_used_twice_or_missing(self):
        code, text = self.check(more='{ id = 2, name = "DOES", slots = ["tn_x.run"], text = "Again." }')
        self.assertEqual(code, 1)
        self.assertIn("name DOES stands twice", text)
        code, text = self.check(more='{ id = 2, slots = ["tn_x.run"], text = "Again." }')
        self.assertEqual(code, 1)
        self.assertIn("TNP-2: needs a name", text)

    def test_names_become_constants(self):
        self.check()
        header = self.root / "requirements.h"
        code, text = run("generate_requirements.py", "--header", self.root / "r.toml", header)
        self.assertEqual(code, 0, text)
        self.assertIn("/* Does it. */\n    TNP_DOES = 1,\n", header.read_text())

    def test_a_withdrawn_requirement_answers_nothing(self):
        code, text = self.check('"tenon_plugin_query_v1"', '{ id = 2, name = "NO", slots = ["tn_x.run"], text = "No.", '
                                'withdrawn = "why" }')
        self.assertEqual(code, 1)
        self.assertIn("tn_x.run: no requirement binds it", text)

    def test_an_old_page_is_found(self):
        self.assertEqual(self.check()[0], 0)
        code, text = self.check('"tn_x.run", "tenon_plugin_query_v1", "tn_x"', "", "--check")
        self.assertEqual(code, 1)
        self.assertIn("is not what r.toml says", text.replace(str(self.root) + "/", ""))


class Listings(Planted):
    SOURCE = "/* Adds. */\nint add(int a) {\n    return a + 1;\n}\n\nint other;\n"
    PAGE = "<!-- from a.c: {} -->\n```c\n```\n"

    def check(self, page, *options):
        self.put("a.c", self.SOURCE)
        return run("check_listings.py", *options, self.put("page.md", page))

    def test_a_listing_is_written_and_then_current(self):
        self.assertEqual(self.check(self.PAGE.format("add"), "--write")[0], 0)
        page = (self.root / "page.md").read_text()
        self.assertIn("/* Adds. */\nint add(int a) {\n    return a + 1;\n}\n```", page)
        self.assertNotIn("other", page)
        self.assertEqual(self.check(page)[0], 0)

    def test_a_page_that_differs_is_found(self):
        code, text = self.check(self.PAGE.format("add"))
        self.assertEqual(code, 1)
        self.assertIn("not what the sources say", text)

    def test_a_name_that_is_not_there(self):
        code, text = self.check(self.PAGE.format("subtract"))
        self.assertEqual(code, 1)
        self.assertIn("a.c has no definition of 'subtract'", text)

    def test_a_mark_without_a_listing(self):
        code, text = self.check("<!-- from a.c: add -->\n\ntext\n")
        self.assertEqual(code, 1)
        self.assertIn("not followed by a code block", text)


unittest.main(argv=sys.argv[:1], verbosity=2)
